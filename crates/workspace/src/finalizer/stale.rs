//! Finalizers that their package no longer needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::codes::MULTIPLE_FINALIZERS;
use crate::display_path::display_path;
use crate::edit::{Edit, cargo_toml, use_line};
use crate::error::Result;
use crate::ops::Pending;
use cargo_metadata::Package;
use gpustub_core::diag::{Diagnostic, OUT_OF_SYNC};
use gpustub_core::gpu_arch::Arch;
use gpustub_core::manifest::Manifest;

use super::lines::remove_lines;
use super::naming::{DIRECTORY, finalizer_directory, finalizer_name, is_generated};
use super::programs::has_rdc;
use super::{files, renamed};
use crate::graph::PackageGraph;
use crate::tables::FILE;
use crate::workspace::Workspace;

/// Removes the files of an earlier run for a package that no longer needs them: it has no RDC code,
/// or its own build script links it. Reports them instead if the user has changed them.
pub fn remove(
    workspace: &Workspace,
    graph: &PackageGraph,
    package: &Package,
    links_itself: bool,
    pending: &mut Pending,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<()> {
    let current = finalizer_name(package);
    let mut names = renamed::former(package);
    names.insert(&current);
    let depends =
        (package.dependencies.iter()).any(|dependency| names.contains(dependency.name.as_str()));
    let dir = finalizer_directory(package);
    if !depends && !dir.join("Cargo.toml").exists() {
        return remove_lines(package, pending);
    }
    // A build script written to link the direct dependencies and a finalizer are alternatives: the
    // user has to choose.
    let is_choice = links_itself && !has_rdc(graph, package);
    let files = if is_choice || is_used(workspace, graph, package) {
        None
    } else {
        generated_files(&dir)
    };
    let programs = match files {
        Some(_) => programs_without_lines(package, &names, pending)?,
        None => None,
    };
    let (Some(files), Some(programs)) = (files, programs) else {
        diagnostics.push(kept_finalizer(package, links_itself));
        return Ok(());
    };
    for (path, text) in programs {
        pending.write(path, text)?;
    }
    let manifest = package.manifest_path.as_std_path();
    let text = pending.read(manifest)?;
    let text = (names.iter()).try_fold(text, |text, name| {
        cargo_toml::remove_dependency(&text, name)
    });
    match text {
        Ok(text) => pending.write(manifest, text)?,
        Err(_) => diagnostics.push(kept_finalizer(package, links_itself)),
    }
    // Last, the files by which cargo knows the directory.
    for file in files {
        pending.remove(&dir.join(file))?;
    }
    Ok(())
}

/// Whether another package or the workspace names the finalizer.
fn is_used(workspace: &Workspace, graph: &PackageGraph, package: &Package) -> bool {
    if renamed::named_by_hand(graph, package).is_some() {
        return true;
    }
    let root = fs::read_to_string(workspace.root().join("Cargo.toml")).unwrap_or_default();
    cargo_toml::has_member(&root, DIRECTORY)
}

/// Files of a finalizer, `Cargo.toml` last, if they are just those that `sync` writes. `None` also if
/// the finalizer has code for some targets, which this host may not see.
fn generated_files(dir: &Path) -> Option<Vec<&'static str>> {
    // Git may have changed the line breaks.
    let text = |file: &str| {
        let text = fs::read_to_string(dir.join(file)).ok()?;
        Some(text.replace("\r\n", "\n"))
    };
    let mut names = BTreeSet::from(["Cargo.toml", "build.rs", "src"].map(str::to_owned));
    let mut paths = vec!["src/lib.rs", "build.rs"];
    if let Some(declarations) = text(FILE) {
        names.insert(FILE.to_owned());
        paths.push(FILE);
        let (manifest, _) = Manifest::parse(FILE, &declarations);
        let archs: Vec<Arch> = manifest.link_archs.iter().map(|arch| arch.value).collect();
        if declarations != files::declaration_text(&archs, !manifest.stubs.is_empty()) {
            return None;
        }
    }
    let manifest = text("Cargo.toml")?;
    let is_ours = entry_names(dir)? == names
        && entry_names(&dir.join("src"))? == BTreeSet::from(["lib.rs".to_owned()])
        && is_code(&text("build.rs")?, &text("src/lib.rs")?)
        && is_generated(&manifest)
        && !manifest.contains("\n[target.");
    paths.push("Cargo.toml");
    is_ours.then_some(paths)
}

/// Names of the entries of a directory.
fn entry_names(dir: &Path) -> Option<BTreeSet<String>> {
    fs::read_dir(dir)
        .ok()?
        .map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

/// Whether texts are the code of a finalizer: the build script, the head of the library's template,
/// and lines that name crates.
fn is_code(build_script: &str, library: &str) -> bool {
    let crates = [false, true].into_iter().find_map(|for_tests| {
        let head = files::library_code(for_tests, &[]);
        let crates = library.strip_prefix(head.trim_end())?;
        (build_script == files::build_script(for_tests)).then_some(crates)
    });
    crates.is_some_and(|crates| {
        crates.lines().all(|line| {
            line.is_empty()
                || line.starts_with("#[cfg(")
                || line == "#[doc(hidden)]"
                || line.starts_with("pub use ")
        })
    })
}

/// Changed texts of the programs: without their lines on the finalizer, which has or had these names.
/// `None` if the lines cannot be removed.
fn programs_without_lines<'a>(
    package: &'a Package,
    names: &BTreeSet<&str>,
    pending: &Pending,
) -> Result<Option<Vec<(&'a Path, String)>>> {
    let mut programs: Vec<(&Path, String)> = Vec::new();
    for target in &package.targets {
        let path = target.src_path.as_std_path();
        if !path.exists() || programs.iter().any(|(known, _)| *known == path) {
            continue;
        }
        let old = pending.read(path)?;
        let mut text = old.clone();
        for name in names.iter().map(|name| name.replace('-', "_")) {
            // A library has the line for its tests, or, if it is a C library, the other line.
            let lines = [&use_line::DEVICE_LINK, &use_line::UNIT_TESTS];
            match lines.map(|line| use_line::remove(&text, &name, line)) {
                [Edit::Same, _] => {}
                [Edit::Changed(new), _] | [_, Edit::Changed(new)] => text = new,
                _ => return Ok(None),
            }
        }
        if text != old {
            programs.push((path, text));
        }
    }
    Ok(Some(programs))
}

/// Reports that the finalizer exists and stays.
fn kept_finalizer(package: &Package, links_itself: bool) -> Diagnostic {
    let package_name = &package.name;
    let reason = if links_itself {
        format!("the build script of `{package_name}` device-links its programs")
    } else {
        format!("no program of `{package_name}` has CUDA device code any more")
    };
    let message = format!("{reason}, but its finalizer still exists");
    let help = format!(
        "remove the directory `{}`, and `{}` from Cargo.toml and from the `use` lines of the programs",
        display_path(&finalizer_directory(package)),
        finalizer_name(package)
    );
    let file = display_path(package.manifest_path.as_std_path());
    // Two device links of one program do not link; an unused one is harmless.
    let diagnostic = if links_itself {
        Diagnostic::error(&MULTIPLE_FINALIZERS, message)
    } else {
        Diagnostic::warning(&OUT_OF_SYNC, message)
    };
    diagnostic.with_origin(&file, 0..0).help(help)
}
