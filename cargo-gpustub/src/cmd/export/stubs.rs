//! `cargo gpustub export stubs`: stubs for builds without cargo.
//!
//! ```text
//! DIR/src        the sources, for a build that compiles them itself
//! DIR/include    gpustub.h
//! DIR/link       directory for `-L` (`/LIBPATH:`): an archive for each library; with --type shared, what linkers read in
//!                place of the shared library, and a linker script for each library
//! DIR/lib        with --type shared: the library to ship; with --soname: a library for each, and nothing else
//! DIR            files of CMake, Meson, Bazel and pkg-config (`export/stubs/build_files.rs`)
//! ```

mod build_files;
mod files;
mod importers;
mod request;
mod soname;

use std::fs;

use gpustub_core::diag::has_errors;
use gpustub_core::library::Library;
use gpustub_core::manifest::LibraryType;
use gpustub_core::plan::{LibraryPlan, Plan};
use gpustub_core::sources::{SourceSet, render_for_c};
use gpustub_core::target::Target;
use gpustub_engine::toolchain::shared::version_script;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::edit::templates;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Operation;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::workspace::{host_triple, target};
use serde_json::json;

use crate::cli;
use crate::compile;
use files::{Files, archive_name, refuse_target};
use importers::{Importers, StubFunctions};
use request::StubRequest;

/// Maximum length of the shared library's name, which is part of a file name.
const MAX_NAME: usize = 200;

/// Runs the command.
pub fn run(options: &cli::ExportStubs, shell: &mut Shell) -> Result<bool> {
    let target = target(options.target.as_deref())?;
    if target.os == "macos" {
        let message = format!(
            "no stubs for {} are exported: they are for cargo only",
            target.triple
        );
        let help = "leave the GPU code out there: GPU libraries do not exist for macOS";
        return Err(Error::new(message).help(help));
    }
    let importers = Importers::read(&options.importers)?;
    if let Some(importers) = &importers {
        importers.check_format(&target)?;
    }
    if !options.soname.is_empty() {
        refuse_shared(&target, "leave out `--soname`")?;
        return soname::run(options, &target, importers.as_ref(), shell);
    }
    let Some(plan) = plan(options, &target, importers.as_ref(), shell)? else {
        return Ok(false);
    };
    if plan.libraries.iter().all(|library| !library.stubbed) {
        return Err(Error::new("no library to make stubs for").help(
            "name some: `cargo gpustub export stubs cudart --header-version 13 --out-dir stubs`",
        ));
    }
    let name = match library_type(options, &plan)? {
        LibraryType::Shared => {
            refuse_shared(&target, "`--type static`")?;
            Some(shared_name(options.name.as_deref(), &plan)?)
        }
        LibraryType::Static if options.name.is_some() => {
            return Err(Error::new("`--name` names a shared library").help("add `--type shared`"));
        }
        LibraryType::Static => None,
    };
    let mut files = files(options, &plan, &target, name.as_deref())?;
    let is_ours = options.out_dir.join("src/gpustub_libraries.inc").exists();
    if is_ours {
        remove_stale(&mut files)?;
    }
    let help = "name a directory for the stubs alone, such as `--out-dir stubs`";
    Operation::refuse_to_replace(&files.operations, is_ours, help)?;
    files.write(shell)?;
    shell.note(next_step(options, &plan, name.as_deref()));
    Ok(true)
}

/// An error if stubs for the target cannot be a library of their own. `change`: options for static ones.
fn refuse_shared(target: &Target, change: &str) -> Result<()> {
    match target.check_shared_stubs() {
        Some(diagnostic) if target.os == "windows" => {
            Err(Error::new(diagnostic.message).help(format!("export static stubs: {change}")))
        }
        _ => Ok(()),
    }
}

/// Plans the stubs and prints the diagnostics. `None`: some are errors.
fn plan(
    options: &cli::ExportStubs,
    target: &Target,
    importers: Option<&Importers>,
    shell: &mut Shell,
) -> Result<Option<Plan>> {
    let mut request = StubRequest {
        libraries: options.libraries.clone(),
        header_version: options.header_version.clone(),
        cargo: &options.cargo,
    };
    if let Some(importers) = importers {
        if request.libraries.is_empty() {
            request.libraries = importers.libraries(&target.os)?;
        }
        request.add_header_versions(&target.os, importers.needed())?;
    }
    let (mut plan, mut diagnostics, sources) = request.plan(target)?;
    refuse_target(&mut diagnostics);
    if let Some(importers) = importers.filter(|_| !has_errors(&diagnostics)) {
        let mut provided = StubFunctions::default();
        provided.add(&plan);
        importers.check_any(&provided)?;
        importers.restrict(&mut plan);
        diagnostics.extend(importers.without_stub(&target.os, &provided));
    }
    shell.diagnostics(&diagnostics, &sources)?;
    Ok((!has_errors(&diagnostics)).then_some(plan))
}

