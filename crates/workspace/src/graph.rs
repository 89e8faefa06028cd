//! Dependency graph, for `plan` and `check`.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::report::Sources;
use cargo_metadata::{CrateType, DependencyKind, Package, PackageId, TargetKind};
use gpustub_core::abi_table::headers::HeadersMark;
use gpustub_core::diag::Origin;
use gpustub_core::gpu_arch::Arch;
use gpustub_core::ids::IndexVec;
use gpustub_core::library::Library;
use gpustub_core::manifest::{DeviceLink, DeviceModule, Stub};

use crate::cargo_tree::{self, Features, Query, TreePackage};
use crate::package_index::PackageIndex;
use crate::providers::{LinkedImage, PackageNode, ProvidedStubs};
use crate::selection::Selection;
use crate::tables::{Declared, Members};
use crate::workspace::{Workspace, directory, library};

/// Resolved dependency of a package.
#[derive(Debug)]
pub struct Edge {
    /// Package that the dependency was resolved to.
    pub to: PackageIndex,
    /// Each kind, with its targets: as in `[target.….dependencies]`, or all.
    pub kinds: Vec<(DependencyKind, Option<String>)>,
}

impl Edge {
    /// Whether the dependency is also of this kind.
    pub fn has_kind(&self, kind: DependencyKind) -> bool {
        self.kinds.iter().any(|(known, _)| *known == kind)
    }
}

/// Dependency graph, with the declarations of each package.
pub struct PackageGraph<'a> {
    /// The packages, in the order of `cargo metadata`.
    pub packages: IndexVec<PackageIndex, &'a Package>,
    /// Declarations of each package.
    pub declared: IndexVec<PackageIndex, Option<Declared>>,
    /// Enabled features of each package.
    pub features: IndexVec<PackageIndex, Vec<String>>,
    /// Provided and linked libraries of each package.
    pub nodes: IndexVec<PackageIndex, PackageNode>,
    /// Resolved dependencies of each package.
    pub edges: IndexVec<PackageIndex, Vec<Edge>>,
    index: HashMap<&'a PackageId, PackageIndex>,
}

impl<'a> PackageGraph<'a> {
    /// Reads what every package of the graph declares.
    pub fn read(workspace: &'a Workspace) -> Result<Self> {
        let mut graph = Self::resolved(workspace)?;
        graph.link();
        Ok(graph)
    }

    /// Reads the graph of the selected packages with the features of the command line: the packages
    /// that cargo builds for them, tests included. The graph of the whole workspace may hold more.
    pub fn read_selected(
        workspace: &'a Workspace,
        selected: &[&Package],
        options: &Selection,
        triple: &str,
    ) -> Result<Self> {
        let mut graph = Self::resolved(workspace)?;
        if selected.len() < workspace.members().len() {
            let query = Query {
                workspace,
                options,
                packages: selected,
                edges: "normal,build,dev",
                features: Features::CommandLine(&options.features),
                target: Some(triple),
            };
            graph.narrow(&cargo_tree::packages(&query.text()?));
        }
        graph.link();
        Ok(graph)
    }

    /// Reads cargo's resolution.
    fn resolved(workspace: &'a Workspace) -> Result<Self> {
        let metadata = &workspace.metadata;
        let packages: IndexVec<PackageIndex, &Package> = metadata.packages.iter().collect();
        let index: HashMap<&PackageId, PackageIndex> = packages
            .iter()
            .zip(packages.ids())
            .map(|(package, index)| (&package.id, index))
            .collect();
        let mut graph = Self {
            declared: IndexVec::new(),
            features: IndexVec::filled(Vec::new(), packages.len()),
            nodes: IndexVec::new(),
            edges: packages.iter().map(|_| Vec::new()).collect(),
            packages,
            index,
        };
        for package in &graph.packages {
            graph.declared.push(Declared::read(workspace, package)?);
            graph.nodes.push(PackageNode {
                name: package.name.to_string(),
                version: package.version.to_string(),
                ..PackageNode::default()
            });
        }
        let resolve = metadata.resolve.as_ref();
        for node in resolve.into_iter().flat_map(|resolve| &resolve.nodes) {
            let Some(&user) = graph.index.get(&node.id) else {
                continue;
            };
            graph.features[user] = node.features.iter().map(ToString::to_string).collect();
            for dependency in &node.deps {
                let Some(&to) = graph.index.get(&dependency.pkg) else {
                    continue;
                };
                let kinds = dependency
                    .dep_kinds
                    .iter()
                    .map(|info| (info.kind, info.target.as_ref().map(ToString::to_string)))
                    .collect();
                graph.edges[user].push(Edge { to, kinds });
            }
        }
        Ok(graph)
    }

