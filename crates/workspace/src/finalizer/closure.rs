//! Packages with RDC code that a package's programs are linked with, and their conditions.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::ops::Pending;
use cargo_metadata::{DependencyKind, Package};
use toml_edit::DocumentMut;

use super::naming::is_one;
use super::platform;
use super::programs::{Programs, has_rdc};
use crate::cargo_tree::{self, Features, Query};
use crate::graph::Graph;
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
    pub members: BTreeMap<PackageIndex, When>,
    /// Names of the packages linked into tests only, if the programs link others.
    pub only_in_tests: Vec<String>,
}

/// Condition under which a member is linked.
#[derive(Debug, Default)]
pub struct When {
    /// Linked with one of these features of the program's package, or [`LINK`]; empty: with any.
    pub features: BTreeSet<String>,
    /// Condition in `cfg(…)`, for targets; `None`: all targets.
    pub target: Option<String>,
}

/// Resolves the closure of a package; `None` if no program of it has RDC code.
pub fn resolve(
    workspace: &Workspace,
    graph: &Graph,
    options: &Selection,
    package: &Package,
    programs: &Programs,
    pending: &Pending,
) -> Result<Option<Closure>> {
    // The graph of the whole workspace contains more than the package's own: a preliminary check only.
    let root = graph.index(&package.id);
    let Some(root) = root.filter(|_| may_have(graph, package)) else {
        return Ok(None);
    };
    let tree = |edges, features: Features| {
        Tree {
            workspace,
            graph,
            options,
            package,
        }
        .members(edges, features)
    };
    let all = tree("normal", Features::All)?;
    let tests = if programs.has_tests(has_rdc(graph, package)) {
        tree("normal,dev", Features::All)?
    } else {
        BTreeSet::new()
    };
    // Programs for tests only do not use the package's library.
    let for_tests = all.is_empty() || programs.shipped.is_empty();
    let wanted = if for_tests { &tests } else { &all };
    if wanted.is_empty() {
        return Ok(None);
    }
    let edges = if for_tests { "normal,dev" } else { "normal" };
    // The build script of a library publishes also the libraries that it receives.
    let published = published(graph, root, pending);
    let wanted: BTreeSet<_> = wanted.difference(&published).copied().collect();
    let always = tree(edges, Features::None)?;
    let always: BTreeSet<_> = always.difference(&published).copied().collect();
    let mut members: BTreeMap<PackageIndex, When> =
        wanted.iter().map(|at| (*at, When::default())).collect();
    if always != wanted {
        for feature in package.features.keys().filter(|name| *name != "default") {
            for at in tree(edges, Features::Just(feature))? {
                if let Some(when) = members.get_mut(&at).filter(|_| !always.contains(&at)) {
                    when.features.insert(feature.clone());
                }
            }
        }
    }
    let ways = platform::ways(graph, root, for_tests);
    for (at, when) in &mut members {
        let Some(ways) = ways.get(at) else { continue };
        when.target = platform::condition(ways).map_err(|target| {
            let name = &graph.nodes[*at].name;
            let message = format!(
                "`{}` is linked with `{name}`, which has CUDA code, for the target `{target}` only",
                package.name
            );
            let help = "write the target as a condition: `[target.'cfg(target_os = \"linux\")'.dependencies]`";
            Error::new(message).help(help)
        })?;
    }
    if for_tests {
        for when in members.values_mut().filter(|when| when.features.is_empty()) {
            when.features.insert(LINK.to_owned());
        }
    }
    let only_in_tests = if for_tests {
        Vec::new()
    } else {
        tests
            .difference(&all)
            .map(|&at| graph.nodes[at].name.clone())
            .collect()
    };
    Ok(Some(Closure {
        kind: if for_tests {
            DependencyKind::Development
        } else {
            DependencyKind::Normal
        },
        members,
        only_in_tests,
    }))
}

/// Packages whose libraries a dependent of this one receives through it: none if the package has no RDC
/// code.
fn published(graph: &Graph, root: PackageIndex, pending: &Pending) -> BTreeSet<PackageIndex> {
    let mut found = BTreeSet::new();
    let mut open = vec![root];
    while let Some(at) = open.pop() {
        if graph.rdc(at).is_empty() {
            continue;
        }
        let normal = graph.edges[at].iter();
        let normal = normal.filter(|edge| edge.has_kind(DependencyKind::Normal));
        for to in normal.map(|edge| edge.to) {
            let publishes = !graph.rdc(to).is_empty() && has_links(graph.packages[to], pending);
            if publishes && found.insert(to) {
                open.push(to);
            }
        }
    }
    found
}

/// Whether a package has a `links` key, which this run of `sync` may be about to write.
fn has_links(package: &Package, pending: &Pending) -> bool {
    let written = || {
        let text = pending.read(package.manifest_path.as_std_path()).ok()?;
        let manifest: DocumentMut = text.parse().ok()?;
        manifest.get("package")?.get("links").map(|_| ())
    };
    package.links.is_some() || written().is_some()
}

/// Whether a package that this one may be linked with has RDC code.
fn may_have(graph: &Graph, package: &Package) -> bool {
    let reachable = graph.reachable(&[package]);
    reachable.into_iter().any(|at| !graph.rdc(at).is_empty())
}

/// Finds the members of the closure with some features.
struct Tree<'a> {
    workspace: &'a Workspace,
    graph: &'a Graph<'a>,
    options: &'a Selection,
    package: &'a Package,
}

impl Tree<'_> {
    fn members(&self, edges: &str, features: Features) -> Result<BTreeSet<PackageIndex>> {
        // The dependencies of a finalizer are the result of this search.
        let mut pruned: Vec<String> = self
            .graph
            .reachable(&[self.package])
            .into_iter()
            .map(|at| self.graph.packages[at])
            .filter(|package| is_one(package))
            .map(cargo_tree::spec)
            .collect();
        loop {
            let output = Query {
                workspace: self.workspace,
                options: self.options,
                packages: &[self.package],
                edges: &format!("{edges},no-proc-macro"),
                features,
                target: None,
                pruned: &pruned,
            }
            .run()?;
            if output.status.success() {
                return Ok(self.read(&String::from_utf8_lossy(&output.stdout)));
            }
            let text = String::from_utf8_lossy(&output.stderr);
            // Cargo requires that each is found, also with features that do not use it.
            let before = pruned.len();
            let absent =
                |spec: &String| text.contains(&format!("`{spec}` did not match any packages"));
            pruned.retain(|spec| !absent(spec));
            if pruned.len() == before {
                return Err(cargo_tree::refusal(&output));
            }
        }
    }

    fn read(&self, text: &str) -> BTreeSet<PackageIndex> {
        let lines = cargo_tree::lines(text);
        let found = lines.iter().filter_map(|line| self.graph.named(line));
        found.filter(|&at| !self.graph.rdc(at).is_empty()).collect()
    }
}
