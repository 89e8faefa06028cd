//! Finalizer crates: files that `sync` writes so that plain cargo makes one device link per program.
//!
//! A program needs one device link over all its RDC libraries, made after all of them, and passed
//! to the linker before them. A build script sees the metadata of its direct dependencies only, and
//! passes no link arguments upwards. A crate that depends on every package with RDC code, and that
//! the program names, meets both conditions: cargo builds it last, and links its archive as usual.

mod closure;
mod files;
mod lines;
mod naming;
mod platform;
mod programs;
mod rejected;
mod renamed;
mod stale;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::codes::{MULTIPLE_FINALIZERS, TEST_ONLY_DEVICE_CODE};
use crate::display_path::display_path;
use crate::edit::{Edit, build_rs, cargo_toml, use_line};
use crate::error::Result;
use crate::ops::Pending;
use cargo_metadata::{DependencyKind, Package, TargetKind};
use gpustub_core::diag::{DUPLICATE_DEVICE_SYMBOL, Diagnostic, OUT_OF_SYNC};

use crate::graph::PackageGraph;
use crate::selection::Selection;
use crate::shared_root;
use crate::tables::Members;
use crate::workspace::{Depth, Workspace, directory, host_triple};

use closure::Closure;
pub use files::DEVICE_LINK_FEATURE;
pub use lines::remove_lines;
use lines::remove_stale_lines;
use naming::crate_name;
pub use naming::{DIRECTORY, finalizer_name, is_finalizer};
pub use programs::has_programs;
use programs::{Programs, has_rdc};
pub use rejected::{RejectedManifest, explain, rejected_manifests};

