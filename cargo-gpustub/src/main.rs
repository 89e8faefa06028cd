//! The subcommand `cargo gpustub`: commands, options and their output.

mod c_headers;
mod cli;
mod cmd;
mod compile;
mod dependencies;
mod exports;
mod schema;
mod scratch;
mod shipped;
mod state;
mod toolkit;
mod user_defined;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::FromArgMatches;
use gpustub_workspace::environment::variable;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::status_line::{self, StatusLines};
use gpustub_workspace::{cargo, system, temporary};

use crate::cli::Cli;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match cli::complete_if_requested(&arguments, cli::command) {
        Ok(false) => {}
        Ok(true) => return ExitCode::from(cli::CLEAN),
        Err(_) => return ExitCode::from(cli::COULD_NOT_RUN),
    }
    let arguments = cli::arguments(arguments);
    let color = cli::early_color(&arguments, variable("CARGO_TERM_COLOR"));
    let command = cli::command().color(color.for_clap());
    let parsed = command
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Help and usage errors both arrive here; a closed stream is no error.
            let written = error.print();
            return ExitCode::from(match written {
                Err(e) if e.kind() != io::ErrorKind::BrokenPipe => cli::COULD_NOT_RUN,
                _ if error.use_stderr() => cli::USAGE,
                _ => cli::CLEAN,
            });
        }
    };
    system::clean_up_when_interrupted(|| {
        cargo::end_running();
        temporary::remove_all();
        status_line::erase_at_end();
    });
    let mut shell = Shell::new(color, cli.global.verbosity(), cli.global.message_format);
    shell.enable_status_lines(StatusLines::new(
        cli.global.status_after(),
        variable("TERM").as_deref().and_then(|name| name.to_str()),
    ));
    let mut result = cmd::run(cli.command, &mut shell);
    if let Err(error) = &result {
        shell.error(error);
    }
    if let Err(error) = shell.finish() {
        shell.error(&error);
        result = Err(error);
    }
    ExitCode::from(match result {
        Ok(true) => cli::CLEAN,
        Ok(false) => cli::FINDINGS,
        Err(_) => cli::COULD_NOT_RUN,
    })
}
