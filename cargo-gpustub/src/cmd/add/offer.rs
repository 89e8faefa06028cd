//! Libraries that dependencies link: listed by `add` without a library, and noted with one.

use std::collections::BTreeSet;
use std::fs;

use gpustub_check::DLOPENING_DEPENDENCY;
use gpustub_check::known_crates::{Known, dlopening};
use gpustub_core::diag::Diagnostic;
use gpustub_core::library::Library;
use gpustub_core::manifest::Manifest;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::report::Sources;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::workspace::{Depth, Workspace, target};

use super::headers::KnownHeaders;
use crate::dependencies::{Dependencies, Dependency, crates};
use crate::shipped;
use crate::toolkit::installed::Found;

/// Lists the libraries that the dependencies link, and the command that adds them, which begins with
/// `command`.
pub fn list(
    dependencies: &Dependencies,
    manifest: &Manifest,
    known: &KnownHeaders,
    command: &str,
    shell: &mut Shell,
) -> Result<()> {
    let mut linked = BTreeSet::new();
    for one in &dependencies.linked {
        let links = one.links();
        if !links.is_empty() {
            let ids = join(&links);
            shell.status("Found", format!("{one}, which links {ids}"));
            linked.extend(links);
        }
    }
    warn(dependencies, None, shell)?;
    if linked.is_empty() {
        let known: Vec<&str> = Library::builtin_ids().collect();
        return Err(
            Error::new("no library named, and no dependency links a known one").help(format!(
                "name some: `cargo gpustub add cudart --header-version 13`; known libraries are {}",
                known.join(", ")
            )),
        );
    }
    linked.retain(|id| !declares(manifest, id));
    if linked.is_empty() {
        shell.status(
            "Fresh",
            "every library that the dependencies link is declared",
        );
        return Ok(());
    }
    let libraries: Vec<&Library> = linked
        .iter()
        .filter_map(|id| Library::builtin(id))
        .collect();
    let found = libraries.iter().map(|library| known.find(library));
    let found = found.into_iter().find(|found| !found.is_empty());
    if let Some(found) = &found {
        shell.status("Found", format!("header version {}", Found::listing(found)));
    }
    let depending: Vec<&Library> = libraries
        .into_iter()
        .filter(|library| shipped::depends_on_headers(library))
        .collect();
    let next = match found {
        None if !depending.is_empty() => format!(
            "`{command} {} {}`, with the version of the headers or bindings that the program is \
             compiled against",
            words(&linked),
            shipped::header_options(&depending, &target(None)?)
        ),
        _ => format!("`{command} {}`", words(&linked)),
    };
    shell.note(format!(
        "no library named; to declare those that the dependencies link: {next}"
    ));
    Ok(())
}

/// Notes the libraries that dependencies link in addition to the added ones, and warns of dependencies
/// that open the added ones with dlopen.
pub fn note_missing(
    added: &BTreeSet<&str>,
    dependencies: &Dependencies,
    manifest: &Manifest,
    command: &str,
    shell: &mut Shell,
) -> Result<()> {
    warn(dependencies, Some(added), shell)?;
    for one in &dependencies.linked {
        let mut missing = one.links();
        missing.retain(|id| !added.contains(id) && !declares(manifest, id));
        if !missing.is_empty() {
            shell.note(format!(
                "{one} links {}, too: `{command} {}`",
                join(&missing),
                words(&missing)
            ));
        }
    }
    Ok(())
}

/// Warns of dependencies that never call the stubs of these libraries, or of any.
fn warn(
    dependencies: &Dependencies,
    ids: Option<&BTreeSet<&str>>,
    shell: &mut Shell,
) -> Result<()> {
    warn_of(&dependencies.linked, ids, shell)
}

/// Warns of crates of a workspace that never call the stubs `ids`. Only a lock file that names one of these
/// crates is worth the time for resolving features.
pub fn warn_of_dlopen(
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

fn warn_of(crates: &[Dependency], ids: Option<&BTreeSet<&str>>, shell: &mut Shell) -> Result<()> {
    let mut found = Vec::new();
    for one in crates {
        let Some(row) = one.dlopens() else {
            continue;
        };
        let libraries = unreached(one, row, ids);
        if !libraries.is_empty() {
            let message = format!(
                "{one} opens its libraries with dlopen and never calls the stubs of {}",
                join(&libraries)
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
    row: &'static Known,
    ids: Option<&BTreeSet<&str>>,
) -> BTreeSet<&'static str> {
    let mut libraries = row.opened_libraries(&one.features);
    libraries.retain(|id| ids.is_none_or(|ids| ids.contains(id)));
    libraries
}

fn declares(manifest: &Manifest, id: &str) -> bool {
    manifest.stubs.iter().any(|stub| stub.id.value == id)
}

fn join(ids: &BTreeSet<&str>) -> String {
    ids.iter().copied().collect::<Vec<_>>().join(", ")
}

fn words(ids: &BTreeSet<&str>) -> String {
    ids.iter().copied().collect::<Vec<_>>().join(" ")
}
