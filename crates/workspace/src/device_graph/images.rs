//! Nodes of cargo's outputs: crates, programs, libraries for other languages.

use crate::display_path::display_path;
use cargo_metadata::{CrateType, DependencyKind, Package, Target, TargetKind};
use gpustub_core::device_link::{Link, Node, NodeForm, NodeKind};
use gpustub_core::diag::Origin;

use super::{Builder, CargoUnit, link};
use crate::finalizer;
use crate::package_index::PackageIndex;
use crate::workspace::{has_crate_type, library};

impl Builder<'_> {
    /// Adds a package's library in the form that its dependents link.
    pub(super) fn add_crate(&mut self, index: PackageIndex) {
        let package = self.packages.packages[index];
        if finalizer::is_finalizer(package) {
            return;
        }
        let Some((kind, form)) = linkable(package) else {
            return;
        };
        let links = self.compiled_in(index, false);
        let unit = CargoUnit {
            package: index,
            kind,
            target: None,
        };
        let mut node = self.image(&unit, form, links);
        node.host = kind == "proc-macro";
        if kind == "dylib" {
            node.visible = Some(self.visible_libraries(index, false));
        }
        self.add(unit, node);
    }

    /// Creates the node of a package's target.
    fn image(&self, unit: &CargoUnit, form: NodeForm, links: Vec<Link>) -> Node {
        let package = self.packages.packages[unit.package];
        let name = unit.name(self.names.package(unit.package));
        let mut node = Node::new(name, NodeKind::Plain, form);
        node.origin = Some(Origin::new(
            display_path(package.manifest_path.as_std_path()),
            0..0,
        ));
        node.links = links;
        node
    }

    /// Links of the package's own code: its libraries, and its dependencies' crates.
    fn compiled_in(&self, index: PackageIndex, for_tests: bool) -> Vec<Link> {
        let mut links = Vec::new();
        for library in self.packages.rdc(index) {
            links.push(link(self.names.library(index, &library.name.value)));
        }
        links.extend(self.dependencies(index, DependencyKind::Normal));
        if for_tests {
            links.extend(self.dependencies(index, DependencyKind::Development));
        }
        links
    }

    /// Links of a program of the package.
    fn linked(&self, index: PackageIndex, for_tests: bool) -> Vec<Link> {
        let Some(rlib) = self.rlib(index) else {
            return self.compiled_in(index, for_tests);
        };
        let mut links = vec![link(rlib)];
        if for_tests {
            links.extend(self.dependencies(index, DependencyKind::Development));
        }
        links
    }

    /// Links to the crates of a kind of dependencies.
    fn dependencies(&self, index: PackageIndex, kind: DependencyKind) -> Vec<Link> {
        self.packages.edges[index]
            .iter()
            .filter(|edge| edge.has_kind(kind))
            .filter_map(|edge| self.rlib(edge.to).map(link))
            .collect()
    }

    /// Name of the node of a package's crate, if Rust code can be linked with it.
    fn rlib(&self, index: PackageIndex) -> Option<String> {
        let package = self.packages.packages[index];
        let (kind, _) = linkable(package)?;
        if kind == "proc-macro" || finalizer::is_finalizer(package) {
            return None;
        }
        let unit = CargoUnit {
            package: index,
            kind,
            target: None,
        };
        Some(unit.name(self.names.package(index)))
    }

    /// Names of the libraries visible to a package's device link.
    fn visible_libraries(&mut self, index: PackageIndex, for_tests: bool) -> Vec<String> {
        self.visibility
            .visible_to_programs(index, for_tests)
            .into_iter()
            .map(|library| self.names.library(library.package, &library.name))
            .collect()
    }

    /// Adds the images of a package: for all packages the build script, for selected ones the rest.
    pub(super) fn add_images(&mut self, index: PackageIndex, selected: bool) {
        let package = self.packages.packages[index];
        if finalizer::is_finalizer(package) {
            return;
        }
        for target in &package.targets {
            for (kind, form, for_tests) in images(package, target) {
                let host = kind == "build-script";
                if !(selected || host) {
                    continue;
                }
                // Unit tests without CUDA code of their own are left to packages with programs.
                let has_rdc = !self.packages.rdc(index).is_empty();
                if kind == "lib-tests" && !has_rdc && !self.visibility.has_link(index, true) {
                    continue;
                }
                let links = match kind {
                    "build-script" => self.dependencies(index, DependencyKind::Build),
                    "cdylib" | "staticlib" => self.compiled_in(index, false),
                    "lib-tests" => self.compiled_in(index, true),
                    _ => self.linked(index, for_tests),
                };
                let has_siblings =
                    matches!(kind, "bin" | "bin-tests" | "test" | "example" | "bench");
                let unit = CargoUnit {
                    package: index,
                    kind,
                    target: has_siblings.then(|| target.name.clone()),
                };
                let mut node = self.image(&unit, form, links);
                node.host = host;
                if !host {
                    node.archs = self.packages.link_archs(index);
                }
                node.visible = (!host).then(|| self.visible_libraries(index, for_tests));
                self.add(unit, node);
            }
        }
    }
}

/// Form of a package's library for Rust programs that depend on it.
fn linkable(package: &Package) -> Option<(&'static str, NodeForm)> {
    let target = library(package)?;
    if has_crate_type(target, &[CrateType::ProcMacro]) {
        Some(("proc-macro", NodeForm::Cdylib))
    } else if has_crate_type(target, &[CrateType::Lib, CrateType::RLib]) {
        Some(("rlib", NodeForm::Static))
    } else if has_crate_type(target, &[CrateType::DyLib]) {
        // rustc hides the C symbols in a Rust dylib.
        Some(("dylib", NodeForm::Cdylib))
    } else {
        None
    }
}

/// Images of a target: kind, form, and whether dev-dependencies are linked.
fn images(package: &Package, target: &Target) -> Vec<(&'static str, NodeForm, bool)> {
    let is_cdylib = target.crate_types.contains(&CrateType::CDyLib);
    let form = if is_cdylib {
        NodeForm::Cdylib
    } else {
        NodeForm::Bin
    };
    let mut images = Vec::new();
    let is_lib = library(package).is_some_and(|lib| lib.src_path == target.src_path);
    for (target_kind, kind, for_tests) in [
        (TargetKind::Bin, "bin", false),
        (TargetKind::Test, "test", true),
        (TargetKind::Example, "example", true),
        (TargetKind::Bench, "bench", true),
        (TargetKind::CustomBuild, "build-script", false),
    ] {
        if target.is_kind(target_kind) {
            images.push((kind, form, for_tests));
        }
    }
    if is_lib && is_cdylib {
        images.push(("cdylib", NodeForm::Cdylib, false));
    }
    if is_lib && target.crate_types.contains(&CrateType::StaticLib) {
        images.push(("staticlib", NodeForm::Bin, false));
    }
    let is_bin = target.is_kind(TargetKind::Bin);
    let is_macro = target.is_kind(TargetKind::ProcMacro);
    if target.test && is_bin {
        images.push(("bin-tests", NodeForm::Bin, true));
    } else if target.test && is_lib && !is_macro {
        images.push(("lib-tests", NodeForm::Bin, true));
    }
    images
}
