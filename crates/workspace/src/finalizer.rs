//! Finalizer crates: files that `sync` writes so that plain cargo makes one device link per program.
//!
//! A program needs one device link over all its RDC libraries, made after all of them, and passed
//! to the linker before them. A build script sees the metadata of its direct dependencies only, and
//! passes no link arguments upwards. A crate that depends on every package with RDC code, and that
//! the program names, meets both conditions: cargo builds it last, and links its archive as usual.

mod broken;
mod closure;
mod files;
mod lines;
mod naming;
mod platform;
mod programs;
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

use crate::graph::Graph;
use crate::selection::Selection;
use crate::shared_root;
use crate::tables::Members;
use crate::workspace::{Depth, Workspace, directory, host_triple};

pub use broken::{Broken, broken, explain};
use closure::Closure;
pub use files::FEATURE;
pub use lines::remove_lines;
use lines::remove_stale_lines;
use naming::crate_name;
pub use naming::{DIRECTORY, is_one, name};
pub use programs::has_programs;
use programs::{Programs, has_rdc};

/// Adds the operations for the programs of the selected packages, if finalizers may be needed.
pub fn operations(
    workspace: &Workspace,
    options: &Selection,
    pending: &mut Pending,
    found: &mut Vec<Diagnostic>,
) -> Result<()> {
    let mut all = options.clone();
    all.features.all_features = true;
    all.features.features.clear();
    all.features.no_default_features = false;
    let host = host_triple();
    let full = Workspace::load(&all, Depth::Graph(&host))?;
    let graph = Graph::read(&full)?;

    for package in full.selected()? {
        // Packages that `workspace` does not contain are finalizers written by this command.
        if is_one(package) || !workspace.has(package) {
            continue;
        }
        let has_rdc = has_rdc(&graph, package);
        let targets = Programs::from_package(package);
        // A program cannot depend on a package that depends on its own.
        let links = links_itself(package, has_rdc, |path| pending.read(path).ok());
        if links || has_rdc && has_programs(package) {
            stale::remove(&full, &graph, package, true, pending, found)?;
            continue;
        }
        let closure = if !targets.shipped.is_empty() || targets.has_tests(has_rdc) {
            closure::resolve(&full, &graph, options, package, &targets, pending)?
        } else {
            None
        };
        let Some(closure) = closure else {
            stale::remove(&full, &graph, package, false, pending, found)?;
            continue;
        };
        let refused = twice(&graph, &closure).or_else(|| renamed::refused(&graph, package));
        if let Some(refused) = refused {
            found.push(refused);
            continue;
        }
        found.extend(unwritable_links(&graph, package, &targets, &closure));
        files::operations(&full, &graph, package, &closure, pending)?;
        use_lines(&full, package, &targets, &closure, pending, found)?;
    }
    Ok(())
}

/// Whether any package has RDC libraries, or a finalizer: checked before cargo resolves
/// dependencies, with the declarations of the members. A dependency from elsewhere with RDC
/// libraries uses the helper, and `Cargo.lock` lists both.
pub fn may_be_needed(workspace: &Workspace, declared: &Members) -> bool {
    let has_rdc = declared.all().any(|(_, one)| one.has_rdc());
    let members = workspace.members();
    if has_rdc || members.iter().any(|member| is_one(member)) {
        return true;
    }
    let lock = std::fs::read_to_string(workspace.root().join("Cargo.lock")).unwrap_or_default();
    let users = cargo_toml::users_of_helper(&lock);
    let names: BTreeSet<&str> = members.iter().map(|member| member.name.as_str()).collect();
    users.iter().any(|user| !names.contains(user.as_str()))
}

/// Reports two packages of one name: no crate can depend on both by name, no device link contain both.
fn twice(graph: &Graph, closure: &Closure) -> Option<Diagnostic> {
    let mut seen = BTreeMap::new();
    let packages = closure.members.keys().map(|&at| graph.packages[at]);
    packages.into_iter().find_map(|package| {
        let other = seen.insert(package.name.as_str(), &package.version)?;
        let message = format!(
            "one program links two versions of `{}`, {other} and {}, with one device code",
            package.name, package.version
        );
        let help = "let all depend on one version: `cargo tree --duplicates`";
        let file = display_path(package.manifest_path.as_std_path());
        let error = Diagnostic::error(&DUPLICATE_DEVICE_SYMBOL, message);
        Some(error.with_origin(&file, 0..0).help(help))
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
    let mut targets = package.targets.iter();
    let script = targets.find(|target| target.is_kind(TargetKind::CustomBuild));
    // `sync` may be about to create the script.
    let path = script.map_or_else(
        || directory(package).join("build.rs"),
        |target| target.src_path.clone().into_std_path_buf(),
    );
    read(&path).is_some_and(|text| build_rs::finalizes(&text))
}

/// Whether the build script can device-link.
fn has_feature(package: &Package) -> bool {
    let feature = |name: &String| name == FEATURE;
    package.dependencies.iter().any(|dependency| {
        dependency.kind == DependencyKind::Build
            && dependency.name == cargo_toml::HELPER
            && dependency.features.iter().any(feature)
    })
}

/// Errors that writing every file does not prevent.
fn unwritable_links(
    graph: &Graph,
    package: &Package,
    programs: &Programs,
    closure: &Closure,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if programs.mixed {
        let users: Vec<&str> = graph
            .nodes
            .iter()
            .filter(|node| {
                let mut all = node.dependencies.iter().chain(&node.dev_dependencies);
                all.any(|&to| graph.packages[to].id == package.id)
            })
            .map(|node| node.name.as_str())
            .collect();
        if let [user, ..] = users[..] {
            let message = format!(
                "the library of `{}` is device-linked for C, and `{user}` links it as a Rust crate, \
                 which is device-linked itself",
                package.name
            );
            let help = "move the library for C to a package of its own: a process registers each kernel once";
            found.push(Diagnostic::error(&MULTIPLE_FINALIZERS, message).help(help));
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
        found.push(Diagnostic::error(&TEST_ONLY_DEVICE_CODE, message).help(help));
    }
    found
}

/// Adds the `use … as _` lines of the programs.
fn use_lines(
    workspace: &Workspace,
    package: &Package,
    programs: &Programs,
    closure: &Closure,
    pending: &mut Pending,
    found: &mut Vec<Diagnostic>,
) -> Result<()> {
    let crate_name = crate_name(package);
    let tests_alone = closure.kind == DependencyKind::Development;
    let without = if tests_alone {
        programs.shipped.len()
    } else {
        0
    };
    let paths = || programs.lines().map(|(path, _, _)| path);
    remove_stale_lines(package, paths().take(without), None, pending)?;
    remove_stale_lines(package, paths().skip(without), Some(&crate_name), pending)?;
    for (path, edition, line) in programs.lines().skip(without) {
        if !path.exists() {
            continue;
        }
        match use_line::add(&pending.read(path)?, &crate_name, edition, line) {
            Edit::Same => {}
            Edit::Changed(text) => {
                match shared_root::refused(&workspace.members(), package, path, &crate_name) {
                    Some(refused) => found.push(refused),
                    None => pending.write(path, text)?,
                }
            }
            Edit::Impossible(why) => {
                let message = format!("`{}` cannot be edited: {why}", display_path(path));
                let help = format!("add this line before its first item: `use {crate_name} as _;`");
                found.push(Diagnostic::error(&OUT_OF_SYNC, message).help(help));
            }
        }
    }
    Ok(())
}
