//! The commands. Each `run` returns whether it had no findings.

mod add;
mod archive;
mod check;
mod diff;
mod doctor;
mod explain;
mod export;
mod init;
mod man;
mod plan;
mod remove;
mod repair;
mod symbols;
mod sync;

use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::shell::Shell;

use crate::cli::{self, Command};
use crate::schema::schema;

/// Runs a command. `Ok(false)`: findings were printed.
pub fn run(command: Command, shell: &mut Shell) -> Result<bool> {
    match command {
        Command::Init(options) => init::run(&options, shell),
        Command::Add(options) => add::run(&options, shell),
        Command::Remove(options) => remove::run(&options, shell),
        Command::Sync(options) => sync::run(&options, shell),
        Command::Plan(options) => plan::run(&options, shell),
        Command::Check(options) => check::run(&options, shell),
        Command::Repair(options) => repair::run(&options, shell),
        Command::Doctor(options) => doctor::run(&options, shell),
        Command::Symbols(options) => symbols::run(&options, shell),
        Command::Diff(options) => diff::run(&options, shell),
        Command::Export(options) => export::run(&options, shell),
        Command::Archive(options) => archive::run(&options, shell),
        Command::Explain(options) => explain::run(&options, shell),
        Command::Schema => {
            shell.data(schema())?;
            Ok(true)
        }
        Command::Completions(options) => {
            let script = cli::registration(options.shell)
                .map_err(|e| Error::new(format!("could not write the script: {e}")))?;
            shell.data(script)?;
            Ok(true)
        }
        Command::Man(options) => man::run(&options, shell),
    }
}
