//! The parts of an image that a request concerns, and the image's requirements after the edit.

use std::collections::{BTreeMap, BTreeSet};

use super::inspect::{ImportKind, Inspection};
use super::problem::EditProblem;
use super::request::{EditRequest, Replaced, Unversioned};
use crate::link_facts::VersionNeed;

/// The parts of an image that a request concerns.
pub(super) struct Targets {
    /// Libraries whose `DT_NEEDED` goes.
    pub(super) removed: BTreeSet<String>,
    /// The stub's node for each library of the version needs; `None` for one that stays.
    pub(super) nodes: Vec<Option<String>>,
    /// The stub's node for each import; `None` for one that stays.
    pub(super) imports: Vec<Option<String>>,
}

impl Targets {
    pub(super) fn find(image: &Inspection, request: &EditRequest) -> Result<Self, EditProblem> {
        check(request)?;
        let mut removed: BTreeSet<String> = request
            .libraries
            .iter()
            .flat_map(|library| &library.needed)
            .cloned()
            .collect();
        let mut nodes = Vec::new();
        let mut renamed = BTreeMap::new();
        for need in &image.verneed {
            let library = replaced_library(request, need);
            if let Some(library) = library {
                removed.insert(need.file.clone());
                for node in &need.nodes {
                    renamed.insert((&need.file, node), &library.node);
                }
            }
            nodes.push(library.map(|library| library.node.clone()));
        }
        let unversioned: BTreeMap<_, _> = request
            .unversioned
            .iter()
            .map(|import| (&import.symbol, &import.node))
            .collect();
        let mut imports = Vec::new();
        for import in &image.imports {
            let node = match import.file.as_ref().zip(import.node.as_ref()) {
                Some(version) => renamed.get(&version),
                None => unversioned.get(&import.name),
            };
            imports.push(node.map(|&node| node.clone()));
        }
        let targets = Self {
            removed,
            nodes,
            imports,
        };
        targets.refuse(image, &request.data)?;
        Ok(targets)
    }

    /// Rejects what a stub cannot provide: all data but this.
    fn refuse(&self, image: &Inspection, data: &[String]) -> Result<(), EditProblem> {
        let is_needed = image.needed.iter().any(|name| self.removed.contains(name));
        if !is_needed && self.imports.iter().all(Option::is_none) {
            return Err(EditProblem::NotNeeded);
        }
        let mut versions = BTreeSet::new();
        for (import, node) in image.imports.iter().zip(&self.imports) {
            if node.is_none() {
                continue;
            }
            let has_data = import.kind == ImportKind::Data && data.contains(&import.name);
            if import.copied && !has_data {
                return Err(EditProblem::CopyRelocation(import.name.clone()));
            }
            let is_data = matches!(import.kind, ImportKind::Data | ImportKind::ThreadLocal);
            if is_data && !has_data {
                return Err(EditProblem::Data(import.name.clone()));
            }
            if !versions.insert((&import.name, node)) {
                return Err(EditProblem::TwoVersions(import.name.clone()));
            }
        }
        Ok(())
    }

    /// Nodes of unversioned imports that no version need of the image becomes, in order.
    pub(super) fn added_nodes(&self, image: &Inspection) -> BTreeSet<&str> {
        if !image.has_versions {
            return BTreeSet::new();
        }
        let renamed: BTreeSet<&String> = self.nodes.iter().flatten().collect();
        self.imports
            .iter()
            .flatten()
            .filter(|node| !renamed.contains(node))
            .map(String::as_str)
            .collect()
    }

    /// The image's requirements after the edit.
    pub(super) fn expected(&self, image: &Inspection, request: &EditRequest) -> Inspection {
        let mut after = image.clone();
        after.needed = self.needed(image, request);
        after.runpath = runpath(image, request);
        let mut stub_nodes = BTreeSet::new();
        after.verneed.clear();
        for (need, node) in image.verneed.iter().zip(&self.nodes) {
            match node {
                None => after.verneed.push(need.clone()),
                Some(node) if stub_nodes.insert(&node[..]) => {
                    after.verneed.push(stub_need(request, node))
                }
                Some(_) => {}
            }
        }
        for node in self.added_nodes(image) {
            after.verneed.push(stub_need(request, node));
        }
        for (import, node) in after.imports.iter_mut().zip(&self.imports) {
            if image.has_versions && node.is_some() {
                import.file = Some(request.stub.clone());
                import.node = node.clone();
            }
        }
        after
    }

    /// `DT_NEEDED` after the edit: the stub takes the place of the first removed library.
    fn needed(&self, image: &Inspection, request: &EditRequest) -> Vec<String> {
        let mut needed = Vec::new();
        for name in &image.needed {
            let name = if self.removed.contains(name) {
                &request.stub
            } else {
                name
            };
            if *name != request.stub || !needed.contains(name) {
                needed.push(name.clone());
            }
        }
        if !needed.contains(&request.stub) {
            needed.push(request.stub.clone());
        }
        needed
    }
}

/// The library of the request that a version need concerns. A grafted copy has another name, and the nodes of the
/// original.
fn replaced_library<'r>(request: &'r EditRequest, need: &VersionNeed) -> Option<&'r Replaced> {
    if need.file == request.stub {
        return None;
    }
    let libraries = &request.libraries;
    let by_name = libraries
        .iter()
        .find(|library| library.needed.contains(&need.file));
    by_name.or_else(|| {
        libraries
            .iter()
            .find(|library| library.nodes.iter().any(|node| need.nodes.contains(node)))
    })
}

fn stub_need(request: &EditRequest, node: &str) -> VersionNeed {
    VersionNeed {
        file: request.stub.clone(),
        nodes: vec![node.to_owned()],
    }
}

/// The search path after the edit. An empty path has no directories (glibc's `decompose_rpath`).
fn runpath(image: &Inspection, request: &EditRequest) -> Option<String> {
    let added = request.runpath.as_deref();
    let Some(old) = image.runpath.as_deref() else {
        return added.map(str::to_owned);
    };
    let mut entries = Vec::new();
    for entry in old.split(':').filter(|_| !old.is_empty()) {
        if !request
            .removed_runpath
            .iter()
            .any(|removed| removed == entry)
        {
            entries.push(entry);
        }
    }
    entries.extend(added.filter(|added| !entries.contains(added)));
    Some(entries.join(":"))
}

/// Rejects names that no string table can hold.
fn check(request: &EditRequest) -> Result<(), EditProblem> {
    let library_nodes = request.libraries.iter().map(|library| &library.node);
    let import_nodes = request.unversioned.iter().map(|import| &import.node);
    let names = library_nodes
        .chain(import_nodes)
        .chain([&request.stub])
        .chain(&request.runpath);
    for name in names {
        if name.is_empty() || name.contains('\0') {
            return Err(EditProblem::Request(format!("{name:?} is no name")));
        }
    }
    let mut nodes = BTreeMap::new();
    for Unversioned { symbol, node } in &request.unversioned {
        if *nodes.entry(symbol).or_insert(node) != node {
            return Err(EditProblem::Request(format!("`{symbol}` has two nodes")));
        }
    }
    Ok(())
}
