//! Finalizer crates: what `sync` writes so that plain cargo makes one device link per program.
//!
//! A program needs one device link over all its RDC libraries, made after all of them, and handed
//! to the linker before them. Cargo tells a build script of its direct dependencies only, and
//! passes no link arguments upwards. A crate that depends on every package with RDC code, and that
//! the program names, has both: cargo builds it last, and its archive goes in as any crate's does.

mod closure;
mod files;
mod platform;
mod renamed;
mod stale;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{CrateType, DependencyKind, Edition, Package, TargetKind};
use gpustub_core::diag::{DUPLICATE_DEVICE_SYMBOL, Diagnostic, MISSING_DEVICE_LINK, OUT_OF_SYNC};
use gpustub_core::manifest::LibraryType;
use gpustub_edit::{Edit, cargo_toml, use_line};
use gpustub_reference::codes::{MULTIPLE_FINALIZERS, TEST_ONLY_DEVICE_CODE};
use gpustub_report::display_path::display_path;
use gpustub_report::error::Result;
use gpustub_report::ops::Pending;

use crate::graph::Graph;
use crate::selection::Selection;
use crate::tables::Members;
use crate::workspace::{Depth, Workspace, folder, host_triple, library};

use closure::Closure;
pub use files::FEATURE;

/// The folder of a package's finalizer, in the package's own.
pub const FOLDER: &str = "gpustub-final";

const PREFIX: &str = "gpustub-final-";

/// The name of a package's finalizer.
pub fn name(package: &Package) -> String {
    format!("{PREFIX}{}", package.name)
}

/// Whether a finalizer is what this package is.
pub fn is_one(package: &Package) -> bool {
    package.name.starts_with(PREFIX)
}

/// What has to be written for the programs of the packages that are selected, where it may be needed.
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
    let host = host_triple()?;
    let full = Workspace::load(&all, Depth::Graph(&host))?;
    let graph = Graph::read(&full)?;

    for package in full.selected()? {
        // What is not asked for anew by `workspace` has been written since.
        if is_one(package) || !workspace.has(package) {
            continue;
        }
        if has_rdc(&graph, package) || is_light(package) {
            stale::remove(&full, &graph, package, true, pending, found)?;
            continue;
        }
        let targets = Programs::of(package);
        let closure = match targets.is_empty() {
            true => None,
            false => closure::of(&full, &graph, options, package, &targets)?,
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
        found.extend(stands_against(&graph, package, &targets, &closure));
        files::operations(&full, &graph, package, &closure, pending)?;
        use_lines(package, &targets, &closure, pending, found)?;
    }
    Ok(())
}

/// Whether any package has RDC libraries, or a finalizer: asked before cargo resolves anything, with what
/// the members declare. A dependency from elsewhere that has some uses the helper, and stands in
/// `Cargo.lock` with it.
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

/// Two packages of one name, which no crate can depend on by it, and no device link can hold.
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
        Some(error.at(&file, 0..0).help(help))
    })
}

/// Whether the package's own build script links what its direct dependencies have: the light form.
pub fn is_light(package: &Package) -> bool {
    let feature = |name: &String| name == FEATURE;
    package.dependencies.iter().any(|dependency| {
        dependency.kind == DependencyKind::Build
            && dependency.name == cargo_toml::HELPER
            && dependency.features.iter().any(feature)
    })
}

fn has_rdc(graph: &Graph, package: &Package) -> bool {
    let at = graph.position(&package.id);
    at.is_some_and(|at| !graph.rdc(at).is_empty())
}

/// What the linker makes of a package, apart from its library's own tests.
#[derive(Debug, Default)]
pub struct Programs {
    /// Programs, and libraries for C.
    shipped: Vec<(PathBuf, Edition)>,
    /// Tests, examples and benchmarks.
    others: Vec<(PathBuf, Edition)>,
    /// The library, for its unit tests.
    unit_tests: Option<(PathBuf, Edition)>,
    /// Whether a library for C is a crate for Rust, too.
    mixed: bool,
    /// Whether it is a shared one.
    cdylib: bool,
}

impl Programs {
    fn of(package: &Package) -> Self {
        let mut programs = Self::default();
        for target in &package.targets {
            let root = (target.src_path.clone().into_std_path_buf(), target.edition);
            let is_lib = library(package).is_some_and(|lib| lib.src_path == target.src_path);
            let has = |kinds: &[CrateType]| kinds.iter().any(|k| target.crate_types.contains(k));
            if target.is_kind(TargetKind::Bin) {
                programs.shipped.push(root);
            } else if is_lib && has(&[CrateType::CDyLib, CrateType::StaticLib]) {
                programs.cdylib = has(&[CrateType::CDyLib]);
                programs.mixed = has(&[CrateType::Lib, CrateType::RLib]);
                programs.shipped.push(root);
            } else if [TargetKind::Test, TargetKind::Example, TargetKind::Bench]
                .into_iter()
                .any(|kind| target.is_kind(kind))
            {
                programs.others.push(root);
            } else if is_lib && target.test && !has(&[CrateType::ProcMacro]) {
                programs.unit_tests = Some(root);
            }
        }
        programs
    }

