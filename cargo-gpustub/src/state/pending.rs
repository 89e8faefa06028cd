//! Changes that `sync` would make, for all commands that report or apply them.

mod package;
mod remains;

use gpustub_core::diag::{Diagnostic, INVALID_VALUE, OUT_OF_SYNC};
use gpustub_core::manifest::in_out_dir;
use gpustub_engine::archive;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::finalizer;
use gpustub_workspace::lock;
use gpustub_workspace::ops::Operation;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::tables::{self, Declared, Members};
use gpustub_workspace::workspace::Workspace;

use crate::shipped;
use crate::toolkit;
use crate::toolkit::headers::Headers;

pub use remains::{parts, remains, sentence};

/// Rejects, with `--locked`, changes for which cargo would update `Cargo.lock`.
pub fn refuse_locked(options: &Selection, operations: &[Operation]) -> Result<()> {
    let manifest = operations
        .iter()
        .find(|operation| operation.path.ends_with("Cargo.toml"));
    match manifest {
        Some(manifest) if options.is_locked() => {
            let message = format!(
                "`{}` and Cargo.lock must be updated, but `--locked` was passed",
                manifest.display_path
            );
            let help = "run the command without `--locked`, and commit the changes";
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
    let mut pending = workspace.edits().clone();
    let mut diagnostics = Vec::new();
    for package in workspace.selected()? {
        package::remove_stale_lines(workspace, members, package, &mut pending)?;
        if !has_links {
            finalizer::remove_lines(package, &mut pending)?;
        }
        let declares = members
            .selected
            .iter()
            .any(|(selected, _)| selected.id == package.id);
        if !declares && !finalizer::is_finalizer(package) {
            diagnostics.extend(remains(package));
        }
    }
    for (package, declared) in &members.selected {
        diagnostics.extend(declarations(declared));
        let has_edits = declared.provides()
            || declared.has_rdc()
            || declared.has_modules()
            || declared.has_archives();
        if has_edits {
            package::edits(
                workspace,
                members,
                package,
                declared,
                &mut pending,
                &mut diagnostics,
            )?;
        }
    }
    if has_links {
        finalizer::operations(workspace, options, &mut pending, &mut diagnostics)?;
    }
    // The file of a finalizer follows those of its program, which may change in this run.
    let lists = members
        .all()
        .filter(|(package, _)| !finalizer::is_finalizer(package))
        .map(|(_, declared)| declared);
    let lock = lock::text(lists);
    pending.write(&workspace.root().join(lock::FILE), lock)?;
    if let Some(shared) = Declared::read_shared(workspace)? {
        let operations =
            toolkit::operations(workspace, &shared, &Headers::new(), &mut diagnostics)?;
        for operation in operations {
            pending.push(operation);
        }
    }
    Ok((pending.into_operations(), diagnostics))
}

/// Diagnostic for a file that `sync` would change.
pub fn drift(operation: &Operation) -> Diagnostic {
    let message = format!(
        "`{}` does not agree with {}",
        operation.display_path,
        tables::FILE
    );
    Diagnostic::error(&OUT_OF_SYNC, message)
        .with_origin(&operation.display_path, 0..0)
        .help("run `cargo gpustub sync`")
}

/// Errors of a package's build script that its tables show, whatever features are enabled: tables
/// with `required-features` are left out.
fn declarations(declared: &Declared) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let manifest = &declared.manifest;
    for archive in &manifest.archives {
        if !archive.required_features.0.is_empty() {
            continue;
        }
        let mut existing = archive.clone();
        for id in archive.layers.ids() {
            // The build script writes the others.
            existing.layers[id]
                .files
                .retain(|file| in_out_dir(&file.value).is_none());
        }
        let files = archive::find(&existing, &declared.display_path, &declared.directory, None);
        diagnostics.extend(files.err().into_iter().flatten());
    }
    for stub in &manifest.stubs {
        if let (Some(newer), Some(version)) = (shipped::newer_headers(stub), &stub.header_version) {
            diagnostics.push(newer.with_origin(&declared.display_path, version.span.clone()));
        }
    }
    let mut stubs = manifest
        .stubs
        .iter()
        .filter(|stub| stub.provide && stub.required_features.0.is_empty());
    if let Some(first) = stubs.next()
        && let Some(second) = stubs.find(|stub| stub.library_type != first.library_type)
    {
        let message = format!(
            "the stubs of `{}` and `{}` differ in `type`: those of one package are one library",
            first.id.value, second.id.value
        );
        let error = Diagnostic::error(&INVALID_VALUE, message)
            .with_origin(&declared.display_path, second.id.span.clone());
        diagnostics.push(error.help("give every [stub] table of this package the same `type`"));
    }
    diagnostics
}
