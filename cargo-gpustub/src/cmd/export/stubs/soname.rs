//! `--soname`: libraries of stubs with the file names and symbol versions of real ones.

use std::collections::BTreeMap;
use std::fs;

use gpustub_core::diag::has_errors;
use gpustub_core::library::Library;
use gpustub_core::manifest::LibraryType;
use gpustub_core::plan::{LibraryPlan, Plan, Spec};
use gpustub_core::sources::render_for_c;
use gpustub_core::suggest::nearest;
use gpustub_core::target::Target;
use gpustub_engine::toolchain::shared::soname_script;
use gpustub_image::is_stub_library;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Operation;
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::workspace::host_triple;

use super::files::{Files, refuse_target};
use super::importers::{Importers, StubFunctions};
use super::request::StubRequest;
use crate::cli;
use crate::cli::FamilyVersion;
use crate::compile;
use crate::shipped;

/// One library of stubs.
struct SonameStubs {
    /// File name and soname.
    file: String,
    plan: Plan,
    /// Version script.
    script: String,
}

/// Runs the command. `false`: diagnostics that are errors.
pub fn run(
    options: &cli::ExportStubs,
    target: &Target,
    importers: Option<&Importers>,
    shell: &mut Shell,
) -> Result<bool> {
    if options.library_type == Some(cli::StubType::Static) {
        return Err(Error::new("`--soname` makes shared libraries").help("remove `--type static`"));
    }
    let requests = requests(options, &target.os)?;
    let mut stub_libraries = Vec::new();
    let mut provided = StubFunctions::default();
    for (file, request) in &requests {
        let (mut plan, mut diagnostics, sources) = request
            .plan(target)
            .map_err(|error| without_package(error, request, target, file))?;
        refuse_target(&mut diagnostics);
        shell.diagnostics(&diagnostics, &sources)?;
        if has_errors(&diagnostics) {
            return Ok(false);
        }
        keep_libraries(&mut plan, &target.os, file)?;
        let versions = keep_exports(&mut plan, &target.os, file);
        provided.add(&plan);
        if let Some(importers) = importers {
            importers.restrict(&mut plan);
        }
        let script = version_script(&plan, &versions)?;
        stub_libraries.push(SonameStubs {
            file: file.clone(),
            plan,
            script,
        });
    }
    if let Some(importers) = importers {
        importers.check_any(&provided)?;
        let warnings = importers.without_stub(&target.os, &provided);
        shell.diagnostics(&warnings, &Sources::new())?;
    }

    let mut files = Files {
        options,
        operations: Vec::new(),
    };
    let host = host_triple();
    for stubs in &stub_libraries {
        let sources = render_for_c(&stubs.plan);
        let bytes = compile::soname(&sources, target, &host, &stubs.file, &stubs.script)?;
        files.add(&format!("lib/{}", stubs.file), &bytes)?;
    }
    refuse_real_libraries(&files.operations)?;
    files.write(shell)?;
    let out = slashes(&options.out_dir);
    shell.note(format!(
        "next: `LD_LIBRARY_PATH={out}/lib program`; other libraries of that process get these stubs, too"
    ));
    Ok(true)
}

/// The file names in order, each with the libraries that it is a load name of.
fn requests<'a>(options: &'a cli::ExportStubs, os: &str) -> Result<Vec<(String, StubRequest<'a>)>> {
    let mut requests: Vec<(String, StubRequest<'a>)> = Vec::new();
    for soname in &options.soname {
        if requests.iter().any(|(earlier, _)| earlier == soname) {
            continue;
        }
        let library_ids: Vec<String> = if options.libraries.is_empty() {
            shipped::with_load_name(os, soname)
                .iter()
                .map(|library| library.id.clone())
                .collect()
        } else {
            // Libraries that gpustub does not know are declared in GpuStub.toml, with their load names.
            options
                .libraries
                .iter()
                .filter(|id| {
                    Library::builtin(id)
                        .is_none_or(|library| !library.load_names_like(os, soname).is_empty())
                })
                .cloned()
                .collect()
        };
        if library_ids.is_empty() && !options.libraries.is_empty() {
            let libraries: Vec<&Library> = options
                .libraries
                .iter()
                .filter_map(|id| Library::builtin(id))
                .collect();
            return Err(unknown_file(soname, os, &libraries));
        }
        let request = StubRequest {
            libraries: library_ids,
            header_version: Vec::new(),
            cargo: &options.cargo,
        };
        requests.push((soname.clone(), request));
    }
    add_header_versions(&mut requests, options, os)?;
    Ok(requests)
}

/// Sets the header version of each library: that of the options, else the major of the file name.
fn add_header_versions(
    requests: &mut [(String, StubRequest<'_>)],
    options: &cli::ExportStubs,
    os: &str,
) -> Result<()> {
    let mut libraries: Vec<&'static Library> = requests
        .iter()
        .flat_map(|(_, request)| &request.libraries)
        .filter_map(|name| Library::builtin(name))
        .collect();
    libraries.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    libraries.dedup_by(|a, b| a.id == b.id);
    let versions = if libraries.is_empty() {
        Vec::new()
    } else {
        shipped::header_versions(&libraries, &options.header_version)?
    };
    for (file, request) in requests {
        if !request.is_shipped() {
            request.header_version.clone_from(&options.header_version);
            continue;
        }
        for (library, version) in libraries.iter().zip(&versions) {
            if let Some(version) = version
                && request.libraries.contains(&library.id)
            {
                request.header_version.push(FamilyVersion {
                    family: Some(library.id.clone()),
                    version: (*version).to_owned(),
                });
            }
        }
        request.add_header_versions(os, [file.as_str()])?;
    }
    Ok(())
}

/// Error about a file name that is none of these libraries' load names, or of any that gpustub knows.
fn unknown_file(file: &str, os: &str, libraries: &[&Library]) -> Error {
    let ids: Vec<String> = libraries
        .iter()
        .map(|library| format!("`{}`", library.id))
        .collect();
    let libraries_text = match ids.len() {
        0 => "any library that gpustub knows".to_owned(),
        _ => ids.join(" or "),
    };
    let error = Error::new(format!("`{file}` is not a file name of {libraries_text}"));
    if let Some(owner) = shipped::with_load_name(os, file).first() {
        return error.help(format!("it is one of `{}`: name that library", owner.id));
    }
    let names = load_names(libraries.iter().copied(), os);
    if names.is_empty() {
        let known = load_names(Library::builtin_ids().filter_map(Library::builtin), os);
        return match nearest(file, known) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help("`cargo gpustub doctor` lists the libraries and their file names"),
        };
    }
    let known = format!("known are {}", names.join(", "));
    match nearest(file, names) {
        Some(near) => error.help(format!("did you mean `{near}`? {known}")),
        None => error.help(known),
    }
}

/// Load names of the libraries on an operating system.
fn load_names<'a>(libraries: impl Iterator<Item = &'a Library>, os: &str) -> Vec<&'a str> {
    libraries
        .flat_map(|library| library.load_names.get(os).into_iter().flatten())
        .map(|name| name.name.as_str())
        .collect()
}