    /// The root files, those that are shipped first, with the lines that they have.
    fn lines(&self) -> impl Iterator<Item = (&Path, Edition, &'static use_line::Line)> {
        let programs = self.shipped.iter().chain(&self.others);
        let programs = programs.map(|root| (root, &use_line::DEVICE_LINK));
        let tests = self.unit_tests.iter();
        let all = programs.chain(tests.map(|root| (root, &use_line::UNIT_TESTS)));
        all.map(|((path, edition), line)| (path.as_path(), *edition, line))
    }

    fn is_empty(&self) -> bool {
        self.shipped.is_empty() && self.others.is_empty()
    }
}

/// What would go wrong although every file is written.
fn stands_against(
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
            let help = "make the library for C a package of its own; of one process each kernel can be \
                        registered once";
            found.push(Diagnostic::error(&MULTIPLE_FINALIZERS, message).help(help));
        }
    }
    if programs.cdylib {
        found.extend(several_finals(graph, package, closure));
    }
    for name in &closure.only_in_tests {
        let message = format!(
            "`{name}` has CUDA code and is linked into the tests of `{}` only, besides that of its \
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

/// rustc hides what a C library does not export, its device link's registering functions with it: shared
/// libraries cannot call those. They have to have one final among them.
fn several_finals(graph: &Graph, package: &Package, closure: &Closure) -> Option<Diagnostic> {
    let libraries: Vec<_> = closure
        .members
        .keys()
        .flat_map(|&at| graph.rdc(at))
        .collect();
    let is_required = |name: &str| {
        let mut all = libraries.iter().flat_map(|library| &library.requires);
        all.any(|required| required.value == name)
    };
    let tops: Vec<&str> = libraries
        .iter()
        .filter(|library| library.library_type == LibraryType::Shared)
        .map(|library| library.name.value.as_str())
        .filter(|name| !is_required(name))
        .collect();
    let [_, _, ..] = tops[..] else {
        return None;
    };
    let message = format!(
        "the library for C of `{}` would not load: its device link is hidden from the shared \
         libraries {}, none of which requires the others",
        package.name,
        tops.join(", ")
    );
    let help =
        "declare a library with `type = \"shared\"` that requires all of them: its final serves";
    Some(Diagnostic::error(&MISSING_DEVICE_LINK, message).help(help))
}

/// Takes away lines about a finalizer that is called otherwise, or that is none, from files of a package.
fn remove_stale_lines<'p>(
    package: &Package,
    paths: impl IntoIterator<Item = &'p Path>,
    name: Option<&str>,
    pending: &mut Pending,
) -> Result<()> {
    let place = place(package);
    // Perhaps that of another package, which somebody named by hand.
    let is_other = |name: &str| {
        package.dependencies.iter().any(|one| {
            let known = one.rename.as_ref().unwrap_or(&one.name).replace('-', "_");
            known == name && one.path.as_ref().is_none_or(|path| *path != place)
        })
    };
    for path in paths.into_iter().filter(|path| path.exists()) {
        // Cargo says of what cannot be read.
        let Ok(text) = pending.read(path) else {
            continue;
        };
        let keep = |one: &str| Some(one) == name || is_other(one);
        let new = use_line::retain(&text, &use_line::DEVICE_LINK, keep);
        pending.write(path, new)?;
    }
    Ok(())
}

/// Takes away the lines about a finalizer in a package that has none.
pub fn remove_lines(package: &Package, pending: &mut Pending) -> Result<()> {
    let paths = package.targets.iter();
    let paths = paths.map(|target| target.src_path.as_std_path());
    remove_stale_lines(package, paths, None, pending)
}

/// The `use … as _` lines of the programs.
fn use_lines(
    package: &Package,
    programs: &Programs,
    closure: &Closure,
    pending: &mut Pending,
    found: &mut Vec<Diagnostic>,
) -> Result<()> {
    let crate_name = crate_name(package);
    let tests_alone = closure.kind == DependencyKind::Development;
    let without = match tests_alone {
        true => programs.shipped.len(),
        false => 0,
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
            Edit::Changed(text) => pending.write(path, text)?,
            Edit::Impossible(why) => {
                let message = format!("`{}` cannot be edited: {why}", display_path(path));
                let help = format!("add this line before its first item: `use {crate_name} as _;`");
                found.push(Diagnostic::error(&OUT_OF_SYNC, message).help(help));
            }
        }
    }
    Ok(())
}

/// What Rust code calls a package's finalizer.
fn crate_name(package: &Package) -> String {
    name(package).replace('-', "_")
}

/// The folder of a package's finalizer.
fn place(package: &Package) -> PathBuf {
    folder(package).join(FOLDER)
}
