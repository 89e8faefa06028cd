//! `cargo gpustub export stubs`: stubs for builds without cargo.
//!
//! ```text
//! DIR/src        the sources, for a build that compiles them itself
//! DIR/include    gpustub.h
//! DIR/link       directory for `-L`: an archive for each library; with --type shared, what linkers read in
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
use std::path::Path;

use gpustub_core::diag::has_errors;
use gpustub_core::library::Library;
use gpustub_core::manifest::LibraryType;
use gpustub_core::plan::Plan;
use gpustub_core::sources::{SourceSet, render_for_c};
use gpustub_core::target::Target;
use gpustub_engine::toolchain::shared::version_script;
use gpustub_workspace::edit::templates;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Operation;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::workspace::{host_triple, target};
use serde_json::json;

use crate::cli;
use crate::compile;
use files::{Files, refuse_target};
use importers::{Importers, Provided};
use request::Request;

/// Runs the command.
pub fn run(options: &cli::ExportStubs, shell: &mut Shell) -> Result<bool> {
    let target = target(options.target.as_deref())?;
    let importers = Importers::read(&options.importers)?;
    if !options.soname.is_empty() {
        return soname::run(options, &target, importers.as_ref(), shell);
    }
    let mut request = Request {
        libraries: options.libraries.clone(),
        header_version: options.header_version.clone(),
        cargo: &options.cargo,
    };
    if let Some(importers) = &importers {
        if request.libraries.is_empty() {
            request.libraries = importers.libraries(&target.os)?;
        }
        request.add_header_versions(&target.os, importers.needed())?;
    }
    let (mut plan, mut found, sources) = request.plan(&target)?;
    refuse_target(&mut found);
    if let Some(importers) = importers.filter(|_| !has_errors(&found)) {
        let mut provided = Provided::default();
        provided.add(&plan);
        importers.check_any(&provided)?;
        importers.restrict(&mut plan);
        found.extend(importers.without_stub(&target.os, &provided));
    }
    shell.diagnostics(&found, &sources)?;
    if has_errors(&found) {
        return Ok(false);
    }
    if plan.libraries.iter().all(|library| !library.stubbed) {
        return Err(Error::new("no library to make stubs for").help(
            "name some: `cargo gpustub export stubs cudart --header-version 13 --out-dir stubs`",
        ));
    }
    let library_type = match options.library_type {
        Some(cli::StubType::Static) => LibraryType::Static,
        Some(cli::StubType::Shared) => LibraryType::Shared,
        None => common_type(&plan)?,
    };
    let name = match library_type {
        LibraryType::Shared => Some(shared_name(options.name.as_deref(), &plan)?),
        LibraryType::Static if options.name.is_some() => {
            return Err(Error::new("`--name` names a shared library").help("add `--type shared`"));
        }
        LibraryType::Static => None,
    };

    let sources = render_for_c(&plan);
    let mut files = Files {
        options,
        operations: Vec::new(),
    };
    // The client of a shared library has no use without one.
    for (path, text) in &sources {
        if name.is_some() || path.as_str() != "client.c" {
            files.add(&format!("src/{path}"), text.as_bytes())?;
        }
    }
    if let Some(name) = &name {
        files.add("src/gpustub.map", version_script(name).as_bytes())?;
    }
    files.add(
        "include/gpustub.h",
        sources
            .get("gpustub.h")
            .map_or("", String::as_str)
            .as_bytes(),
    )?;
    if !options.sources_only {
        link_directory(&mut files, &plan, &sources, &target, name.as_deref())?;
    }
    for (path, text) in build_files::render(
        &plan,
        &sources,
        &target,
        name.as_deref(),
        options.sources_only,
    ) {
        files.add(&path, text.as_bytes())?;
    }
    let is_ours = options.out_dir.join("src/gpustub_table.inc").exists();
    if is_ours {
        remove_stale(&mut files)?;
    }
    let help = "name a directory for the stubs alone, such as `--out-dir stubs`";
    Operation::refuse_to_replace(&files.operations, is_ours, help)?;
    files.write(shell)?;
    shell.note(next_step(options, &plan, name.as_deref()));
    Ok(true)
}

/// The library type that all declared stubs share.
fn common_type(plan: &Plan) -> Result<LibraryType> {
    let mut types = plan
        .libraries
        .iter()
        .filter(|l| l.stubbed)
        .map(|l| l.library_type);
    let first = types.next().unwrap_or_default();
    if types.any(|other| other != first) {
        return Err(
            Error::new("stubs have different types: some are static, some shared")
                .help("choose one for all with `--type`"),
        );
    }
    Ok(first)
}

