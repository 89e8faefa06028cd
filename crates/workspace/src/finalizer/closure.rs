//! Packages with RDC code that a package's programs are linked with, and their conditions.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::ops::Pending;
use cargo_metadata::{DependencyKind, Package};
use toml_edit::DocumentMut;

use super::naming::is_finalizer;
use super::platform;
use super::programs::{Programs, has_rdc};
use crate::cargo_tree::{self, Features, Query, TreePackage};
use crate::graph::PackageGraph;
use crate::package_index::PackageIndex;
use crate::selection::Selection;
use crate::workspace::Workspace;

/// Feature of a finalizer for tests, which their dependency on it enables. Such a finalizer is a member
/// of the workspace: `cargo build --workspace` builds it too, and needs no device link.
pub const LINK: &str = "gpustub-link";

/// Packages with RDC code that a package's programs are linked with.
#[derive(Debug)]
pub struct Closure {
    /// Kind of dependency: normal, or for tests only.
    pub kind: DependencyKind,
    /// Packages on which the finalizer depends, with the condition of each.
    pub members: BTreeMap<PackageIndex, LinkCondition>,
    /// Names of the packages linked into tests only, if the programs link others.
    pub only_in_tests: Vec<String>,
}

impl Closure {
    /// Whether only tests are linked with the finalizer.
    pub fn is_for_tests(&self) -> bool {
        self.kind == DependencyKind::Development
    }
}

/// Condition under which a member is linked.
#[derive(Debug, Default)]
pub struct LinkCondition {
    /// Linked with one of these features of the program's package, or [`LINK`]; empty: with any.
    pub features: BTreeSet<String>,
    /// Condition in `cfg(…)`, for targets; `None`: all targets.
    pub target: Option<String>,
}

impl LinkCondition {
    /// Whether the member is not linked with each selection of features.
    pub fn needs_feature(&self) -> bool {
        !self.features.is_empty()
    }
}

/// Resolves the closure of a package; `None` if no program of it has RDC code.
pub fn resolve(
    workspace: &Workspace,
    graph: &PackageGraph,
    options: &Selection,
    package: &Package,
    programs: &Programs,
    pending: &Pending,
) -> Result<Option<Closure>> {
    // The graph of the whole workspace contains more than the package's own: a preliminary check only.
    let root = graph.index(&package.id);
    let Some(root) = root.filter(|_| may_have_rdc(graph, package)) else {
        return Ok(None);
    };
    let search = MemberSearch {
        workspace,
        graph,
        options,
        package,
    };
    let in_programs = search.members("normal", Features::All)?;
    let in_tests = if programs.has_tests(has_rdc(graph, package)) {
        search.members("normal,dev", Features::All)?
    } else {
        BTreeSet::new()
    };
    // Programs for tests only do not use the package's library.
    let for_tests = in_programs.is_empty() || programs.shipped.is_empty();
    let (edges, linked) = if for_tests {
        ("normal,dev", &in_tests)
    } else {
        ("normal", &in_programs)
    };
    if linked.is_empty() {
        return Ok(None);
    }
    // The build script of a library publishes also the libraries that it receives.
    let published = published(graph, root, pending);
    let linked = linked.difference(&published).copied().collect();
    let mut members = search.feature_conditions(edges, &linked, &published)?;
    add_targets(graph, root, for_tests, &mut members)?;
    if !for_tests {
        let only_in_tests = in_tests.difference(&in_programs);
        return Ok(Some(Closure {
            kind: DependencyKind::Normal,
            members,
            only_in_tests: only_in_tests
                .map(|&index| graph.nodes[index].name.clone())
                .collect(),
        }));
    }
    for condition in members.values_mut() {
        if !condition.needs_feature() {
            condition.features.insert(LINK.to_owned());
        }
    }
    Ok(Some(Closure {
        kind: DependencyKind::Development,
        members,
        only_in_tests: Vec::new(),
    }))
}

/// Adds the targets for which the members are linked.
fn add_targets(
    graph: &PackageGraph,
    root: PackageIndex,
    for_tests: bool,
    members: &mut BTreeMap<PackageIndex, LinkCondition>,
) -> Result<()> {
    let paths = platform::paths(graph, root, for_tests);
    for (index, condition) in members {
        let Some(alternatives) = paths.get(index) else {
            continue;
        };
        condition.target = platform::condition(alternatives).map_err(|target| {
            let message = format!(
                "`{}` is linked with `{}`, which has CUDA code, for the target `{target}` only",
                graph.nodes[root].name, graph.nodes[*index].name
            );
            let help = "write the target as a condition: `[target.'cfg(target_os = \"linux\")'.dependencies]`";
            Error::new(message).help(help)
        })?;
    }
    Ok(())
}

