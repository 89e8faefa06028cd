//! Dependencies that open GPU libraries with dlopen, and so never call the stubs.

use std::collections::BTreeSet;
use std::fs;

use gpustub_check::DLOPENING_DEPENDENCY;
use gpustub_check::known_crates::{KnownCrate, dlopening};
use gpustub_core::diag::Diagnostic;
use gpustub_workspace::error::Result;
use gpustub_workspace::report::Sources;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::workspace::{Depth, Workspace};

use crate::dependencies::{Dependency, crates};

/// Warns of crates of a workspace that never call the stubs `ids`. Only a lock file that names one of these
/// crates is worth the time for resolving features.
pub fn warn(
    options: &Selection,
    workspace: &Workspace,
    triple: &str,
    ids: &BTreeSet<&str>,
    shell: &mut Shell,
) -> Result<()> {
    let lock = fs::read_to_string(workspace.root().join("Cargo.lock")).unwrap_or_default();
    let is_locked = |name| lock.contains(&format!("name = \"{name}\"\n"));
    if ids.is_empty() || !dlopening().any(is_locked) {
        return Ok(());
    }
    // A graph that cannot be resolved, without a network for example, is no error of `sync`.
    match Workspace::load(options, Depth::Graph(triple)) {
        Ok(workspace) => warn_of(&crates(&workspace.metadata), Some(ids), shell),
        Err(_) => Ok(()),
    }
}

/// Warns of those of `crates` that never call the stubs `ids`, or any stubs.
pub fn warn_of(
    crates: &[Dependency],
    ids: Option<&BTreeSet<&str>>,
    shell: &mut Shell,
) -> Result<()> {
    let mut found = Vec::new();
    for one in crates {
        let Some(row) = one.dlopens() else {
            continue;
        };
        let libraries = unreached(one, row, ids);
        if !libraries.is_empty() {
            let message = format!(
                "{one} opens its libraries with dlopen and never calls the stubs of {}",
                listing(&libraries)
            );
            let warning = Diagnostic::warning(&DLOPENING_DEPENDENCY.code, message);
            found.push(warning.help(row.dlopen_help()));
        }
    }
    shell.diagnostics(&found, &Sources::new())
}

/// Libraries that a crate opens with dlopen.
fn unreached(
    one: &Dependency,
    row: &'static KnownCrate,
    ids: Option<&BTreeSet<&str>>,
) -> BTreeSet<&'static str> {
    let mut libraries = row.opened_libraries(&one.features);
    libraries.retain(|id| ids.is_none_or(|ids| ids.contains(id)));
    libraries
}

/// `cuda, nvrtc`.
pub fn listing(ids: &BTreeSet<&str>) -> String {
    ids.iter().copied().collect::<Vec<_>>().join(", ")
}
