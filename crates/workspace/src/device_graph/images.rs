//! Nodes of cargo's outputs: crates, programs, libraries for other languages.

use crate::display_path::display_path;
use cargo_metadata::{CrateType, DependencyKind, Package, Target, TargetKind};
use gpustub_core::device_link::{Kind, Link, Node, NodeForm};
use gpustub_core::diag::Origin;

use super::{Builder, CargoUnit, link};
use crate::finalizer;
use crate::package_index::PackageIndex;
use crate::workspace::library;

impl Builder<'_> {
    /// Adds a package's library in the form that its dependents link.
    pub(super) fn crates(&mut self, at: PackageIndex) {
        let package = self.packages.packages[at];
        if finalizer::is_finalizer(package) {
            return;
        }
        let Some((what, form)) = linkable(package) else {
            return;
        };
        let links = self.compiled_in(at, false);
        let unit = CargoUnit {
            package: at,
            what,
            target: None,
        };
        let mut node = self.image(&unit, form, links);
        node.host = what == "proc-macro";
        if what == "dylib" {
            node.visible = Some(self.seen(at, false));
        }
        self.add(unit, node);
    }

    /// Creates the node of a package's target.
    fn image(&self, unit: &CargoUnit, form: NodeForm, links: Vec<Link>) -> Node {
        let package = self.packages.packages[unit.package];
        let name = unit.name(self.names.package(unit.package));
        let mut node = Node::new(name, Kind::Plain, form);
        node.origin = Some(Origin::new(
            display_path(package.manifest_path.as_std_path()),
            0..0,
        ));
        node.links = links;
        node
    }

    /// Links of the package's own code: its libraries, and its dependencies' crates.
    fn compiled_in(&self, at: PackageIndex, tests: bool) -> Vec<Link> {
        let own = self.packages.rdc(at).into_iter();
        let mut links: Vec<Link> = own
            .map(|declared| link(self.names.library(at, &declared.name.value)))
            .collect();
        links.extend(self.depends(at, DependencyKind::Normal));
        if tests {
            links.extend(self.depends(at, DependencyKind::Development));
        }
        links
    }

    /// Links of a program of the package.
    fn linked(&self, at: PackageIndex, tests: bool) -> Vec<Link> {
        let Some(own) = self.rlib(at) else {
            return self.compiled_in(at, tests);
        };
        let mut links = vec![link(own)];
        if tests {
            links.extend(self.depends(at, DependencyKind::Development));
        }
        links
    }

    /// Crates of a kind of dependencies.
    fn depends(&self, at: PackageIndex, kind: DependencyKind) -> Vec<Link> {
        let edges = self.packages.edges[at].iter();
        edges
            .filter(|edge| edge.has_kind(kind))
            .filter_map(|edge| self.rlib(edge.to).map(link))
            .collect()
    }

    /// Name of the node of a package's crate, if Rust code can be linked with it.
    fn rlib(&self, at: PackageIndex) -> Option<String> {
        let package = self.packages.packages[at];
        let (what, _) = linkable(package).filter(|(what, _)| *what != "proc-macro")?;
        let unit = CargoUnit {
            package: at,
            what,
            target: None,
        };
        (!finalizer::is_finalizer(package)).then(|| unit.name(self.names.package(at)))
    }

    /// Names of the libraries visible to a package's device link.
    fn seen(&mut self, at: PackageIndex, tests: bool) -> Vec<String> {
        let seen = self.visibility.visible_to_programs(at, tests);
        let names = &self.names;
        seen.into_iter()
            .map(|library| names.library(library.package, &library.name))
            .collect()
    }

    /// Adds the images of a package: for all packages the build script, for selected ones the rest.
    pub(super) fn images(&mut self, at: PackageIndex, selected: bool) {
        let package = self.packages.packages[at];
        if finalizer::is_finalizer(package) {
            return;
        }
        for target in &package.targets {
            for (what, form, tests) in parts(package, target) {
                let host = what == "build-script";
                if !(selected || host) {
                    continue;
                }
                // Unit tests without CUDA code of their own are left to packages with programs.
                let has_rdc = !self.packages.rdc(at).is_empty();
                if what == "lib-tests" && !has_rdc && !self.visibility.has_link(at, true) {
                    continue;
                }
                let links = match what {
                    "build-script" => self.depends(at, DependencyKind::Build),
                    "cdylib" | "staticlib" => self.compiled_in(at, false),
                    "lib-tests" => self.compiled_in(at, true),
                    _ => self.linked(at, tests),
                };
                let several = matches!(what, "bin" | "bin-tests" | "test" | "example" | "bench");
                let unit = CargoUnit {
                    package: at,
                    what,
                    target: several.then(|| target.name.clone()),
                };
                let mut node = self.image(&unit, form, links);
                node.host = host;
                node.visible = (!host).then(|| self.seen(at, tests));
                self.add(unit, node);
            }
        }
    }
}

/// Form of a package's library for Rust programs that depend on it.
fn linkable(package: &Package) -> Option<(&'static str, NodeForm)> {
    let target = library(package)?;
    let has = |kinds: &[CrateType]| kinds.iter().any(|k| target.crate_types.contains(k));
    if has(&[CrateType::ProcMacro]) {
        Some(("proc-macro", NodeForm::Cdylib))
    } else if has(&[CrateType::Lib, CrateType::RLib]) {
        Some(("rlib", NodeForm::Static))
    } else if has(&[CrateType::DyLib]) {
        // rustc hides the C symbols in a Rust dylib.
        Some(("dylib", NodeForm::Cdylib))
    } else {
        None
    }
}

/// Images of a target: name, form, and whether dev-dependencies are linked.
fn parts(package: &Package, target: &Target) -> Vec<(&'static str, NodeForm, bool)> {
    let closed = target.crate_types.contains(&CrateType::CDyLib);
    let form = if closed {
        NodeForm::Cdylib
    } else {
        NodeForm::Bin
    };
    let mut parts = Vec::new();
    let is_lib = library(package).is_some_and(|lib| lib.src_path == target.src_path);
    for (kind, what, tests) in [
        (TargetKind::Bin, "bin", false),
        (TargetKind::Test, "test", true),
        (TargetKind::Example, "example", true),
        (TargetKind::Bench, "bench", true),
        (TargetKind::CustomBuild, "build-script", false),
    ] {
        if target.is_kind(kind) {
            parts.push((what, form, tests));
        }
    }
    if is_lib && closed {
        parts.push(("cdylib", NodeForm::Cdylib, false));
    }
    if is_lib && target.crate_types.contains(&CrateType::StaticLib) {
        parts.push(("staticlib", NodeForm::Bin, false));
    }
    let is_bin = target.is_kind(TargetKind::Bin);
    let is_macro = target.is_kind(TargetKind::ProcMacro);
    if target.test && is_bin {
        parts.push(("bin-tests", NodeForm::Bin, true));
    } else if target.test && is_lib && !is_macro {
        parts.push(("lib-tests", NodeForm::Bin, true));
    }
    parts
}
