//! `cargo gpustub add`: `[stub.<library>]` and `[toolkit]` tables in `GpuStub.toml`.

mod custom;
mod offer;
mod toolkit;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use cargo_metadata::Package;
use gpustub_core::diag::{Diagnostic, MISSING_HEADER_VERSION, UNKNOWN_VERSION, has_errors};
use gpustub_core::library::Library;
use gpustub_core::planner::plan;
use gpustub_core::version::HeaderChoice;
use gpustub_workspace::edit::gpustub_toml::{self, add_stub};
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Pending;
use gpustub_workspace::report::Sources;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, NO_PACKAGE, Workspace, directory, target};

use crate::cli;
use crate::dependencies::Dependencies;
use crate::shipped;
use crate::state::dlopen;
use crate::state::headers::{KnownHeaders, declared_headers};
use crate::toolkit::installed::DetectedVersion;

pub use toolkit::add as toolkit;

/// The changes of `GpuStub.toml` and symbol lists for the libraries of the command line; `None`: errors were printed.
pub fn edits(options: &cli::Add, shell: &mut Shell) -> Result<Option<Pending>> {
    if let Some(declared) = Declared::without_package(&options.cargo)? {
        return edits_without_package(options, declared, shell);
    }
    let workspace = load(options)?;
    let package = workspace.selected_package(|_| true)?;
    if let Some(file) = &options.own.from {
        return match declared(&workspace, package, shell)? {
            Some(declared) => {
                custom::edits(options, file, &declared, !options.changes.no_sync, shell)
            }
            None => Ok(None),
        };
    }
    let Some(libraries) = libraries(options, shell)? else {
        return Ok(None);
    };
    let Some(declared) = declared(&workspace, package, shell)? else {
        return Ok(None);
    };
    let dependencies = dependencies(&options.cargo, package, shell);
    let project = Project {
        known: known_headers(options, &workspace, &declared, &dependencies)?,
        command: command(&workspace, package),
        declared,
        dependencies,
    };
    project.add(&libraries, options, shell)
}

/// As [`edits`], for a file without `Cargo.toml`.
fn edits_without_package(
    options: &cli::Add,
    declared: Declared,
    shell: &mut Shell,
) -> Result<Option<Pending>> {
    shell.diagnostics(&declared.diagnostics, &declared.sources())?;
    if has_errors(&declared.diagnostics) {
        return Ok(None);
    }
    if let Some(file) = &options.own.from {
        return custom::edits(options, file, &declared, false, shell);
    }
    let Some(libraries) = libraries(options, shell)? else {
        return Ok(None);
    };
    let project = Project {
        known: KnownHeaders {
            declared: [declared_headers([&declared]), BTreeMap::new()],
            ..KnownHeaders::default()
        },
        command: COMMAND.to_owned(),
        declared,
        dependencies: Dependencies::default(),
    };
    project.add(&libraries, options, shell)
}

/// The libraries of the command line, each once; `None`: errors were printed.
fn libraries(options: &cli::Add, shell: &mut Shell) -> Result<Option<Vec<&'static Library>>> {
    let (mut libraries, unknown) = shipped::look_up(&options.libraries);
    shell.diagnostics(&unknown, &Sources::new())?;
    let mut ids = BTreeSet::new();
    libraries.retain(|library| ids.insert(library.id.as_str()));
    Ok(unknown.is_empty().then_some(libraries))
}

/// A file to edit, and what its package depends on.
struct Project {
    declared: Declared,
    dependencies: Dependencies,
    known: KnownHeaders,
    /// Command that adds libraries to the file.
    command: String,
}

