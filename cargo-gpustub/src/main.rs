//! The subcommand `cargo gpustub`: everything of gpustub that has a terminal, a workspace or a
//! file of the user's in it. What it decides comes from `gpustub-core`.

mod cargo_tree;
mod cli;
mod cmd;
mod codes;
mod compile;
mod declared;
mod device_graph;
mod environment;
mod error;
mod finalizer;
mod graph;
mod imports;
mod ops;
mod providers;
mod report;
mod shell;
mod shipped;
mod templates;
mod toolkit;
mod tree;
mod workspace;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::cli::Cli;
use crate::shell::Shell;

fn main() -> ExitCode {
    let arguments = cli::arguments(std::env::args_os());
    let color = cli::early_color(&arguments, environment::variable("CARGO_TERM_COLOR"));
    let command = Cli::command().color(color.for_clap());
    let parsed = command
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Help and usage errors both arrive here; that nobody reads them is no error.
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
