//! The graph of RDC libraries, crates and programs, from what cargo resolved and what each package
//! declares: what core plans device links of.
//!
//! A library is called as in `[device-link.<name>]`; everything else `<package>/<what>[/<target>]`:
//! `report/rlib`, `app/bin/app`. Only what reaches a library is in the graph. Finalizer crates are
//! not: they are how a program's build sees its libraries.

mod images;
mod libraries;
mod names;
mod runtime;
mod visibility;

use std::collections::{BTreeSet, HashMap};

use cargo_metadata::{DependencyKind, Package};
use gpustub_core::device_link::{Graph, Link, LinkPlan, Node, NodeId, plan};
use gpustub_core::diag::{Diagnostic, Origin, has_errors};
use gpustub_core::ids::IndexVec;

use crate::graph::Graph as Packages;
use crate::package_index::PackageIndex;
use names::Names;
use visibility::MetadataVisibility;

/// The graph, and what its nodes are to cargo.
#[derive(Debug, Default)]
pub struct DeviceGraph {
    /// What is planned. Without nodes: there is no relocatable code.
    pub graph: Graph,
    /// The unit of each node.
    pub units: IndexVec<NodeId, CargoUnit>,
    /// What is wrong already.
    pub found: Vec<Diagnostic>,
}

/// The part of a package that a node stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CargoUnit {
    /// Its package.
    pub package: PackageIndex,
    /// `library`, or what its target is: `rlib`, `bin`, `lib-tests`, …
    pub what: &'static str,
    /// The target's name, of what a package may have several of.
    pub target: Option<String>,
}

impl CargoUnit {
    /// The name of the node in a graph where the package is called `package`.
    fn name(&self, package: &str) -> String {
        let target = self.target.iter().map(|target| format!("/{target}"));
        format!("{package}/{}{}", self.what, target.collect::<String>())
    }
}

impl DeviceGraph {
    /// The graph of the programs of some packages, and of all that they are built with.
    pub fn read(packages: &Packages, selected: &[&Package]) -> Self {
        let selected: BTreeSet<PackageIndex> = selected
            .iter()
            .filter_map(|package| packages.index(&package.id))
            .collect();
        let reached = reached(packages, &selected);
        if reached.iter().all(|&at| packages.rdc(at).is_empty()) {
            return Self::default();
        }
        let mut builder = Builder {
            names: Names::new(packages, &reached),
            visibility: MetadataVisibility::new(packages),
            packages,
            made: Self::default(),
        };
        for &at in &reached {
            builder.libraries(at);
        }
        for &at in &reached {
            builder.crates(at);
        }
        for &at in &reached {
            builder.images(at, selected.contains(&at));
        }
        builder.made.keep_what_reaches_libraries();
        builder.made
    }

    /// Plans it. The diagnostics are also of what was wrong before.
    pub fn plan(&self) -> (LinkPlan<'_>, Vec<Diagnostic>) {
        let (links, more) = plan(&self.graph);
        let found = self.found.iter().cloned().chain(more);
        (links, found.collect())
    }

    /// Whether the plan is of all that there is: nothing is missing in the graph, nor stands against it.
    pub fn is_whole(&self, links: &LinkPlan<'_>) -> bool {
        !has_errors(&self.found) && links.nodes().len() == self.graph.nodes.len()
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
        let is_library = |unit: &CargoUnit| unit.what == "library";
        let mut keeps: IndexVec<NodeId, bool> = self.units.iter().map(is_library).collect();
        let mut open: Vec<NodeId> = graph.ids().filter(|&id| keeps[id]).collect();
        while let Some(id) = open.pop() {
            for &user in &users[id] {
                if !std::mem::replace(&mut keeps[user], true) {
                    open.push(user);
                }
            }
        }
        let kept = || graph.ids().filter(|&id| keeps[id]);
        let names: BTreeSet<String> = kept().map(|id| graph[id].name.clone()).collect();
        self.units = kept().map(|id| self.units[id].clone()).collect();
        let mut keep = keeps.iter();
        self.graph.nodes.retain(|_| keep.next() == Some(&true));
        for node in &mut self.graph.nodes {
            node.links.retain(|link| names.contains(&link.to));
        }
    }
}

/// The packages that those are built with or of, by name and version. Tests count for those alone.
fn reached(packages: &Packages, selected: &BTreeSet<PackageIndex>) -> Vec<PackageIndex> {
    let mut seen = selected.clone();
    let mut open: Vec<PackageIndex> = selected.iter().copied().collect();
    while let Some(at) = open.pop() {
        for edge in &packages.edges[at] {
            let kinds = [DependencyKind::Normal, DependencyKind::Build];
            let always = kinds.into_iter().any(|kind| edge.has_kind(kind));
            if (always || selected.contains(&at)) && seen.insert(edge.to) {
                open.push(edge.to);
            }
        }
    }
    let mut reached: Vec<PackageIndex> = seen.into_iter().collect();
    reached.sort_by_key(|&at| {
        let package = packages.packages[at];
        (package.name.as_str(), &package.version, &package.id)
    });
    reached
}

struct Builder<'a> {
    packages: &'a Packages<'a>,
    names: Names,
    visibility: MetadataVisibility<'a>,
    made: DeviceGraph,
}

impl Builder<'_> {
    fn add(&mut self, unit: CargoUnit, node: Node) {
        self.made.units.push(unit);
        self.made.graph.nodes.push(node);
    }

    fn place(&self, at: PackageIndex, span: std::ops::Range<usize>) -> Option<Origin> {
        let file = self.packages.declared[at].as_ref()?.shown.clone();
        Some(Origin { file, span })
    }
}

fn link(to: String) -> Link {
    Link { to, private: false }
}