impl Project {
    /// The file with tables for these libraries.
    fn add(
        &self,
        libraries: &[&'static Library],
        options: &cli::Add,
        shell: &mut Shell,
    ) -> Result<Option<Pending>> {
        let declared = &self.declared;
        let requests = requests(options, libraries, declared, &self.known)?;
        let text = declare(&requests, declared)?;
        let added = Declared::from_text(&declared.directory, text.clone())?;
        let diagnostics = header_errors(added, &requests, &self.command, options)?;
        shell.diagnostics(&diagnostics, &Sources::new())?;
        if has_errors(&diagnostics) {
            return Ok(None);
        }
        report(&requests, &declared.display_path, shell);
        let ids = libraries
            .iter()
            .map(|library| library.id.as_str())
            .collect();
        dlopen::warn_of(&self.dependencies.linked, Some(&ids), shell)?;
        offer::note_missing(
            &ids,
            &self.dependencies,
            &declared.manifest,
            &self.command,
            shell,
        );
        let mut edits = Pending::default();
        edits.write(&declared.directory.join(FILE), text)?;
        Ok(Some(edits))
    }
}

/// Lists the libraries that dependencies link.
pub fn list(options: &cli::Add, shell: &mut Shell) -> Result<bool> {
    let workspace = load(options)?;
    let package = workspace.selected_package(|_| true)?;
    let Some(declared) = declared(&workspace, package, shell)? else {
        return Ok(false);
    };
    let dependencies = dependencies(&options.cargo, package, shell);
    let known = known_headers(options, &workspace, &declared, &dependencies)?;
    let command = command(&workspace, package);
    offer::list(&dependencies, &declared.manifest, &known, &command, shell)?;
    Ok(true)
}

/// The workspace. Outside of a package, the error names the way of projects without cargo.
fn load(options: &cli::Add) -> Result<Workspace> {
    Workspace::load(&options.cargo, Depth::Members).map_err(|error| {
        if error.help.as_deref() != Some(NO_PACKAGE) {
            return error;
        }
        error.help(format!("{NO_PACKAGE}; {}", without_package(options)))
    })
}

/// The next step in a project without cargo.
fn without_package(options: &cli::Add) -> String {
    let names = &options.libraries;
    if options.own.from.is_some() || names.iter().any(|name| Library::builtin(name).is_none()) {
        return format!("in a project without cargo, write the line `schema = 1` to {FILE} first");
    }
    let mut words = names.clone();
    for version in &options.header_version {
        words.push(format!("--header-version {version}"));
    }
    if words.is_empty() {
        words.push("cudart --header-version 13".to_owned());
    }
    format!(
        "a project without cargo: `cargo gpustub export stubs {} --out-dir stubs`",
        words.join(" ")
    )
}

/// The package's file, or the one that `init` would write. `None`: errors were printed.
fn declared(
    workspace: &Workspace,
    package: &Package,
    shell: &mut Shell,
) -> Result<Option<Declared>> {
    let declared = match Declared::read(workspace, package)? {
        Some(declared) => declared,
        None => Declared::from_text(directory(package), gpustub_toml::new())?,
    };
    shell.diagnostics(&declared.diagnostics, &declared.sources())?;
    Ok((!has_errors(&declared.diagnostics)).then_some(declared))
}

fn known_headers(
    options: &cli::Add,
    workspace: &Workspace,
    declared: &Declared,
    dependencies: &Dependencies,
) -> Result<KnownHeaders> {
    let (_, others) = Declared::read_members(workspace)?;
    Ok(KnownHeaders {
        toolkit_option: KnownHeaders::toolkit_option(&options.toolkit),
        declared: [
            declared_headers([declared]),
            declared_headers(others.iter().map(|(_, other)| other)),
        ],
        toolkit_table: Declared::read_shared(workspace)?.and_then(|shared| shared.manifest.toolkit),
        crates: dependencies.all.clone(),
    })
}

/// The command without options.
const COMMAND: &str = "cargo gpustub add";

/// The command for a package of the workspace.
fn command(workspace: &Workspace, package: &Package) -> String {
    match workspace.members().len() {
        1 => COMMAND.to_owned(),
        _ => format!("{COMMAND} -p {}", package.name),
    }
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
    /// Header version to write: not the declared one.
    header: Option<String>,
    /// Versions that the workspace and this machine name; several if there is no header.
    detected: Vec<DetectedVersion>,
}

fn requests(
    options: &cli::Add,
    libraries: &[&'static Library],
    declared: &Declared,
    known: &KnownHeaders,
) -> Result<Vec<LibraryRequest>> {
    let header_versions = shipped::header_versions(libraries, &options.header_version)?;
    let mut requests = Vec::new();
    for (library, option) in libraries.iter().zip(header_versions) {
        let stub = declared
            .manifest
            .stubs
            .iter()
            .find(|stub| stub.id.value == library.id);
        let is_open = stub.is_none_or(|stub| stub.provide && stub.header_version.is_none());
        let detected = match option {
            None if is_open => known.find(library),
            _ => Vec::new(),
        };
        let agreed = KnownHeaders::agreed(&detected).map(|version| version.to_string());
        let declared_header = stub.and_then(|stub| Some(stub.header_version.as_ref()?.value));
        requests.push(LibraryRequest {
            library,
            is_declared: stub.is_some(),
            header: (option.map(str::to_owned).or(agreed))
                .filter(|header| HeaderChoice::parse(header) != declared_header),
            detected,
        });
    }
    Ok(requests)
}

/// Text of the file with the tables of the requested libraries.
fn declare(requests: &[LibraryRequest], declared: &Declared) -> Result<String> {
    let mut text = declared.text.clone();
    for request in requests {
        text = add_stub(&text, &request.library.id, request.header.as_deref()).map_err(|why| {
            Error::new(format!("could not edit `{}`: {why}", declared.display_path))
        })?;
    }
    Ok(text)
}

/// Errors about the header versions of the requested libraries in the edited file.
fn header_errors(
    mut added: Declared,
    requests: &[LibraryRequest],
    command: &str,
    options: &cli::Add,
) -> Result<Vec<Diagnostic>> {
    let host = target(None)?;
    let ids: Vec<&str> = requests
        .iter()
        .map(|request| request.library.id.as_str())
        .collect();
    let stubs = &mut added.manifest.stubs;
    stubs.retain(|stub| ids.contains(&stub.id.value.as_str()));
    let (_, mut diagnostics) = plan(&added.manifest, &host, &added.inputs);
    let codes = [MISSING_HEADER_VERSION.id, UNKNOWN_VERSION.id];
    diagnostics.retain(|diagnostic| codes.contains(&diagnostic.code.id));
    let mut command = format!("{command} {}", ids.join(" "));
    for version in &options.header_version {
        let _ = write!(command, " --header-version {version}");
    }
    shipped::on_command_line(&mut diagnostics, &added.manifest, &host, |options| {
        format!("run `{command} {options}`")
    });
    let conflict = requests
        .iter()
        .find(|request| request.header.is_none() && !request.detected.is_empty());
    if let Some(LibraryRequest { detected, .. }) = conflict {
        let help = format!(
            "found several versions: {}; choose one: `{command} --header-version {}`",
            DetectedVersion::listing(detected),
            detected[0].version
        );
        for diagnostic in &mut diagnostics {
            if diagnostic.code.id == MISSING_HEADER_VERSION.id {
                diagnostic.help = Some(help.clone());
            }
        }
    }
    Ok(diagnostics)
}

fn report(requests: &[LibraryRequest], file: &str, shell: &mut Shell) {
    let mut reported: Vec<&[DetectedVersion]> = Vec::new();
    for request in requests {
        let LibraryRequest {
            library,
            is_declared,
            header,
            detected,
        } = request;
        if !detected.is_empty() && !reported.contains(&&detected[..]) {
            reported.push(detected);
            let versions = DetectedVersion::listing(detected);
            match header {
                Some(_) => shell.status("Found", format!("header version {versions}")),
                None => shell.note(format!(
                    "no `header-version` for {}: found several versions: {versions}; choose one with \
                     `--header-version`",
                    library.id
                )),
            }
        }
        if *is_declared && header.is_none() {
            shell.status(
                "Fresh",
                format!("{} is already declared in {file}", library.id),
            );
            continue;
        }
        let with = match header {
            Some(header) => format!(", header version {header}"),
            None => String::new(),
        };
        shell.status(
            if *is_declared { "Changing" } else { "Adding" },
            format!("{} ({}){with}", library.id, library.title),
        );
    }
}
