//! Libraries visible to a build script: cargo passes metadata to direct dependents only, of
//! packages with a `links` key, and not of dev-dependencies.

use std::collections::HashMap;
use std::fs;

use cargo_metadata::DependencyKind;

use crate::finalizer;
use crate::graph::PackageGraph as Packages;
use crate::package_index::PackageIndex;

/// A library of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageLibrary {
    /// Package that declares the library.
    pub package: PackageIndex,
    /// Name of the library in that package.
    pub name: String,
}

/// Libraries visible to each package.
pub struct MetadataVisibility<'a> {
    packages: &'a Packages<'a>,
    visible: HashMap<PackageIndex, Vec<PackageLibrary>>,
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
    pub fn required(&mut self, index: PackageIndex, name: &str) -> Vec<PackageLibrary> {
        let mut libraries = self.declared(index);
        libraries.retain(|library| library.name == name);
        if libraries.is_empty() {
            libraries = self.visible(index);
            libraries.retain(|library| library.name == name);
        }
        libraries
    }

    /// The libraries visible to the device link of a package's programs, or of its tests.
    pub fn visible_to_programs(
        &mut self,
        index: PackageIndex,
        for_tests: bool,
    ) -> Vec<PackageLibrary> {
        if let Some(finalizer) = self.finalizer(index, for_tests) {
            return self.visible(finalizer);
        }
        if !self.has_link(index, for_tests) {
            return Vec::new();
        }
        let mut libraries = self.declared(index);
        libraries.extend(self.visible(index));
        libraries
    }

    /// Whether a build script device-links the programs or tests of a package: its own, or that of
    /// its finalizer.
    pub fn has_link(&self, index: PackageIndex, for_tests: bool) -> bool {
        self.finalizer(index, for_tests).is_some() || self.links_itself(index)
    }

    fn links_itself(&self, index: PackageIndex) -> bool {
        let has_rdc = !self.packages.rdc(index).is_empty();
        finalizer::links_itself(self.packages.packages[index], has_rdc, |path| {
            fs::read_to_string(path).ok()
        })
    }

    fn finalizer(&self, index: PackageIndex, for_tests: bool) -> Option<PackageIndex> {
        let name = finalizer::finalizer_name(self.packages.packages[index]);
        for edge in &self.packages.edges[index] {
            let is_linked = edge.has_kind(DependencyKind::Normal)
                || for_tests && edge.has_kind(DependencyKind::Development);
            if is_linked && self.packages.packages[edge.to].name.as_str() == name {
                return Some(edge.to);
            }
        }
        None
    }

    /// Libraries that a package declares.
    fn declared(&self, index: PackageIndex) -> Vec<PackageLibrary> {
        self.packages
            .rdc(index)
            .into_iter()
            .map(|table| PackageLibrary {
                package: index,
                name: table.name.value.clone(),
            })
            .collect()
    }

    /// Libraries that the direct dependencies of a package publish, each once.
    fn visible(&mut self, index: PackageIndex) -> Vec<PackageLibrary> {
        if let Some(known) = self.visible.get(&index) {
            return known.clone();
        }
        let mut visible: Vec<PackageLibrary> = Vec::new();
        let packages = self.packages;
        for edge in &packages.edges[index] {
            let publishes = packages.packages[edge.to].links.is_some();
            let declared = self.declared(edge.to);
            if !edge.has_kind(DependencyKind::Normal) || !publishes || declared.is_empty() {
                continue;
            }
            for library in declared.into_iter().chain(self.visible(edge.to)) {
                if !visible.contains(&library) {
                    visible.push(library);
                }
            }
        }
        self.visible.insert(index, visible.clone());
        visible
    }
}
