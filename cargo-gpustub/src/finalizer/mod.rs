//! Finalizer crates: what `sync` writes so that plain cargo makes one device link per program.
//!
//! A program needs one device link over all its RDC libraries, made after all of them, and handed
//! to the linker before them. Cargo tells a build script of its direct dependencies only, and
//! passes no link arguments upwards. A crate that depends on every package with RDC code, and that
//! the program names, has both: cargo builds it last, and its archive goes in as any crate's does.

mod closure;
mod files;

use cargo_metadata::{CrateType, DependencyKind, Package, TargetKind};
use gpustub_core::diag::{Diagnostic, OUT_OF_SYNC};

use crate::cli;
use crate::codes::{TWO_FINALIZERS, UNREACHED};
use crate::declared::Declared;
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::Operation;
use crate::tree::{Edit, use_line};
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
    let mut any = false;
    for member in workspace.members() {
        let declared = Declared::read(workspace, member)?;
        any |= declared.is_some_and(|one| !one.manifest.device_links.is_empty());
    }
    if !any {
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
        if is_one(package) || has_rdc(&graph, package) {
            continue;
        }
        let targets = Programs::of(package);
        if targets.is_empty() {
            continue;
        }
        let Some(closure) = closure::of(&full, &graph, options, package, &targets)? else {
            continue;
        };
        found.extend(stands_against(&graph, package, &targets, &closure));
        operations.extend(files::operations(&full, &graph, package, &closure)?);
        operations.extend(use_lines(package, &targets, &closure, found)?);
    }
    Ok(operations)
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
    /// Whether a library for C is a crate for Rust, too.
    mixed: bool,
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
                programs.mixed = has(&[CrateType::Lib, CrateType::RLib]);
                programs.shipped.push(root);
            } else if [TargetKind::Test, TargetKind::Example, TargetKind::Bench]
                .into_iter()
                .any(|kind| target.is_kind(kind))
            {
                programs.others.push(root);
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
    for (path, edition) in shipped.iter().chain(&programs.others) {
        if !path.exists() {
            continue;
        }
        let text = files::read(path)?;
        match use_line::add(&text, &crate_name, *edition, use_line::DEVICE_LINK) {
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