/// Adds the operations for the programs of the selected packages, if finalizers may be needed.
pub fn operations(
    workspace: &Workspace,
    options: &Selection,
    pending: &mut Pending,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<()> {
    let mut with_all_features = options.clone();
    with_all_features.features.all_features = true;
    with_all_features.features.features.clear();
    with_all_features.features.no_default_features = false;
    let full = Workspace::load(&with_all_features, Depth::Graph(&host_triple()))?
        .with_edits(workspace.edits());
    let graph = PackageGraph::read(&full)?;

    for package in full.selected()? {
        // Packages that `workspace` does not contain are finalizers written by this command.
        if is_finalizer(package) || !workspace.has(package) {
            continue;
        }
        let has_rdc = has_rdc(&graph, package);
        let programs = Programs::from_package(package);
        // A program cannot depend on a package that depends on its own.
        let links_itself = links_itself(package, has_rdc, |path| pending.read(path).ok());
        if links_itself || has_rdc && has_programs(package) {
            stale::remove(&full, &graph, package, true, pending, diagnostics)?;
            continue;
        }
        let closure = if !programs.shipped.is_empty() || programs.has_tests(has_rdc) {
            closure::resolve(&full, &graph, options, package, &programs, pending)?
        } else {
            None
        };
        let Some(closure) = closure else {
            stale::remove(&full, &graph, package, false, pending, diagnostics)?;
            continue;
        };
        let conflict =
            duplicate_package(&graph, &closure).or_else(|| renamed::conflict(&graph, package));
        if let Some(conflict) = conflict {
            diagnostics.push(conflict);
            continue;
        }
        diagnostics.extend(unwritable_links(&graph, package, &programs, &closure));
        files::operations(&full, &graph, package, &closure, pending)?;
        use_lines(&full, package, &programs, &closure, pending, diagnostics)?;
    }
    Ok(())
}

/// Whether any package has RDC libraries, or a finalizer: checked before cargo resolves
/// dependencies, with the declarations of the members. A dependency from elsewhere with RDC
/// libraries uses the helper, and `Cargo.lock` lists both.
pub fn may_have_device_links(workspace: &Workspace, declared: &Members) -> bool {
    let has_rdc = declared.all().any(|(_, declared)| declared.has_rdc());
    let members = workspace.members();
    if has_rdc || members.iter().any(|member| is_finalizer(member)) {
        return true;
    }
    let lock = std::fs::read_to_string(workspace.root().join("Cargo.lock")).unwrap_or_default();
    let users = cargo_toml::users_of_helper(&lock);
    let names: BTreeSet<&str> = members.iter().map(|member| member.name.as_str()).collect();
    users.iter().any(|user| !names.contains(user.as_str()))
}

/// Reports two packages of one name: no crate can depend on both by name, no device link contain both.
fn duplicate_package(graph: &PackageGraph, closure: &Closure) -> Option<Diagnostic> {
    let mut version_by_name = BTreeMap::new();
    closure.members.keys().find_map(|&package_index| {
        let package = graph.packages[package_index];
        let earlier_version = version_by_name.insert(package.name.as_str(), &package.version)?;
        let message = format!(
            "one program links two versions of `{}`, {earlier_version} and {}, with one device code",
            package.name, package.version
        );
        let help = "let all depend on one version: `cargo tree --duplicates`";
        let manifest_path = display_path(package.manifest_path.as_std_path());
        let error = Diagnostic::error(&DUPLICATE_DEVICE_SYMBOL, message);
        Some(error.with_origin(&manifest_path, 0..0).help(help))
    })
}

/// Whether the package's own build script device-links its programs and tests: that of a package with
/// CUDA code and programs, or the light form, which links the code of direct dependencies. `read`:
/// text of a file.
pub fn links_itself(
    package: &Package,
    has_rdc: bool,
    read: impl Fn(&Path) -> Option<String>,
) -> bool {
    if !has_rdc && !has_feature(package) {
        return false;
    }
    let script = package
        .targets
        .iter()
        .find(|target| target.is_kind(TargetKind::CustomBuild));
    // `sync` may be about to create the script.
    let path = script.map_or_else(
        || directory(package).join("build.rs"),
        |target| target.src_path.clone().into_std_path_buf(),
    );
    read(&path).is_some_and(|text| build_rs::finalizes(&text))
}

/// Whether the build script can device-link.
fn has_feature(package: &Package) -> bool {
    package.dependencies.iter().any(|dependency| {
        dependency.kind == DependencyKind::Build
            && dependency.name == cargo_toml::HELPER
            && dependency
                .features
                .iter()
                .any(|name| name == DEVICE_LINK_FEATURE)
    })
}

/// Errors that writing every file does not prevent.
fn unwritable_links(
    graph: &PackageGraph,
    package: &Package,
    programs: &Programs,
    closure: &Closure,
) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    if programs.has_mixed_library {
        let user = graph.nodes.iter().find(|node| {
            node.dependencies
                .iter()
                .chain(&node.dev_dependencies)
                .any(|&dependency| graph.packages[dependency].id == package.id)
        });
        if let Some(user) = user {
            let message = format!(
                "the library of `{}` is device-linked for C, and `{}` links it as a Rust crate, \
                 which is device-linked itself",
                package.name, user.name
            );
            let help = "move the library for C to a package of its own: a process registers each kernel once";
            diagnostics.push(Diagnostic::error(&MULTIPLE_FINALIZERS, message).help(help));
        }
    }
    for name in &closure.only_in_tests {
        let message = format!(
            "`{name}` has CUDA code and is linked into the tests of `{}` only, in addition to that of its \
             programs",
            package.name
        );
        let help = format!(
            "move the tests that need it to a package of their own, or make `{name}` a normal \
             dependency of `{}`",
            package.name
        );
        diagnostics.push(Diagnostic::error(&TEST_ONLY_DEVICE_CODE, message).help(help));
    }
    diagnostics
}

/// Adds the `use … as _` lines of the programs.
fn use_lines(
    workspace: &Workspace,
    package: &Package,
    programs: &Programs,
    closure: &Closure,
    pending: &mut Pending,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<()> {
    let crate_name = crate_name(package);
    // Shipped programs come first. A finalizer for tests is not linked into them.
    let unlinked_count = if closure.is_for_tests() {
        programs.shipped.len()
    } else {
        0
    };
    let lines: Vec<_> = programs.lines().collect();
    let (unlinked, linked) = lines.split_at(unlinked_count);
    remove_stale_lines(package, unlinked.iter().map(|line| line.0), None, pending)?;
    let linked_paths = linked.iter().map(|line| line.0);
    remove_stale_lines(package, linked_paths, Some(&crate_name), pending)?;
    for &(path, edition, line) in linked {
        if !path.exists() {
            continue;
        }
        match use_line::add(&pending.read(path)?, &crate_name, edition, line) {
            Edit::Same => {}
            Edit::Changed(text) => {
                match shared_root::unknown_crate(&workspace.members(), package, path, &crate_name) {
                    Some(error) => diagnostics.push(error),
                    None => pending.write(path, text)?,
                }
            }
            Edit::Impossible(reason) => {
                let message = format!("`{}` cannot be edited: {reason}", display_path(path));
                let help = format!("add this line before its first item: `use {crate_name} as _;`");
                diagnostics.push(Diagnostic::error(&OUT_OF_SYNC, message).help(help));
            }
        }
    }
    Ok(())
}
