//! Crates that a package links, and the GPU libraries that they need.

use std::collections::BTreeSet;
use std::fmt;

use cargo_metadata::{Metadata, Package};
use gpustub_check::known_crates::{KnownCrate, known};
use gpustub_workspace::error::Result;
use gpustub_workspace::graph::PackageGraph;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::workspace::{Depth, Workspace, target};

/// A crate with its enabled features.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Name of the crate.
    pub name: String,
    /// Version of the crate.
    pub version: String,
    /// Enabled features.
    pub features: Vec<String>,
}

/// `cudarc 0.19.10`.
impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

impl Dependency {
    /// Libraries that the crate links, by the ids of gpustub.
    pub fn links(&self) -> BTreeSet<&'static str> {
        known(&self.name, &self.features)
            .flat_map(|row| &row.links)
            .map(String::as_str)
            .collect()
    }

    /// Row of a crate that opens its libraries with dlopen.
    pub fn dlopens(&self) -> Option<&'static KnownCrate> {
        known(&self.name, &self.features).find(|row| row.uses_dlopen())
    }
}

/// Crates of a dependency graph.
#[derive(Debug, Default)]
pub struct Dependencies {
    /// Crates that the package links, sorted by name.
    pub linked: Vec<Dependency>,
    /// Crates of the whole workspace.
    pub all: Vec<Dependency>,
}

impl Dependencies {
    /// Reads the graph of a package with the features of the command line.
    pub fn read(options: &Selection, package: &Package) -> Result<Self> {
        let triple = target(None)?.triple;
        let workspace = Workspace::load(options, Depth::Graph(&triple))?;
        let graph = PackageGraph::read_selected(&workspace, &[package], options, &triple)?;
        let mut reached = BTreeSet::new();
        let mut queue: Vec<_> = graph.index(&package.id).into_iter().collect();
        while let Some(index) = queue.pop() {
            for &dependency in &graph.nodes[index].dependencies {
                if reached.insert(dependency) {
                    queue.push(dependency);
                }
            }
        }
        let mut linked = Vec::new();
        for index in reached {
            linked.push(Dependency {
                name: graph.packages[index].name.to_string(),
                version: graph.packages[index].version.to_string(),
                features: graph.features[index].clone(),
            });
        }
        linked.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            linked,
            all: crates(&workspace.metadata),
        })
    }
}

/// All crates that cargo resolved.
pub fn crates(metadata: &Metadata) -> Vec<Dependency> {
    let Some(resolve) = &metadata.resolve else {
        return Vec::new();
    };
    metadata
        .packages
        .iter()
        .map(|package| {
            let node = resolve.nodes.iter().find(|node| node.id == package.id);
            let features = node.into_iter().flat_map(|node| &node.features);
            Dependency {
                name: package.name.to_string(),
                version: package.version.to_string(),
                features: features.map(ToString::to_string).collect(),
            }
        })
        .collect()
}