/// Packages whose libraries a dependent of this one receives through it: none if the package has no RDC
/// code.
fn published(
    graph: &PackageGraph,
    root: PackageIndex,
    pending: &Pending,
) -> BTreeSet<PackageIndex> {
    let mut published = BTreeSet::new();
    let mut open = vec![root];
    while let Some(index) = open.pop() {
        if graph.rdc(index).is_empty() {
            continue;
        }
        for edge in &graph.edges[index] {
            let publishes = edge.has_kind(DependencyKind::Normal)
                && !graph.rdc(edge.to).is_empty()
                && has_links(graph.packages[edge.to], pending);
            if publishes && published.insert(edge.to) {
                open.push(edge.to);
            }
        }
    }
    published
}

/// Whether a package has a `links` key, which this run of `sync` may be about to write.
fn has_links(package: &Package, pending: &Pending) -> bool {
    if package.links.is_some() {
        return true;
    }
    let text = pending.read(package.manifest_path.as_std_path());
    let manifest: DocumentMut = text.unwrap_or_default().parse().unwrap_or_default();
    let table = manifest.get("package");
    table.is_some_and(|table| table.get("links").is_some())
}

/// Whether a package that this one may be linked with has RDC code.
fn may_have_rdc(graph: &PackageGraph, package: &Package) -> bool {
    graph
        .reachable(&[package])
        .into_iter()
        .any(|index| !graph.rdc(index).is_empty())
}

/// Finds the members of the closure with some features.
struct MemberSearch<'a> {
    workspace: &'a Workspace,
    graph: &'a PackageGraph<'a>,
    options: &'a Selection,
    package: &'a Package,
}

impl MemberSearch<'_> {
    /// Conditions on features of the `linked` packages. Packages that others have `published` do not
    /// count.
    fn feature_conditions(
        &self,
        edges: &str,
        linked: &BTreeSet<PackageIndex>,
        published: &BTreeSet<PackageIndex>,
    ) -> Result<BTreeMap<PackageIndex, LinkCondition>> {
        let mut conditions: BTreeMap<PackageIndex, LinkCondition> = linked
            .iter()
            .map(|&index| (index, LinkCondition::default()))
            .collect();
        let features = self.package.features.keys();
        let mut features = features.filter(|name| *name != "default").peekable();
        if features.peek().is_none() {
            return Ok(conditions);
        }
        let without_features = self.members(edges, Features::None)?;
        let always: BTreeSet<_> = without_features.difference(published).copied().collect();
        if always == *linked {
            return Ok(conditions);
        }
        for feature in features {
            for index in self.members(edges, Features::Only(feature))? {
                if let Some(condition) = conditions.get_mut(&index)
                    && !always.contains(&index)
                {
                    condition.features.insert(feature.clone());
                }
            }
        }
        Ok(conditions)
    }

    /// Packages with RDC code in cargo's tree of the package.
    fn members(&self, edges: &str, features: Features) -> Result<BTreeSet<PackageIndex>> {
        let query = Query {
            workspace: self.workspace,
            options: self.options,
            packages: &[self.package],
            edges: &format!("{edges},no-proc-macro"),
            features,
            target: None,
        };
        Ok(self.read(&query.text()?))
    }

    /// Packages with RDC code in the output of `cargo tree`, without those below finalizers: their dependencies are the
    /// result of this search. Cargo's `--prune` fails if the tree has no such package.
    fn read(&self, text: &str) -> BTreeSet<PackageIndex> {
        let packages = cargo_tree::packages(text);
        let mut dependencies: BTreeMap<_, Vec<&TreePackage>> = BTreeMap::new();
        let mut path = Vec::new();
        for package in &packages {
            path.truncate(package.depth);
            if let Some(parent) = path.last() {
                dependencies.entry(*parent).or_default().push(package);
            }
            path.push(package.id());
        }
        let mut members = BTreeSet::new();
        let mut read = BTreeSet::new();
        let mut open: Vec<&TreePackage> = packages.first().into_iter().collect();
        while let Some(package) = open.pop() {
            let index = self.graph.find(package);
            let ends = index.is_some_and(|index| is_finalizer(self.graph.packages[index]));
            if ends || !read.insert(package.id()) {
                continue;
            }
            members.extend(index.filter(|&index| !self.graph.rdc(index).is_empty()));
            open.extend(dependencies.get(&package.id()).into_iter().flatten());
        }
        members
    }
}
