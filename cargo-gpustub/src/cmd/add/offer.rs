//! Libraries that dependencies link: listed by `add` without a library, and noted with one.

use std::collections::BTreeSet;

use gpustub_core::library::Library;
use gpustub_core::manifest::Manifest;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::shell::Shell;
use gpustub_workspace::workspace::target;

use crate::dependencies::Dependencies;
use crate::shipped;
use crate::state::dlopen::{self, listing};
use crate::state::headers::KnownHeaders;
use crate::toolkit::installed::DetectedVersion;

/// Lists the libraries that the dependencies link, and the command that adds them, which begins with
/// `command`.
pub fn list(
    dependencies: &Dependencies,
    manifest: &Manifest,
    known: &KnownHeaders,
    command: &str,
    shell: &mut Shell,
) -> Result<()> {
    let mut linked = report_linked(dependencies, shell);
    dlopen::warn_of(&dependencies.linked, None, shell)?;
    if linked.is_empty() {
        let builtin_ids: Vec<&str> = Library::builtin_ids().collect();
        return Err(
            Error::new("no library named, and no dependency links a known one").help(format!(
                "name some: `cargo gpustub add cudart --header-version 13`; known libraries are {}",
                builtin_ids.join(", ")
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
    let detected = libraries
        .iter()
        .map(|library| known.find(library))
        .find(|versions| !versions.is_empty());
    if let Some(versions) = &detected {
        shell.status(
            "Found",
            format!("header version {}", DetectedVersion::listing(versions)),
        );
    }
    let depending: Vec<&Library> = libraries
        .into_iter()
        .filter(|library| shipped::depends_on_headers(library))
        .collect();
    let next = match detected {
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

/// Reports the crates that link libraries. Returns the ids of these libraries.
fn report_linked(dependencies: &Dependencies, shell: &mut Shell) -> BTreeSet<&'static str> {
    let mut linked = BTreeSet::new();
    for dependency in &dependencies.linked {
        let ids = dependency.links();
        if !ids.is_empty() {
            shell.status(
                "Found",
                format!("{dependency}, which links {}", listing(&ids)),
            );
            linked.extend(ids);
        }
    }
    linked
}

/// Notes the libraries that dependencies link in addition to the added ones.
pub fn note_missing(
    added: &BTreeSet<&str>,
    dependencies: &Dependencies,
    manifest: &Manifest,
    command: &str,
    shell: &mut Shell,
) {
    for dependency in &dependencies.linked {
        let mut missing = dependency.links();
        missing.retain(|id| !added.contains(id) && !declares(manifest, id));
        if !missing.is_empty() {
            shell.note(format!(
                "{dependency} links {}, too: `{command} {}`",
                listing(&missing),
                words(&missing)
            ));
        }
    }
}

fn declares(manifest: &Manifest, id: &str) -> bool {
    manifest.stubs.iter().any(|stub| stub.id.value == id)
}

fn words(ids: &BTreeSet<&str>) -> String {
    ids.iter().copied().collect::<Vec<_>>().join(" ")
}
