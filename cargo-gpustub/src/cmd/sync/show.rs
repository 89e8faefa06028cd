//! Pending changes in the output of `sync`.

use std::collections::BTreeSet;
use std::path::Path;

use cargo_metadata::{Package, TargetKind};
use gpustub_core::diag::{Diagnostic, OUT_OF_SYNC};
use gpustub_core::manifest::LibraryType;
use gpustub_workspace::edit::cargo_toml;
use gpustub_workspace::error::Result;
use gpustub_workspace::helper_source::{is_patched, patch_for_version};
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
    let mut roots = BTreeSet::new();
    for member in workspace.members() {
        for target in &member.targets {
            if !target.is_kind(TargetKind::CustomBuild) {
                roots.insert(target.src_path.as_std_path());
            }
        }
    }
    let (sources, others) = operations
        .into_iter()
        .partition(|operation| !operation.creates() && roots.contains(operation.path.as_path()));
    (others, ops::merge(sources))
}

/// Prints the changed lines of source files, with their positions in the changed files.
pub(super) fn lines(sources: &[Operation], shell: &mut Shell) -> Result<()> {
    for operation in sources {
        match shell.format() {
            MessageFormat::Human | MessageFormat::Short => {
                for (number, line) in operation.changed_lines() {
                    shell.data(format!("{}:{number}: {line}\n", operation.display_path))?;
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

/// Notes how cargo finds the helper, if its version was written and the root manifest has no patch for it.
pub(super) fn helper_version(root: &Path, operations: &[Operation], shell: &mut Shell) {
    let line = format!("{} = \"{}\"", cargo_toml::HELPER, cargo_toml::REQUIREMENT);
    let writes_version = operations.iter().any(|operation| {
        let mut lines = operation.changed_lines().into_iter();
        operation.path.ends_with("Cargo.toml") && lines.any(|(_, text)| text == line)
    });
    if writes_version
        && !is_patched(root)
        && let Some(patch) = patch_for_version()
    {
        shell.note(format!(
            "until `{line}` is published, add this to the Cargo.toml of the workspace:\n{patch}"
        ));
    }
}

/// Notes that `cargo install` leaves shared stubs behind: cargo has no way to install a library.
pub(super) fn left_behind(package: &Package, declared: &Declared, shell: &mut Shell) {
    let has_program = package.targets.iter().any(cargo_metadata::Target::is_bin);
    let has_shared_stubs = declared
        .manifest
        .stubs
        .iter()
        .any(|stub| stub.provide && stub.library_type == LibraryType::Shared);
    if has_program && has_shared_stubs {
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
    let changes: Vec<&Operation> = operations.iter().chain(sources).collect();
    match changes.as_slice() {
        [] => {}
        changes if check => {
            let message = match changes {
                [change] => format!(
                    "`{}` does not agree with {}",
                    change.display_path,
                    tables::FILE
                ),
                _ => format!("{} files do not agree with {}", changes.len(), tables::FILE),
            };
            let help = if operations.is_empty() {
                "change the printed lines, or run `cargo gpustub sync` without `--print-use-lines`"
            } else {
                "run `cargo gpustub sync`"
            };
            if ![MessageFormat::Github, MessageFormat::Sarif].contains(&shell.format()) {
                let diagnostic = Diagnostic::error(&OUT_OF_SYNC, message).help(help);
                shell.diagnostics(&[diagnostic], &Sources::new())?;
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