/// The type that `--type` sets, or else that all declared stubs share.
fn library_type(options: &cli::ExportStubs, plan: &Plan) -> Result<LibraryType> {
    match options.library_type {
        Some(cli::StubType::Static) => return Ok(LibraryType::Static),
        Some(cli::StubType::Shared) => return Ok(LibraryType::Shared),
        None => {}
    }
    let mut types = plan
        .libraries
        .iter()
        .filter(|library| library.stubbed)
        .map(|library| library.library_type);
    let first = types.next().unwrap_or_default();
    if types.any(|library_type| library_type != first) {
        return Err(
            Error::new("stubs have different types: some are static, some shared")
                .help("choose one for all with `--type`"),
        );
    }
    Ok(first)
}

/// All files of an export. `name` is that of the shared library.
fn files<'a>(
    options: &'a cli::ExportStubs,
    plan: &Plan,
    target: &Target,
    name: Option<&str>,
) -> Result<Files<'a>> {
    let sources = render_for_c(plan);
    let mut files = Files {
        options,
        operations: Vec::new(),
    };
    for (path, text) in &sources {
        // The client of a shared library has no use without one, and rustc is for build scripts.
        let is_unused = match path.as_str() {
            "client.c" => name.is_none(),
            "stubs.rs" => true,
            _ => false,
        };
        if !is_unused {
            files.add(&format!("src/{path}"), text.as_bytes())?;
        }
    }
    if target.env == "msvc" {
        files.add(
            "src/stubs.obj",
            &compile::stubs(&sources, target, &host_triple())?,
        )?;
    }
    if let Some(name) = name {
        files.add("src/gpustub.map", version_script(name).as_bytes())?;
    }
    let header = sources.get("gpustub.h").map_or("", String::as_str);
    files.add("include/gpustub.h", header.as_bytes())?;
    if !options.sources_only {
        link_directory(&mut files, plan, &sources, target, name)?;
    }
    for (path, text) in build_files::render(plan, &sources, target, name, options.sources_only) {
        files.add(&path, text.as_bytes())?;
    }
    Ok(files)
}

/// The name after `-l` of the shared library. Other software finds a GPU library in a process by a
/// part of its file name, so the name must not contain that of a real one.
fn shared_name(name_option: Option<&str>, plan: &Plan) -> Result<String> {
    let stubbed: Vec<&LibraryPlan> = plan
        .libraries
        .iter()
        .filter(|library| library.stubbed)
        .collect();
    let ids: Vec<&str> = stubbed
        .iter()
        .map(|library| library.library.id.as_str())
        .collect();
    let default_name = format!("gpustub_{}", ids.join("_"));
    let name = name_option.unwrap_or(&default_name);
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.'));
    if name.is_empty() || name.len() > MAX_NAME || !is_plain {
        return Err(
            Error::new(format!("`{name}` cannot be the name of a library"))
                .help("letters, digits, `_`, `-`, `+` and `.` make a name"),
        );
    }
    let file = format!("lib{name}.so").to_ascii_lowercase();
    let stubbed_names = stubbed
        .iter()
        .flat_map(|library| &library.library.link_names);
    let real_name = Library::builtin_ids()
        .filter_map(Library::builtin)
        .flat_map(|library| &library.link_names)
        .chain(stubbed_names)
        .filter(|link_name| file.contains(&format!("lib{}", link_name.to_ascii_lowercase())))
        .max_by_key(|link_name| link_name.len());
    match real_name {
        None => Ok(name.to_owned()),
        Some(real_name) => Err(Error::new(format!(
            "`lib{name}.so` would match a search for the real lib{real_name} among the \
             loaded libraries"
        ))
        .help(format!(
            "choose another name, for example `--name {default_name}`"
        ))),
    }
}

