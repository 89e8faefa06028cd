//! Graph of RDC libraries, crates and programs, from cargo's resolution and the packages' declarations:
//! the input of core's device-link planner.
//!
//! A library has its name in `[device-link.<name>]`; other nodes are called
//! `<package>/<kind>[/<target>]`: `report/rlib`, `app/bin/app`. The graph contains only nodes that reach
//! a library. Finalizer crates are left out: they only make libraries visible to a program's build.

mod images;
mod libraries;
mod modules;
mod names;
mod runtime;
mod visibility;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use cargo_metadata::{DependencyKind, Package};
use gpustub_core::device_link::{Graph, Link, LinkPlan, Node, NodeId, plan};
use gpustub_core::diag::{Diagnostic, Origin, has_errors};
use gpustub_core::ids::IndexVec;
use gpustub_core::manifest::DeviceModule;

use crate::graph::PackageGraph as Packages;
use crate::package_index::PackageIndex;
use names::Names;
use visibility::MetadataVisibility;

/// Graph, and the cargo unit of each node.
#[derive(Debug, Default)]
pub struct DeviceGraph {
    /// Input of the plan. Without nodes: there is no relocatable code.
    pub graph: Graph,
    /// The unit of each node.
    pub units: IndexVec<NodeId, CargoUnit>,
    /// Modules, which programs load and are not linked with.
    pub modules: Vec<Module>,
    /// Diagnostics found while reading.
    pub diagnostics: Vec<Diagnostic>,
}

/// Part of a package that a node represents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CargoUnit {
    /// Package.
    pub package: PackageIndex,
    /// `library`, or the kind of its target: `rlib`, `bin`, `lib-tests`, …
    pub kind: &'static str,
    /// Name of the target, if a package may have several of this kind.
    pub target: Option<String>,
}

/// A module of a package.
#[derive(Debug, Clone)]
pub struct Module {
    /// The package that declares it.
    pub package: PackageIndex,
    /// Table of `GpuStub.toml`.
    pub declared: DeviceModule,
    /// Libraries in its device link, by their names in the graph.
    pub libraries: Vec<String>,
    /// Files that its build writes.
    pub files: Vec<ModuleFile>,
}

/// A file that the package's code embeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFile {
    /// Environment variable with its path.
    pub variable: String,
    /// The source that it is made of; `None`: a device link.
    pub source: Option<String>,
}

impl CargoUnit {
    /// Name of the node in a graph where the package is called `package`.
    fn name(&self, package: &str) -> String {
        match &self.target {
            Some(target) => format!("{package}/{}/{target}", self.kind),
            None => format!("{package}/{}", self.kind),
        }
    }
}

impl DeviceGraph {
    /// Reads the graph of the programs of some packages, and of all their dependencies.
    pub fn read(packages: &Packages, selected: &[&Package]) -> Self {
        let selected: BTreeSet<PackageIndex> = selected
            .iter()
            .filter_map(|package| packages.index(&package.id))
            .collect();
        let reached = reached(packages, &selected);
        if reached
            .iter()
            .all(|&index| packages.rdc(index).is_empty() && packages.modules(index).is_empty())
        {
            return Self::default();
        }
        let mut builder = Builder {
            names: Names::new(packages, &reached),
            visibility: MetadataVisibility::new(packages),
            packages,
            device_graph: Self::default(),
        };
        for &index in &reached {
            builder.add_libraries(index);
            builder.add_modules(index);
        }
        for &index in &reached {
            builder.add_crate(index);
        }
        for &index in &reached {
            builder.add_images(index, selected.contains(&index));
        }
        builder.device_graph.keep_what_reaches_libraries();
        builder.device_graph
    }

    /// Plans the graph. The diagnostics include those found while reading.
    pub fn plan(&self) -> (LinkPlan<'_>, Vec<Diagnostic>) {
        let (links, planning) = plan(&self.graph);
        let mut diagnostics = self.diagnostics.clone();
        diagnostics.extend(planning);
        (links, diagnostics)
    }

    /// Whether the plan is complete: the graph was read without errors and planned.
    pub fn is_complete(&self, links: &LinkPlan<'_>) -> bool {
        !has_errors(&self.diagnostics) && links.nodes().len() == self.graph.nodes.len()
    }

    /// Drops nodes that no relocatable code is linked into.
    fn keep_what_reaches_libraries(&mut self) {
        let graph = &self.graph;
        let ids: HashMap<&str, NodeId> = graph
            .ids()
            .map(|id| (graph[id].name.as_str(), id))
            .collect();
        let mut users: IndexVec<NodeId, Vec<NodeId>> =
            IndexVec::filled(Vec::new(), graph.nodes.len());
        for user in graph.ids() {
            for link in &graph[user].links {
                if let Some(&to) = ids.get(link.to.as_str()) {
                    users[to].push(user);
                }
            }
        }
        let mut is_kept: IndexVec<NodeId, bool> = self
            .units
            .iter()
            .map(|unit| unit.kind == "library")
            .collect();
        let mut open: Vec<NodeId> = graph.ids().filter(|&id| is_kept[id]).collect();
        while let Some(id) = open.pop() {
            for &user in &users[id] {
                if !std::mem::replace(&mut is_kept[user], true) {
                    open.push(user);
                }
            }
        }
        let kept: Vec<NodeId> = graph.ids().filter(|&id| is_kept[id]).collect();
        let names: BTreeSet<String> = kept.iter().map(|&id| graph[id].name.clone()).collect();
        self.units = kept.iter().map(|&id| self.units[id].clone()).collect();
        let mut flags = is_kept.iter();
        self.graph.nodes.retain(|_| flags.next() == Some(&true));
        for node in &mut self.graph.nodes {
            node.links.retain(|link| names.contains(&link.to));
        }
    }
}

/// Packages that the selected ones are built with, by name and version. Only their tests count.
fn reached(packages: &Packages, selected: &BTreeSet<PackageIndex>) -> Vec<PackageIndex> {
    let mut reached = selected.clone();
    let mut open: Vec<PackageIndex> = selected.iter().copied().collect();
    while let Some(index) = open.pop() {
        for edge in &packages.edges[index] {
            let is_built =
                edge.has_kind(DependencyKind::Normal) || edge.has_kind(DependencyKind::Build);
            if (is_built || selected.contains(&index)) && reached.insert(edge.to) {
                open.push(edge.to);
            }
        }
    }
    let mut sorted = Vec::from_iter(reached);
    sorted.sort_by_key(|&index| {
        let package = packages.packages[index];
        (package.name.as_str(), &package.version, &package.id)
    });
    sorted
}

struct Builder<'a> {
    packages: &'a Packages<'a>,
    names: Names,
    visibility: MetadataVisibility<'a>,
    device_graph: DeviceGraph,
}

impl Builder<'_> {
    fn add(&mut self, unit: CargoUnit, node: Node) {
        self.device_graph.units.push(unit);
        self.device_graph.graph.nodes.push(node);
    }

    /// Adds a diagnostic of a package's `GpuStub.toml`.
    fn report(&mut self, mut diagnostic: Diagnostic, index: PackageIndex, span: &Range<usize>) {
        diagnostic.origin = self.origin(index, span);
        self.device_graph.diagnostics.push(diagnostic);
    }

    /// Position in a package's `GpuStub.toml`.
    fn origin(&self, index: PackageIndex, span: &Range<usize>) -> Option<Origin> {
        let declared = self.packages.declared[index].as_ref()?;
        Some(Origin::new(declared.display_path.clone(), span.clone()))
    }
}

fn link(to: String) -> Link {
    Link { to, private: false }
}