/// Without a package, the error is about the file name, which could be that of a declared library.
fn without_package(error: Error, request: &StubRequest<'_>, target: &Target, file: &str) -> Error {
    if request.libraries.is_empty() {
        unknown_file(file, &target.os, &[])
    } else {
        error
    }
}

/// Keeps the stubs of the libraries with this load name; their drivers are queried.
fn keep_libraries(plan: &mut Plan, os: &str, file: &str) -> Result<()> {
    let mut has_file = false;
    let mut drivers: Vec<String> = Vec::new();
    for library in plan
        .libraries
        .iter()
        .filter(|library| is_in_file(library, os, file))
    {
        has_file = true;
        drivers.extend(library.library.driver.clone());
    }
    if !has_file {
        let stubbed: Vec<&Library> = plan
            .libraries
            .iter()
            .filter(|library| library.stubbed)
            .map(|library| &*library.library)
            .collect();
        return Err(unknown_file(file, os, &stubbed));
    }
    if file.contains(['/', '\\']) {
        return Err(Error::new(format!("`{file}` is not a file name")));
    }
    plan.libraries
        .retain(|library| is_in_file(library, os, file) || drivers.contains(&library.library.id));
    for library in &mut plan.libraries {
        if is_in_file(library, os, file) {
            library.library_type = LibraryType::Shared;
        } else {
            library.stubbed = false;
            library.functions = Vec::new().into();
            library.specs = vec![Spec::default()].into();
        }
    }
    Ok(())
}

/// Whether the stubs of a library belong in this file: the library has stubs, and this load name.
fn is_in_file(library: &LibraryPlan, os: &str, file: &str) -> bool {
    library.stubbed && !library.library.load_names_like(os, file).is_empty()
}

/// Keeps the functions that the real library of this name has, and returns their version nodes.
fn keep_exports(plan: &mut Plan, os: &str, file: &str) -> BTreeMap<String, Option<String>> {
    let mut versions = BTreeMap::new();
    for library in plan.libraries.iter_mut().filter(|library| library.stubbed) {
        let library_versions: BTreeMap<String, Option<String>> = library
            .library
            .exports(os, file)
            .into_iter()
            .map(|export| (export.name.to_owned(), export.version.map(str::to_owned)))
            .collect();
        library
            .functions
            .to_mut()
            .retain(|function| library_versions.contains_key(&function.name));
        versions.extend(library_versions);
    }
    versions
}

fn version_script(plan: &Plan, versions: &BTreeMap<String, Option<String>>) -> Result<String> {
    let mut functions = Vec::new();
    for library in &plan.libraries {
        for function in library.functions.iter() {
            let version = versions.get(&function.name).and_then(Option::as_deref);
            if let Some(version) = version
                && !version
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            {
                return Err(Error::new(format!(
                    "the symbol version `{version}` of `{}` is not one that linkers accept",
                    function.name
                )));
            }
            functions.push((function.name.as_str(), version));
        }
    }
    Ok(soname_script(functions))
}

/// Rejects the replacement of a file that is no library of stubs, such as a toolkit's.
fn refuse_real_libraries(operations: &[Operation]) -> Result<()> {
    for operation in operations {
        let is_ours = fs::read(&operation.path).is_ok_and(|bytes| is_stub_library(&bytes));
        let help = "name a directory for the stubs alone, such as `--out-dir stubs`";
        Operation::refuse_to_replace(std::slice::from_ref(operation), is_ours, help)?;
    }
    Ok(())
}