/// Adds the libraries under the names of the real ones.
fn link_directory(
    files: &mut Files<'_>,
    plan: &Plan,
    sources: &SourceSet,
    target: &Target,
    name: Option<&str>,
) -> Result<()> {
    let host = host_triple();
    let Some(name) = name else {
        for (library, bytes) in compile::archives(plan, sources, target, &host)? {
            for link_name in &library.library.link_names {
                files.add(&format!("link/{}", archive_name(target, link_name)), &bytes)?;
            }
        }
        return Ok(());
    };
    let file = format!("lib{name}.so");
    let shared = compile::shared(sources, target, &host, &file)?;
    files.add(&format!("lib/{file}"), &shared.library)?;
    files.add(&format!("link/{file}"), &shared.link_library)?;
    files.add(&format!("link/lib{name}.api.o"), &shared.client)?;
    let script = templates::render("linker-script", &json!({ "name": name }));
    for library in plan.libraries.iter().filter(|library| library.stubbed) {
        for link_name in &library.library.link_names {
            files.add(&format!("link/lib{link_name}.so"), script.as_bytes())?;
        }
    }
    Ok(())
}

/// C compiler in a printed command: `cc` compiles for the host only.
fn compiler(target: Option<&str>) -> String {
    match target {
        Some("x86_64-pc-windows-gnu") => "x86_64-w64-mingw32-gcc".to_owned(),
        Some(triple) if triple != host_triple() => format!("<C compiler for {triple}>"),
        _ => "cc".to_owned(),
    }
}

/// Adds the removal of files that an earlier run wrote for other libraries or another type, since linkers
/// and pkg-config would still find them. A project may have files of its own beside them.
fn remove_stale(files: &mut Files<'_>) -> Result<()> {
    let mut link_files: Vec<String> = Vec::new();
    for library in Library::builtin_ids().filter_map(Library::builtin) {
        for name in &library.link_names {
            link_files.extend([
                format!("lib{name}.a"),
                format!("lib{name}.so"),
                format!("{name}.lib"),
            ]);
        }
    }
    let mut stale = Vec::new();
    for directory in ["link", "lib", "pkgconfig"] {
        let Ok(entries) = fs::read_dir(files.options.out_dir.join(directory)) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_generated = match directory {
                "pkgconfig" => name.starts_with("gpustub") && name.ends_with(".pc"),
                "link" if link_files.iter().any(|file| *file == name) => true,
                _ => name.starts_with("libgpustub_"),
            };
            let mut operations = files.operations.iter();
            if is_generated && !operations.any(|operation| operation.path == path) {
                stale.push(path);
            }
        }
    }
    stale.sort_unstable();
    for path in stale {
        let display_path = slashes(&path);
        files
            .operations
            .push(Operation::remove(path, display_path)?);
    }
    Ok(())
}

fn next_step(options: &cli::ExportStubs, plan: &Plan, name: Option<&str>) -> String {
    let out = slashes(&options.out_dir);
    let link_names = || {
        let stubbed = plan.libraries.iter().filter(|library| library.stubbed);
        stubbed.flat_map(|library| &library.library.link_names)
    };
    if plan.target.env == "msvc" && !options.sources_only {
        let files: Vec<String> = link_names().map(|name| format!("{name}.lib")).collect();
        let files = files.join(" ");
        return format!("next: `cl prog.c /link /LIBPATH:{out}/link {files} /OPT:REF`");
    }
    let names: Vec<String> = link_names().map(|name| format!("-l{name}")).collect();
    let names = names.join(" ");
    let compiler = compiler(options.target.as_deref());
    match name {
        Some(_) if options.sources_only => format!(
            "next: `find_package(gpustub)` with CMake or `subdir` with Meson, on {out}, build the shared library"
        ),
        None if options.sources_only && plan.target.os == "windows" => format!(
            "next: `find_package(gpustub)` with CMake or `subdir` with Meson, on {out}, compile the run time"
        ),
        None if options.sources_only => format!(
            "next: compile {out}/src/runtime.c and {out}/src/stubs.S with \
             `-std=gnu11 -fPIC -fvisibility=hidden` and link both into the program"
        ),
        None => {
            // dlopen is in a separate library up to glibc 2.33.
            let dl = if plan.target.os == "linux" {
                " -ldl"
            } else {
                ""
            };
            format!("next: `{compiler} prog.c -L {out}/link {names}{dl} -Wl,--gc-sections`")
        }
        Some(name) => format!(
            "next: `{compiler} prog.c -L {out}/link {names} -Wl,-rpath,'$ORIGIN'`, and ship \
             {out}/lib/lib{name}.so beside the program (never the files of {out}/link)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cc_compiles_for_the_host_only() {
        assert_eq!(compiler(None), "cc");
        assert_eq!(compiler(Some(&host_triple())), "cc");
        assert_eq!(
            compiler(Some("riscv64gc-unknown-linux-gnu")),
            "<C compiler for riscv64gc-unknown-linux-gnu>"
        );
    }
}