    /// Reduces the features and dependencies of the packages to those in a tree. If the programs
    /// and a build script use a package with different features, those of the programs count.
    fn narrow(&mut self, tree: &[TreePackage]) {
        /// A package as cargo builds it: for the target, or for the host.
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        struct Instance {
            package: PackageIndex,
            is_host: bool,
        }
        #[derive(Default)]
        struct InstanceUse<'t> {
            features: Vec<&'t str>,
            edges: HashSet<(DependencyKind, PackageIndex)>,
        }
        let mut uses: HashMap<Instance, InstanceUse> = HashMap::new();
        let mut ancestors: Vec<Option<Instance>> = Vec::new();
        for line in tree {
            ancestors.truncate(line.depth);
            let parent = ancestors.last().copied().flatten();
            let instance = self.find(line).map(|package| Instance {
                package,
                is_host: parent.is_some_and(|parent| parent.is_host)
                    || line.kind == DependencyKind::Build
                    || self.is_macro(package),
            });
            if let Some(instance) = instance {
                let features = &mut uses.entry(instance).or_default().features;
                features.clone_from(&line.features);
                if let Some(parent) = parent {
                    let edges = &mut uses.entry(parent).or_default().edges;
                    edges.insert((line.kind, instance.package));
                }
            }
            ancestors.push(instance);
        }
        for package in self.packages.ids() {
            let instances = [false, true].map(|is_host| Instance { package, is_host });
            let Some(used) = instances.iter().find_map(|instance| uses.get(instance)) else {
                continue;
            };
            self.features[package] = used.features.iter().map(ToString::to_string).collect();
            for edge in &mut self.edges[package] {
                let to = edge.to;
                edge.kinds
                    .retain(|(kind, _)| used.edges.contains(&(*kind, to)));
            }
            self.edges[package].retain(|edge| !edge.kinds.is_empty());
        }
    }

    /// The package that `cargo tree` has printed.
    pub fn find(&self, printed: &TreePackage) -> Option<PackageIndex> {
        let candidates: Vec<PackageIndex> = self
            .packages
            .ids()
            .filter(|&index| {
                let package = self.packages[index];
                package.name.as_str() == printed.name
                    && package.version.to_string() == printed.version
            })
            .collect();
        if candidates.len() > 1 {
            // Two sources, with one name and version.
            for &candidate in &candidates {
                let directory = directory(self.packages[candidate]).display();
                if printed.source.contains(&format!("({directory})")) {
                    return Some(candidate);
                }
            }
        }
        candidates.first().copied()
    }

    /// Whether a package is a procedural macro, which runs in the compiler and is in no image.
    fn is_macro(&self, index: PackageIndex) -> bool {
        library(self.packages[index]).is_some_and(|target| target.is_kind(TargetKind::ProcMacro))
    }

    /// Finds what each package links and provides.
    fn link(&mut self) {
        for user in self.packages.ids() {
            for edge in &self.edges[user] {
                if self.is_macro(edge.to) {
                    continue;
                }
                let node = &mut self.nodes[user];
                if edge.has_kind(DependencyKind::Normal) {
                    node.dependencies.push(edge.to);
                } else if edge.has_kind(DependencyKind::Development) {
                    node.dev_dependencies.push(edge.to);
                }
            }
        }
        for (index, declared) in self.declared.ids().zip(&self.declared) {
            let Some(declared) = declared else { continue };
            for stub in &declared.manifest.stubs {
                let features = self.features[index].iter().map(String::as_str);
                if !stub.required_features.are_enabled(features) {
                    continue;
                }
                let origin = Some(Origin::new(&declared.display_path, stub.id.span.clone()));
                let node = &mut self.nodes[index];
                let id = stub.id.value.clone();
                if stub.provide {
                    node.provides.insert(id, provided(stub, origin));
                } else {
                    node.requires.insert(id, origin);
                }
            }
        }
    }

    /// Declarations of the members, with the selected ones separate.
    pub fn members(&self, workspace: &Workspace, selected: &[&Package]) -> Members<'_> {
        let mut members = Members {
            selected: Vec::new(),
            others: Vec::new(),
        };
        for (&package, declared) in self.packages.iter().zip(&self.declared) {
            let Some(declared) = declared.as_ref().filter(|_| workspace.has(package)) else {
                continue;
            };
            if selected.iter().any(|known| known.id == package.id) {
                members.selected.push((package, declared));
            } else {
                members.others.push((package, declared));
            }
        }
        members
    }

    /// Index of a package in the lists.
    pub fn index(&self, id: &PackageId) -> Option<PackageIndex> {
        self.index.get(id).copied()
    }

    /// RDC libraries of a package whose features are enabled.
    pub fn rdc(&self, index: PackageIndex) -> Vec<&DeviceLink> {
        self.declared[index]
            .iter()
            .flat_map(|declared| &declared.manifest.device_links)
            .filter(|library| self.is_enabled(index, library))
            .collect()
    }

    /// Modules of a package whose features are enabled.
    pub fn modules(&self, index: PackageIndex) -> Vec<&DeviceModule> {
        self.declared[index]
            .iter()
            .flat_map(|declared| &declared.manifest.device_modules)
            .filter(|module| self.is_enabled(index, &module.library))
            .collect()
    }

    /// Architectures that a package requests for the device links of its programs.
    pub fn link_archs(&self, index: PackageIndex) -> Vec<Arch> {
        self.declared[index]
            .iter()
            .flat_map(|declared| &declared.manifest.link_archs)
            .map(|arch| arch.value)
            .collect()
    }

    /// Whether the features that a library of a package requires are enabled.
    fn is_enabled(&self, index: PackageIndex, library: &DeviceLink) -> bool {
        let features = self.features[index].iter().map(String::as_str);
        library.required_features.are_enabled(features)
    }

    /// Texts that diagnostics may refer to.
    pub fn sources(&self) -> Sources {
        self.declared
            .iter()
            .flatten()
            .flat_map(Declared::sources)
            .collect()
    }

    /// The selected packages and all that they may link, members first, then by name.
    pub fn reachable(&self, selected: &[&Package]) -> Vec<PackageIndex> {
        let roots: Vec<PackageIndex> = selected
            .iter()
            .filter_map(|package| self.index.get(&package.id).copied())
            .collect();
        let mut reachable = roots.clone();
        let mut next = 0;
        while let Some(&index) = reachable.get(next) {
            let node = &self.nodes[index];
            for dependency in node.dependencies.iter().chain(&node.dev_dependencies) {
                if !reachable.contains(dependency) {
                    reachable.push(*dependency);
                }
            }
            next += 1;
        }
        reachable.sort_by_key(|index| {
            let package = self.packages[*index];
            let is_dependency = !roots.contains(index);
            (is_dependency, package.name.as_str(), &package.version)
        });
        reachable
    }

    /// Images of the selected packages.
    pub fn images(&self, selected: &[&Package]) -> Vec<LinkedImage> {
        let mut images = Vec::new();
        for package in selected {
            let Some(&index) = self.index.get(&package.id) else {
                continue;
            };
            for target in &package.targets {
                let mut add = |kind: &str, with_dev, dylib, complete| {
                    images.push(LinkedImage {
                        name: format!("{kind} `{}`", target.name),
                        package: index,
                        with_dev,
                        dylib,
                        complete,
                    });
                };
                for kind in &target.kind {
                    match kind {
                        TargetKind::Bin => add("bin", false, false, true),
                        TargetKind::Test => add("test", true, false, true),
                        TargetKind::Example => add("example", true, false, true),
                        TargetKind::Bench => add("bench", true, false, true),
                        _ => {}
                    }
                }
                let is_lib = library(package).is_some_and(|lib| lib.src_path == target.src_path);
                for kind in target.crate_types.iter().filter(|_| is_lib) {
                    match kind {
                        CrateType::CDyLib => add("cdylib", false, false, true),
                        CrateType::StaticLib => add("staticlib", false, false, true),
                        CrateType::DyLib => add("dylib", false, true, true),
                        _ => {}
                    }
                }
                if target.test && (is_lib || target.is_kind(TargetKind::Bin)) {
                    add("unit tests of", true, false, !is_lib);
                }
            }
        }
        images
    }
}

/// Stubs that a package provides, by their table.
fn provided(stub: &Stub, origin: Option<Origin>) -> ProvidedStubs {
    let header = stub.header_version();
    ProvidedStubs {
        headers: HeadersMark::new(Library::builtin(&stub.id.value), header),
        header_version: header.map_or("none".to_owned(), |header| header.to_string()),
        origin,
    }
}
