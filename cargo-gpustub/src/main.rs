//! The subcommand `cargo gpustub`: commands, options and what they print.

mod cargo_tree;
mod cli;
mod cmd;
mod compile;
mod device_graph;
mod display_path;
mod environment;
mod error;
mod finalizer;
mod graph;
mod imports;
mod ops;
mod output;
mod providers;
mod report;
mod selection;
mod shell;
mod shipped;
mod tables;
mod templates;
mod toolkit;
mod tree;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;

use crate::cli::Cli;
use crate::shell::Shell;

fn main() -> ExitCode {
    let all: Vec<OsString> = std::env::args_os().collect();
    match cli::complete_if_requested(&all, cli::command) {
        Ok(false) => {}
        Ok(true) => return ExitCode::from(cli::CLEAN),
        Err(_) => return ExitCode::from(cli::COULD_NOT_RUN),
    }
    let arguments = cli::arguments(all);
    let color = cli::early_color(&arguments, environment::variable("CARGO_TERM_COLOR"));
    let command = cli::command().color(color.for_clap());
    let parsed = command
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Help and usage errors both arrive here; a closed stream is no error.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() {
                cli::USAGE
            } else {
                cli::CLEAN
            });
        }
    };
    let mut shell = Shell::new(color, cli.global.verbosity(), cli.global.message_format);
    let mut ran = cmd::run(cli.command, &mut shell);
    if let Err(error) = &ran {
        shell.error(error);
    }
    if let Err(error) = shell.finish() {
        shell.error(&error);
        ran = Err(error);
    }
    ExitCode::from(match ran {
        Ok(true) => cli::CLEAN,
        Ok(false) => cli::FINDINGS,
        Err(_) => cli::COULD_NOT_RUN,
    })
}
