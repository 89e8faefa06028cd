//! The commands. Each one's `run` says whether all is clean.

mod add;
mod archive;
mod check;
mod diff;
mod doctor;
mod explain;
mod generate;
mod init;
mod install;
mod plan;
mod reference;
mod symbols;
mod sync;
mod toolkit;

use clap::CommandFactory;

use crate::cli::{Cli, Command};
use crate::error::Result;
use crate::shell::Shell;

/// Runs a command. `Ok(false)`: there are findings, which have been printed.
pub fn run(command: Command, shell: &mut Shell) -> Result<bool> {
    match command {
        Command::Init(options) => init::run(&options, shell),
        Command::Add(options) => add::run(&options, shell),
        Command::Sync(options) => sync::run(&options, shell),
        Command::Check(options) => check::run(&options, shell),
        Command::Toolkit(options) => toolkit::run(&options, shell),
        Command::Plan(options) => plan::run(&options, shell),
        Command::Symbols(options) => symbols::run(&options, shell),
        Command::Diff(options) => diff::run(&options, shell),
        Command::Generate(options) => generate::run(&options, shell),
        Command::Install(options) => install::run(&options, shell),
        Command::Archive(options) => archive::run(&options, shell),
        Command::Doctor(options) => doctor::run(&options, shell),
        Command::Explain(options) => explain::run(&options, shell),
        Command::Schema => {
            shell.data(reference::schema())?;
            Ok(true)
        }
        Command::Completions { shell: name } => {
            let mut script = Vec::new();
            let mut command = Cli::command().bin_name("cargo-gpustub");
            clap_complete::generate(name, &mut command, "cargo-gpustub", &mut script);
            shell.data(script)?;
            Ok(true)
        }
        Command::Reference(options) => reference::run(&options, shell),
    }
}
