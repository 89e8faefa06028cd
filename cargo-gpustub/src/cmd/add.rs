//! `cargo gpustub add`: `[stub.<library>]` and `[toolkit]` tables in `GpuStub.toml`.

mod offer;
mod own;
mod toolkit;

use std::collections::BTreeSet;

use cargo_metadata::Package;
use gpustub_core::diag::{Diagnostic, MISSING_HEADER_VERSION, UNKNOWN_VERSION, has_errors};
use gpustub_core::library::Library;
use gpustub_core::planner::plan;
use gpustub_workspace::edit::gpustub_toml::add_stub;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::report::Sources;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace, directory, target};

use crate::cli;
use crate::dependencies::Dependencies;
use crate::shipped;
use crate::state::headers::KnownHeaders;
use crate::toolkit::installed::Found;

/// Runs the command.
pub fn run(options: &cli::Add, shell: &mut Shell) -> Result<bool> {
    let has_libraries = !options.libraries.is_empty() || !options.toolkit.is_given();
    let is_added = match &options.own.from {
        Some(file) => own::add(options, file, shell)?,
        None => !has_libraries || add_libraries(options, shell)?,
    };
    if !is_added {
        return Ok(false);
    }
    if options.toolkit.is_given() {
        return toolkit::add(&options.toolkit, &options.cargo, shell);
    }
    Ok(true)
}

fn add_libraries(options: &cli::Add, shell: &mut Shell) -> Result<bool> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let package = workspace.selected_package(|_| true)?;
    let (mut libraries, unknown) = shipped::look_up(&options.libraries);
    if !unknown.is_empty() {
        shell.diagnostics(&unknown, &Sources::new())?;
        return Ok(false);
    }
    let mut seen = BTreeSet::new();
    libraries.retain(|library| seen.insert(library.id.as_str()));
    let declared = Declared::read_all(&workspace, &[package])?.remove(0).1;
    shell.diagnostics(&declared.diagnostics, &declared.sources())?;
    if has_errors(&declared.diagnostics) {
        return Ok(false);
    }
    let dependencies = dependencies(&options.cargo, package, shell);
    let known = KnownHeaders {
        given: KnownHeaders::given(&options.toolkit),
        toolkit: Declared::read_shared(&workspace)?.and_then(|shared| shared.manifest.toolkit),
        crates: dependencies.all.clone(),
    };
    let command = match workspace.members().len() {
        1 => "cargo gpustub add".to_owned(),
        _ => format!("cargo gpustub add -p {}", package.name),
    };
    if libraries.is_empty() {
        offer::list(&dependencies, &declared.manifest, &known, &command, shell)?;
        return Ok(true);
    }

    let requests = requests(options, &libraries, &declared, &known)?;
    let mut text = declared.text.clone();
    for LibraryRequest {
        library, header, ..
    } in &requests
    {
        text = add_stub(&text, &library.id, header.as_deref()).map_err(|why| {
            Error::new(format!("could not edit `{}`: {why}", declared.display_path))
        })?;
    }
    let added = Declared::from_text(directory(package), text.clone())?;
    let given = options.header_version.iter();
    let given = given.map(|one| format!(" --header-version {one}"));
    let given = given.collect::<String>();
    let found = refused(added, &requests, &command, &given)?;
    shell.diagnostics(&found, &Sources::new())?;
    if has_errors(&found) {
        return Ok(false);
    }
    report(&requests, &declared.display_path, shell);
    let operation = Operation::write(
        directory(package).join(FILE),
        declared.display_path.clone(),
        text,
    )?;
    let is_done = operation.is_done();
    if !is_done {
        ops::apply(&[operation], |o| shell.status(o.verb(), &o.display_path))?;
    }
    let ids: BTreeSet<&str> = libraries.iter().map(|one| one.id.as_str()).collect();
    offer::note_missing(&ids, &dependencies, &declared.manifest, &command, shell)?;
    if !is_done {
        shell.note("next: `cargo gpustub sync`");
    }
    Ok(true)
}

