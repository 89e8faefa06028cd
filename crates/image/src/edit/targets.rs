//! The parts of an image that a request concerns, and the image's requirements after the edit.

use std::collections::{BTreeMap, BTreeSet};

use super::inspect::{ImportKind, Imported, Inspection};
use super::problem::Problem;
use super::request::{Request, Unversioned};
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
    pub(super) fn find(image: &Inspection, request: &Request) -> Result<Self, Problem> {
        check(request)?;
        let all = request.libraries.iter().flat_map(|library| &library.needed);
        let mut removed: BTreeSet<String> = all.cloned().collect();
        let mut nodes = Vec::new();
        let mut renamed = BTreeMap::new();
        for need in &image.verneed {
            let by_name = request
                .libraries
                .iter()
                .find(|l| l.needed.contains(&need.file));
            // A grafted copy has another name, and the nodes of the original.
            let provides = |node| need.nodes.contains(node);
            let by_node = || {
                request
                    .libraries
                    .iter()
                    .find(|l| l.nodes.iter().any(provides))
            };
            let library = by_name
                .or_else(by_node)
                .filter(|_| need.file != request.stub);
            if let Some(library) = library {
                removed.insert(need.file.clone());
                for node in &need.nodes {
                    renamed.insert((&need.file, node), &library.node);
                }
            }
            nodes.push(library.map(|library| library.node.clone()));
        }
        let unversioned = request.unversioned.iter().map(|u| (&u.symbol, &u.node));
        let unversioned: BTreeMap<_, _> = unversioned.collect();
        let target = |import: &Imported| match import.file.as_ref().zip(import.node.as_ref()) {
            Some(version) => renamed.get(&version).map(|&node| node.clone()),
            None => unversioned.get(&import.name).map(|&node| node.clone()),
        };
        let targets = Self {
            removed,
            nodes,
            imports: image.imports.iter().map(target).collect(),
        };
        targets.refuse(image)?;
        Ok(targets)
    }

    /// Rejects what a stub cannot provide.
    fn refuse(&self, image: &Inspection) -> Result<(), Problem> {
        let needed = image.needed.iter().any(|name| self.removed.contains(name));
        if !needed && self.imports.iter().all(Option::is_none) {
            return Err(Problem::NotNeeded);
        }
        let mut seen = BTreeSet::new();
        for (import, node) in image.imports.iter().zip(&self.imports) {
            if node.is_none() {
                continue;
            }
            let name = || import.name.clone();
            if import.copied {
                return Err(Problem::CopyRelocation(name()));
            }
            if matches!(import.kind, ImportKind::Data | ImportKind::ThreadLocal) {
                return Err(Problem::Data(name()));
            }
            if !seen.insert((&import.name, node)) {
                return Err(Problem::TwoVersions(name()));
            }
        }
        Ok(())
    }

    /// Nodes of unversioned imports that no version need of the image becomes, in order.
    pub(super) fn added_nodes(&self, image: &Inspection) -> BTreeSet<&str> {
        let kept: BTreeSet<&String> = self.nodes.iter().flatten().collect();
        let imports = self.imports.iter().flatten();
        let added = imports.filter(|node| image.has_versions && !kept.contains(node));
        added.map(String::as_str).collect()
    }

    /// The image's requirements after the edit.
    pub(super) fn expected(&self, image: &Inspection, request: &Request) -> Inspection {
        let mut after = image.clone();
        after.needed = self.needed(image, request);
        after.runpath = runpath(image, request);
        let mut seen = BTreeSet::new();
        after.verneed.clear();
        for (need, node) in image.verneed.iter().zip(&self.nodes) {
            match node {
                None => after.verneed.push(need.clone()),
                Some(node) if seen.insert(&node[..]) => {
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
    fn needed(&self, image: &Inspection, request: &Request) -> Vec<String> {
        let mut after = Vec::new();
        for name in &image.needed {
            let name = if self.removed.contains(name) {
                &request.stub
            } else {
                name
            };
            if *name != request.stub || !after.contains(name) {
                after.push(name.clone());
            }
        }
        if !after.contains(&request.stub) {
            after.push(request.stub.clone());
        }
        after
    }
}

fn stub_need(request: &Request, node: &str) -> VersionNeed {
    VersionNeed {
        file: request.stub.clone(),
        nodes: vec![node.to_owned()],
    }
}

/// The search path after the edit. An empty path has no directories (glibc's `decompose_rpath`).
fn runpath(image: &Inspection, request: &Request) -> Option<String> {
    let new = request.runpath.as_deref();
    let Some(old) = image.runpath.as_deref() else {
        return new.map(str::to_owned);
    };
    let entries = old.split(':').filter(|_| !old.is_empty());
    let mut entries: Vec<&str> = entries
        .filter(|entry| !request.removed_runpath.iter().any(|other| other == entry))
        .collect();
    entries.extend(new.filter(|new| !entries.contains(new)));
    Some(entries.join(":"))
}

/// Rejects names that no string table can hold.
fn check(request: &Request) -> Result<(), Problem> {
    let nodes = request.libraries.iter().map(|library| &library.node);
    let nodes = nodes.chain(request.unversioned.iter().map(|u| &u.node));
    let names = nodes.chain([&request.stub]).chain(&request.runpath);
    for name in names {
        if name.is_empty() || name.contains('\0') {
            return Err(Problem::Request(format!("{name:?} is no name")));
        }
    }
    let mut nodes = BTreeMap::new();
    for Unversioned { symbol, node } in &request.unversioned {
        if *nodes.entry(symbol).or_insert(node) != node {
            let what = format!("`{symbol}` has two nodes");
            return Err(Problem::Request(what));
        }
    }
    Ok(())
}
