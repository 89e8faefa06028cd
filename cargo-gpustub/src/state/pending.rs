//! Changes that `sync` would make, for all commands that report or apply them.

mod package;

use cargo_metadata::Package;
use gpustub_core::diag::{Diagnostic, INVALID_VALUE, OUT_OF_SYNC};
use gpustub_core::manifest::{Archive, in_out_dir};
use gpustub_engine::archive;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::finalizer;
use gpustub_workspace::lock;
use gpustub_workspace::ops::{Operation, Pending};
use gpustub_workspace::selection::Selection;
use gpustub_workspace::tables::{self, Declared, Members};
use gpustub_workspace::workspace::Workspace;

use crate::shipped;
use crate::toolkit;
use crate::toolkit::headers::Headers;

pub use package::remains;

/// Rejects, with `--locked`, changes for which cargo would update `Cargo.lock`.
pub fn refuse_locked(options: &Selection, operations: &[Operation]) -> Result<()> {
    let is_manifest = |one: &&Operation| one.path.ends_with("Cargo.toml");
    match operations.iter().find(is_manifest) {
        Some(one) if options.is_locked() => {
            let message = format!(
                "`{}` and Cargo.lock must be updated, but `--locked` was passed",
                one.shown
            );
            let help = "run `cargo gpustub sync` without `--locked`, and commit the changes";
            Err(Error::new(message).help(help))
        }
        _ => Ok(()),
    }
}

/// Changes that make the files agree with these declarations, and diagnostics. `has_links`: finalizers
/// may be needed.
pub fn pending(
    workspace: &Workspace,
    options: &Selection,
    members: &Members,
    has_links: bool,
) -> Result<(Vec<Operation>, Vec<Diagnostic>)> {
    let mut pending = Pending::default();
    let mut found = Vec::new();
    for package in workspace.selected()? {
        package::remove_stale_lines(workspace, members, package, &mut pending)?;
        if !has_links {
            finalizer::remove_lines(package, &mut pending)?;
        }
        let is_it = |(one, _): &(&Package, _)| one.id == package.id;
        if !members.selected.iter().any(is_it) && !finalizer::is_one(package) {
            found.extend(remains(package));
        }
    }
    for (package, one) in &members.selected {
        found.extend(declarations(one));
        if one.provides() || one.has_rdc() || one.has_modules() || one.has_archives() {
            package::edits(workspace, members, package, one, &mut pending, &mut found)?;
        }
    }
    if has_links {
        finalizer::operations(workspace, options, &mut pending, &mut found)?;
    }
    let lock = lock::text(members.all().map(|(_, one)| one));
    pending.write(&workspace.root().join(lock::FILE), lock)?;
    if let Some(shared) = Declared::read_shared(workspace)? {
        let made = toolkit::operations(workspace, &shared, &Headers::new(), &mut found)?;
        made.into_iter().for_each(|one| pending.push(one));
    }
    Ok((pending.into_operations(), found))
}

/// Diagnostic for a file that `sync` would change.
pub fn drift(operation: &Operation) -> Diagnostic {
    let what = format!("`{}` does not agree with {}", operation.shown, tables::FILE);
    let one = Diagnostic::error(&OUT_OF_SYNC, what).with_origin(&operation.shown, 0..0);
    one.help("run `cargo gpustub sync`")
}

/// Errors of a package's build script that its tables show, whatever features are enabled: tables
/// with `required-features` are left out.
fn declarations(declared: &Declared) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let manifest = &declared.manifest;
    let is_built = |archive: &&Archive| archive.required_features.0.is_empty();
    for archive in manifest.archives.iter().filter(is_built) {
        let mut known = archive.clone();
        let existing = archive.layers.iter().cloned().map(|mut layer| {
            // The build script writes the others.
            layer.files.retain(|file| in_out_dir(&file.value).is_none());
            layer
        });
        known.layers = existing.collect();
        let files = archive::find(&known, &declared.shown, &declared.directory, None);
        found.extend(files.err().into_iter().flatten());
    }
    for stub in &manifest.stubs {
        if let (Some(newer), Some(place)) = (shipped::newer_headers(stub), &stub.header_version) {
            found.push(newer.with_origin(&declared.shown, place.span.clone()));
        }
    }
    let stubs = manifest.stubs.iter();
    let mut stubs = stubs.filter(|stub| stub.provide && stub.required_features.0.is_empty());
    if let Some(first) = stubs.next()
        && let Some(other) = stubs.find(|stub| stub.library_type != first.library_type)
    {
        let message = format!(
            "the stubs of `{}` and `{}` differ in `type`: those of one package are one library",
            first.id.value, other.id.value
        );
        let error = Diagnostic::error(&INVALID_VALUE, message)
            .with_origin(&declared.shown, other.id.span.clone());
        found.push(error.help("give every [stub] table of this package the same `type`"));
    }
    found
}