/// Crates that the package links. A workspace whose graph cannot be resolved (no network yet) can
/// declare a library all the same.
fn dependencies(options: &Selection, package: &Package, shell: &mut Shell) -> Dependencies {
    Dependencies::read(options, package).unwrap_or_else(|error| {
        shell.detail("Skipped", format!("the dependency graph: {error}"));
        Dependencies::default()
    })
}

/// A library of the command line.
struct LibraryRequest {
    library: &'static Library,
    /// Whether the file declares it already.
    is_declared: bool,
    /// Header version to write.
    header: Option<String>,
    /// Versions that the workspace and this machine name; several if there is no header.
    found: Vec<Found>,
}

fn requests(
    options: &cli::Add,
    libraries: &[&'static Library],
    declared: &Declared,
    known: &KnownHeaders,
) -> Result<Vec<LibraryRequest>> {
    let given = shipped::header_versions(libraries, &options.header_version)?;
    let requests = libraries.iter().zip(given).map(|(library, given)| {
        let mut stubs = declared.manifest.stubs.iter();
        let stub = stubs.find(|stub| stub.id.value == library.id);
        let is_open = stub.is_none_or(|stub| stub.provide && stub.header_version.is_none());
        let found = match given {
            None if is_open => known.find(library),
            _ => Vec::new(),
        };
        let agreed = KnownHeaders::agreed(&found).map(|version| version.to_string());
        LibraryRequest {
            library,
            is_declared: stub.is_some(),
            header: given.map(str::to_owned).or(agreed),
            found,
        }
    });
    Ok(requests.collect())
}

/// Errors about the header versions of the requested libraries in the edited file. `given`: the options for others.
fn refused(
    mut added: Declared,
    requests: &[LibraryRequest],
    command: &str,
    given: &str,
) -> Result<Vec<Diagnostic>> {
    let host = target(None)?;
    let is_requested = |id: &str| requests.iter().any(|one| one.library.id == id);
    let stubs = &mut added.manifest.stubs;
    stubs.retain(|stub| is_requested(&stub.id.value));
    let (_, mut found) = plan(&added.manifest, &host, &added.inputs);
    let codes = [MISSING_HEADER_VERSION.id, UNKNOWN_VERSION.id];
    found.retain(|one| codes.contains(&one.code.id));
    let ids: Vec<&str> = requests.iter().map(|one| one.library.id.as_str()).collect();
    let command = format!("{command} {}{given}", ids.join(" "));
    shipped::on_command_line(&mut found, &added.manifest, &host, |options| {
        format!("run `{command} {options}`")
    });
    let mut conflicts = requests.iter().filter(|one| one.header.is_none());
    if let Some(LibraryRequest { found: several, .. }) = conflicts.find(|one| !one.found.is_empty())
    {
        let help = format!(
            "found several versions: {}; choose one: `{command} --header-version {}`",
            Found::listing(several),
            several[0].version
        );
        for one in &mut found {
            if one.code.id == MISSING_HEADER_VERSION.id {
                one.help = Some(help.clone());
            }
        }
    }
    Ok(found)
}

fn report(requests: &[LibraryRequest], shown: &str, shell: &mut Shell) {
    let mut reported: Vec<&[Found]> = Vec::new();
    for one in requests {
        let LibraryRequest { library, found, .. } = one;
        if !found.is_empty() && !reported.contains(&&found[..]) {
            reported.push(found);
            let versions = Found::listing(found);
            match &one.header {
                Some(_) => shell.status("Found", format!("header version {versions}")),
                None => shell.note(format!(
                    "no `header-version` for {}: found several versions: {versions}; choose one with \
                     `--header-version`",
                    library.id
                )),
            }
        }
        if one.is_declared && one.header.is_none() {
            let what = format!("{} is already declared in {shown}", library.id);
            shell.status("Fresh", what);
            continue;
        }
        let header = one.header.as_ref();
        let with = header.map_or_else(String::new, |header| format!(", header version {header}"));
        shell.status(
            if one.is_declared {
                "Changing"
            } else {
                "Adding"
            },
            format!("{} ({}){with}", library.id, library.title),
        );
    }
}
