//! `sync` of packages that no longer declare anything.

use cargo_metadata::Package;
use gpustub_core::diag::{Diagnostic, has_errors};
use gpustub_workspace::error::Result;
use gpustub_workspace::lock;
use gpustub_workspace::ops::{self, Pending};
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::Declared;
use gpustub_workspace::workspace::Workspace;

use super::show;
use crate::cli;
use crate::state::pending;

/// Removes the lock file if no member declares anything, and reports what is left of earlier declarations. An error
/// if there is nothing: the file may be missing by mistake.
pub(super) fn run(
    options: &cli::Sync,
    workspace: &Workspace,
    unselected: &[(&Package, Declared)],
    shell: &mut Shell,
) -> Result<bool> {
    let selected = workspace.selected()?;
    let remains: Vec<Diagnostic> = selected
        .iter()
        .filter_map(|package| pending::remains(package))
        .collect();
    let mut pending = Pending::default();
    if unselected.is_empty() && Declared::read_root(workspace)?.is_none() {
        pending.remove(&workspace.root().join(lock::FILE))?;
    }
    let operations = pending.into_operations();
    if remains.is_empty() && operations.is_empty() {
        return Err(Declared::no_file(&selected));
    }
    if !options.check && !options.dry_run {
        ops::apply(&operations, |operation| {
            shell.status(operation.verb(), &operation.display_path)
        })?;
    }
    shell.diagnostics(&remains, &Sources::new())?;
    if options.check || options.dry_run {
        show::changes(&operations, &[], options.check, shell)?;
    }
    Ok(!has_errors(&remains) && (operations.is_empty() || !options.check))
}
