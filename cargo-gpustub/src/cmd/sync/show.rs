//! Pending changes in the output of `sync`.

use cargo_metadata::{Package, TargetKind};
use gpustub_core::diag::{Diagnostic, OUT_OF_SYNC};
use gpustub_core::manifest::{LibraryType, Stub};
use gpustub_workspace::error::Result;
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::output::MessageFormat;
use gpustub_workspace::report::{self, Sources};
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{self, Declared};
use gpustub_workspace::workspace::Workspace;

use crate::state::pending::drift;

/// Splits off the changes of source files, for `--print-use-lines`: existing root files of targets
/// other than build scripts. Changes of one file become one.
pub(super) fn split_sources(
    workspace: &Workspace,
    operations: Vec<Operation>,
) -> (Vec<Operation>, Vec<Operation>) {
    let members = workspace.members();
    let targets = || members.iter().flat_map(|member| &member.targets);
    let is_source = |one: &Operation| {
        let is_it = |target: &cargo_metadata::Target| {
            target.src_path == one.path && !target.is_kind(TargetKind::CustomBuild)
        };
        !one.creates() && targets().any(is_it)
    };
    let (sources, others) = operations.into_iter().partition(is_source);
    (others, ops::merge(sources))
}

/// Prints the changed lines of source files, with their positions in the changed files.
pub(super) fn lines(sources: &[Operation], shell: &mut Shell) -> Result<()> {
    for operation in sources {
        match shell.format() {
            MessageFormat::Human | MessageFormat::Short => {
                for (number, line) in operation.changed_lines() {
                    shell.data(format!("{}:{number}: {line}\n", operation.shown))?;
                }
            }
            _ => change(operation, shell)?,
        }
    }
    if !sources.is_empty() {
        shell.note("no source file was written (--print-use-lines): change the printed lines");
    }
    Ok(())
}

/// Notes that `cargo install` leaves shared stubs behind: cargo has no way to install a library.
pub(super) fn left_behind(package: &Package, one: &Declared, shell: &mut Shell) {
    let is_shared = |stub: &Stub| stub.provide && stub.library_type == LibraryType::Shared;
    let has_program = package.targets.iter().any(cargo_metadata::Target::is_bin);
    if has_program && one.manifest.stubs.iter().any(is_shared) {
        let name = &package.name;
        let file = format!("libgpustub_{}.so", name.replace('-', "_"));
        shell.note(format!(
            "`cargo install {name}` installs programs without `{file}`, and they do not start: \
             use static stubs, or copy it from `target/release` beside them"
        ));
    }
}

/// Prints the changes that `--check` or `--dry-run` does not write. `sources`: changes of which only
/// lines were printed.
pub(super) fn changes(
    operations: &[Operation],
    sources: &[Operation],
    check: bool,
    shell: &mut Shell,
) -> Result<()> {
    for operation in operations {
        match shell.format() {
            MessageFormat::Human | MessageFormat::Short => shell.diff(&operation.diff())?,
            _ => change(operation, shell)?,
        }
    }
    let all: Vec<&Operation> = operations.iter().chain(sources).collect();
    match all.as_slice() {
        [] => {}
        all if check => {
            let what = match all {
                [one] => format!("`{}` does not agree with {}", one.shown, tables::FILE),
                many => format!("{} files do not agree with {}", many.len(), tables::FILE),
            };
            let help = if operations.is_empty() {
                "change the printed lines, or run `cargo gpustub sync` without `--print-use-lines`"
            } else {
                "run `cargo gpustub sync`"
            };
            let one = Diagnostic::error(&OUT_OF_SYNC, what).help(help);
            if ![MessageFormat::Github, MessageFormat::Sarif].contains(&shell.format()) {
                shell.diagnostics(&[one], &Sources::new())?;
            }
        }
        _ => shell.note("nothing was written (--dry-run)"),
    }
    Ok(())
}

/// Prints a change in a format for programs.
fn change(operation: &Operation, shell: &mut Shell) -> Result<()> {
    match shell.format() {
        MessageFormat::Json => shell.json(&report::json::change(operation, "planned")),
        _ => shell.diagnostics(&[drift(operation)], &Sources::new()),
    }
}
