//! Finalizer crates: what `sync` writes so that plain cargo makes one device link per program.
//!
//! A program needs one device link over all its RDC libraries, made after all of them, and handed
//! to the linker before them. Cargo tells a build script of its direct dependencies only, and
//! passes no link arguments upwards. A crate that depends on every package with RDC code, and that
//! the program names, has both: cargo builds it last, and its archive goes in as any crate's does.

mod closure;
mod files;
mod platform;

use std::collections::BTreeMap;

use cargo_metadata::{CrateType, DependencyKind, Package, TargetKind};
use gpustub_core::diag::{DUPLICATE_DEVICE_CODE, Diagnostic, NEVER_DEVICE_LINKED, OUT_OF_SYNC};
use gpustub_core::manifest::Form;

use crate::cli;
use crate::codes::{TWO_FINALIZERS, UNREACHED};
use crate::declared::Declared;
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::Operation;
use crate::tree::{Edit, cargo_toml, use_line};
use crate::workspace::{Depth, Workspace, folder, host_triple, library, shown};

use closure::Closure;
pub use files::FEATURE;

/// The folder of a package's finalizer, in the package's own.
pub const FOLDER: &str = "gpustub-final";

/// The name of a package's finalizer.
pub fn name(package: &Package) -> String {
    format!("gpustub-final-{}", package.name)
}

/// Whether a finalizer is what this package is.
pub fn is_one(package: &Package) -> bool {
    package.name.starts_with("gpustub-final-")
}

/// What has to be written for the programs of these packages. Nothing is read of the dependencies
/// unless a member has RDC libraries.
pub fn operations(
    workspace: &Workspace,
    options: &cli::Cargo,
    selected: &[&Package],
    found: &mut Vec<Diagnostic>,
) -> Result<Vec<Operation>> {
    if !may_be_needed(workspace)? {
        return Ok(Vec::new());
    }
    let mut all = options.clone();
    all.features.all_features = true;
    all.features.features.clear();
    all.features.no_default_features = false;
    let host = host_triple()?;
    let full = Workspace::load(&all, Depth::Graph(&host))?;
    let graph = Graph::read(&full)?;

    let mut operations = Vec::new();
    for package in selected {
        let Some(at) = full.members().iter().position(|p| p.id == package.id) else {
            continue;
        };
        let package = full.members()[at];
        if is_one(package) {
            continue;
        }
        if has_rdc(&graph, package) || is_light(package) {
            found.extend(left_over(package, true));
            continue;
        }
        let targets = Programs::of(package);
        let closure = match targets.is_empty() {
            true => None,
            false => closure::of(&full, &graph, options, package, &targets)?,
        };
        let Some(closure) = closure else {
            found.extend(left_over(package, false));
            continue;
        };
        if let Some(twice) = twice(&graph, &closure) {
            found.push(twice);
            continue;
        }
        found.extend(stands_against(&graph, package, &targets, &closure));
        operations.extend(files::operations(&full, &graph, package, &closure)?);
        operations.extend(use_lines(package, &targets, &closure, found)?);
    }
    Ok(operations)
}

/// Whether any package has RDC libraries, or a finalizer: asked before cargo resolves anything. A
/// dependency from elsewhere that has some uses the helper, and stands in `Cargo.lock` with it.
pub fn may_be_needed(workspace: &Workspace) -> Result<bool> {
    let members = workspace.members();
    for member in &members {
        let declared = Declared::read(workspace, member)?;
        if is_one(member) || declared.is_some_and(|one| one.has_rdc()) {
            return Ok(true);
        }
    }
    let lock = std::fs::read_to_string(workspace.root().join("Cargo.lock")).unwrap_or_default();
    let users = cargo_toml::users_of_helper(&lock);
    Ok(users
        .iter()
        .any(|user| !members.iter().any(|member| member.name.as_str() == user)))
}

/// What an earlier run has written for a package that needs none any more: it has no such code, or
/// its own build script links it.
fn left_over(package: &Package, links_itself: bool) -> Option<Diagnostic> {
    let name = name(package);
    let depends = package.dependencies.iter().any(|d| d.name == name);
    let dir = place(package);
    if !depends && !dir.join("Cargo.toml").exists() {
        return None;
    }
    let of = &package.name;
    let why = match links_itself {
        true => format!("the build script of `{of}` device-links its programs"),
        false => format!("no program of `{of}` has CUDA device code any more"),
    };
    let message = format!("{why}, and its finalizer is still there");
    let help = format!(
        "remove the folder `{}`, and `{name}` from Cargo.toml and from the `use` lines of the \
         programs",
        shown(&dir)
    );
    let file = shown(package.manifest_path.as_std_path());
    // Two device links of one program do not link; one of nothing does no harm.
    let found = match links_itself {
        true => Diagnostic::error(&TWO_FINALIZERS, message),
        false => Diagnostic::warning(&OUT_OF_SYNC, message),
    };
    Some(found.at(&file, 0..0).help(help))
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
        Some(Diagnostic::error(&DUPLICATE_DEVICE_CODE, message).help(help))
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
    shipped: Vec<(std::path::PathBuf, cargo_metadata::Edition)>,
    /// Tests, examples and benchmarks.
    others: Vec<(std::path::PathBuf, cargo_metadata::Edition)>,
    /// The library, for its unit tests.
    unit_tests: Option<(std::path::PathBuf, cargo_metadata::Edition)>,
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
            found.push(Diagnostic::error(&TWO_FINALIZERS, message).help(help));
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
        found.push(Diagnostic::error(&UNREACHED, message).help(help));
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
        .filter(|library| library.form == Form::Shared)
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
        "declare a library with `form = \"shared\"` that requires all of them: its final serves";
    Some(Diagnostic::error(&NEVER_DEVICE_LINKED, message).help(help))
}

/// The `use … as _` lines of the programs.
fn use_lines(
    package: &Package,
    programs: &Programs,
    closure: &Closure,
    found: &mut Vec<Diagnostic>,
) -> Result<Vec<Operation>> {
    let crate_name = name(package).replace('-', "_");
    let shipped: &[_] = match closure.kind {
        DependencyKind::Development => &[],
        _ => &programs.shipped,
    };
    let mut operations = Vec::new();
    let roots = shipped.iter().chain(&programs.others);
    let roots = roots.map(|root| (root, use_line::DEVICE_LINK));
    let tests = programs.unit_tests.iter();
    let tests = tests.map(|root| (root, use_line::UNIT_TESTS));
    for ((path, edition), line) in roots.chain(tests) {
        if !path.exists() {
            continue;
        }
        let text = files::read(path)?;
        match use_line::add(&text, &crate_name, *edition, line) {
            Edit::Same => {}
            Edit::Changed(text) => {
                operations.push(Operation::write(path.clone(), shown(path), text)?);
            }
            Edit::Impossible(why) => {
                let message = format!("`{}` cannot be edited: {why}", shown(path));
                let help = format!("add this line before its first item: `use {crate_name} as _;`");
                found.push(Diagnostic::error(&OUT_OF_SYNC, message).help(help));
            }
        }
    }
    Ok(operations)
}

/// The folder of a package's finalizer.
fn place(package: &Package) -> std::path::PathBuf {
    folder(package).join(FOLDER)
}