/// The name after `-l` of the shared library. Other software finds a GPU library in a process by a
/// part of its file name, so the name must not contain that of a real one.
fn shared_name(given: Option<&str>, plan: &Plan) -> Result<String> {
    let stubbed = plan.libraries.iter().filter(|library| library.stubbed);
    let ids: Vec<&str> = stubbed
        .clone()
        .map(|library| library.library.id.as_str())
        .collect();
    let name = given.map_or_else(|| format!("gpustub_{}", ids.join("_")), str::to_owned);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.');
    if name.is_empty() || name.len() > 200 || !name.chars().all(plain) {
        return Err(
            Error::new(format!("`{name}` cannot be the name of a library"))
                .help("letters, digits, `_`, `-`, `+` and `.` make a name"),
        );
    }
    let file = format!("lib{name}.so").to_ascii_lowercase();
    let shipped = Library::builtin_ids().filter_map(Library::builtin);
    let link_names = shipped.flat_map(|library| &library.link_names);
    let real = link_names.chain(stubbed.flat_map(|library| &library.library.link_names));
    let inside = real.filter(|real| file.contains(&format!("lib{}", real.to_ascii_lowercase())));
    match inside.max_by_key(|real| real.len()) {
        None => Ok(name),
        Some(real) => Err(Error::new(format!(
            "`lib{name}.so` would match a search for the real lib{real} among the \
             loaded libraries"
        ))
        .help(format!(
            "choose another name, for example `--name gpustub_{}`",
            ids.join("_")
        ))),
    }
}

/// Adds the libraries under the names of the real ones.
fn link_directory(
    files: &mut Files<'_>,
    plan: &Plan,
    sources: &SourceSet,
    target: &Target,
    shared: Option<&str>,
) -> Result<()> {
    let host = host_triple();
    let Some(name) = shared else {
        for (library, bytes) in compile::archives(plan, sources, target, &host)? {
            for link_name in &library.library.link_names {
                files.add(&format!("link/lib{link_name}.a"), &bytes)?;
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
        Some(triple) if triple != host_triple() => format!("<C compiler for {triple}>"),
        _ => "cc".to_owned(),
    }
}

/// Adds the removal of files that an earlier run wrote for other libraries or another type, since linkers
/// and pkg-config would still find them. A project may have files of its own beside them.
fn remove_stale(files: &mut Files<'_>) -> Result<()> {
    let shipped = Library::builtin_ids().filter_map(Library::builtin);
    let mut names: Vec<String> = Vec::new();
    for name in shipped.flat_map(|library| &library.link_names) {
        names.extend([format!("lib{name}.a"), format!("lib{name}.so")]);
    }
    let is_ours = |directory: &str, name: &str| match directory {
        "pkgconfig" => name.starts_with("gpustub") && name.ends_with(".pc"),
        "link" if names.iter().any(|one| one == name) => true,
        _ => name.starts_with("libgpustub_"),
    };
    let is_written = |path: &Path| files.operations.iter().any(|one| one.path == path);
    let mut stale = Vec::new();
    for directory in ["link", "lib", "pkgconfig"] {
        let Ok(entries) = fs::read_dir(files.options.out_dir.join(directory)) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if is_ours(directory, &entry.file_name().to_string_lossy()) && !is_written(&path) {
                stale.push(path);
            }
        }
    }
    stale.sort_unstable();
    for path in stale {
        let shown = path.display().to_string();
        files.operations.push(Operation::remove(path, shown)?);
    }
    Ok(())
}

fn next_step(options: &cli::ExportStubs, plan: &Plan, shared: Option<&str>) -> String {
    let out = options.out_dir.display();
    let names: Vec<String> = plan
        .libraries
        .iter()
        .filter(|library| library.stubbed)
        .flat_map(|library| {
            library
                .library
                .link_names
                .iter()
                .map(|name| format!("-l{name}"))
        })
        .collect();
    let names = names.join(" ");
    let compiler = compiler(options.target.as_deref());
    match shared {
        Some(_) if options.sources_only => format!(
            "next: `find_package(gpustub)` with CMake or `subdir` with Meson, on {out}, build the shared library"
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
        let other = "riscv64gc-unknown-linux-gnu";
        assert_eq!(compiler(Some(other)), format!("<C compiler for {other}>"));
    }
}
