//! The commands. Each `run` returns whether it had no findings.

mod abi;
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
use gpustub_workspace::ops::Pending;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::Declared;

use crate::cli::{self, Changes, Command};
use crate::schema::schema;

/// Runs a command. `Ok(false)`: findings were printed.
pub fn run(command: Command, shell: &mut Shell) -> Result<bool> {
    match command {
        Command::Init(options) => init::run(&options, shell),
        Command::Add(options) => add(&options, shell),
        Command::Remove(options) => remove(&options, shell),
        Command::Sync(options) => sync::run(&options, shell),
        Command::Plan(options) => plan::run(&options, shell),
        Command::Check(options) => check::run(&options, shell),
        Command::Repair(options) => repair::run(&options, shell),
        Command::Doctor(options) => doctor::run(&options, shell),
        Command::Symbols(options) => symbols::run(&options, shell),
        Command::Diff(options) => diff::run(&options, shell),
        Command::Abi(options) => abi::run(&options, shell),
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

fn add(options: &cli::Add, shell: &mut Shell) -> Result<bool> {
    if options.libraries.is_empty() && !options.toolkit.is_given() {
        return add::list(options, shell);
    }
    if options.changes.dry_run && options.toolkit.is_given() {
        return Err(
            Error::new("`--dry-run` does not show changes of the toolkit directory")
                .help("leave it out, or the toolkit options"),
        );
    }
    if !options.libraries.is_empty() {
        let Some(edits) = add::edits(options, shell)? else {
            return Ok(false);
        };
        // Builds without cargo have no other files that follow.
        if Declared::without_package(&options.cargo)?.is_some() {
            let next = "cargo gpustub export stubs --out-dir stubs";
            return sync::run_edits_only(&edits, options.changes.dry_run, next, shell);
        }
        if !apply(&edits, &options.changes, &options.cargo, shell)? {
            return Ok(false);
        }
    }
    if options.toolkit.is_given() {
        return add::toolkit(&options.toolkit, &options.cargo, shell);
    }
    Ok(true)
}

fn remove(options: &cli::Remove, shell: &mut Shell) -> Result<bool> {
    let Some(edits) = remove::edits(options, shell)? else {
        return Ok(false);
    };
    let is_applied = apply(&edits, &options.changes, &options.cargo, shell)?;
    if is_applied && !options.changes.dry_run {
        remove::report_unused(options, shell)?;
    }
    Ok(is_applied)
}

/// Applies changes of `GpuStub.toml`, and those of the other files that follow from them.
fn apply(
    edits: &Pending,
    changes: &Changes,
    selection: &Selection,
    shell: &mut Shell,
) -> Result<bool> {
    if changes.no_sync {
        return sync::run_edits_only(edits, changes.dry_run, "cargo gpustub sync", shell);
    }
    sync::run_with_edits(edits, changes.dry_run, selection, shell)
}
