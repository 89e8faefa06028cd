//! Libraries visible to a build script: cargo passes metadata to direct dependents only, of
//! packages with a `links` key, and not of dev-dependencies.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use cargo_metadata::DependencyKind;

use crate::finalizer;
use crate::graph::Graph as Packages;
use crate::package_index::PackageIndex;

/// A library of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Package that declares the library.
    pub package: PackageIndex,
    /// Name of the library in that package.
    pub name: String,
}

/// Libraries visible to each package.
pub struct MetadataVisibility<'a> {
    packages: &'a Packages<'a>,
    visible: HashMap<PackageIndex, Vec<Library>>,
}

impl<'a> MetadataVisibility<'a> {
    /// Creates the visibility for the packages of a graph.
    pub fn new(packages: &'a Packages<'a>) -> Self {
        Self {
            packages,
            visible: HashMap::new(),
        }
    }

    /// Libraries of this name that a package's libraries may require: its own, else those that its
    /// dependencies publish.
    pub fn required(&mut self, at: PackageIndex, name: &str) -> Vec<Library> {
        let called = |library: &Library| library.name == name;
        let own: Vec<Library> = self.own(at).into_iter().filter(called).collect();
        if !own.is_empty() {
            return own;
        }
        self.visible(at).into_iter().filter(called).collect()
    }

    /// The libraries visible to the device link of a package's programs, or of its tests.
    pub fn visible_to_programs(&mut self, at: PackageIndex, tests: bool) -> Vec<Library> {
        if let Some(last) = self.finalizer(at, tests) {
            return self.visible(last);
        }
        if !self.has_link(at, tests) {
            return Vec::new();
        }
        let mut seen = self.own(at);
        seen.extend(self.visible(at));
        seen
    }

    /// Whether a build script device-links the programs or tests of a package: its own, or that of
    /// its finalizer.
    pub fn has_link(&self, at: PackageIndex, tests: bool) -> bool {
        self.finalizer(at, tests).is_some() || self.links_itself(at)
    }

    fn links_itself(&self, at: PackageIndex) -> bool {
        let has_rdc = !self.packages.rdc(at).is_empty();
        let read = |path: &Path| fs::read_to_string(path).ok();
        finalizer::links_itself(self.packages.packages[at], has_rdc, read)
    }

    fn finalizer(&self, at: PackageIndex, tests: bool) -> Option<PackageIndex> {
        let name = finalizer::name(self.packages.packages[at]);
        let mut edges = self.packages.edges[at].iter();
        let last = edges.find(|edge| {
            let in_tests = tests && edge.has_kind(DependencyKind::Development);
            self.packages.packages[edge.to].name.as_str() == name
                && (in_tests || edge.has_kind(DependencyKind::Normal))
        })?;
        Some(last.to)
    }

    fn own(&self, at: PackageIndex) -> Vec<Library> {
        let declared = self.packages.rdc(at).into_iter();
        declared
            .map(|one| Library {
                package: at,
                name: one.name.value.clone(),
            })
            .collect()
    }

    /// Libraries that the direct dependencies of a package publish, each once.
    fn visible(&mut self, at: PackageIndex) -> Vec<Library> {
        if let Some(known) = self.visible.get(&at) {
            return known.clone();
        }
        let mut all: Vec<Library> = Vec::new();
        let packages = self.packages;
        for edge in &packages.edges[at] {
            let publishes = packages.packages[edge.to].links.is_some();
            let own = self.own(edge.to);
            if !edge.has_kind(DependencyKind::Normal) || !publishes || own.is_empty() {
                continue;
            }
            for library in own.into_iter().chain(self.visible(edge.to)) {
                if !all.contains(&library) {
                    all.push(library);
                }
            }
        }
        self.visible.insert(at, all.clone());
        all
    }
}
