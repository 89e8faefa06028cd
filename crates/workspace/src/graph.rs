//! The dependency graph: what `plan` and `check` look at.

use std::collections::{HashMap, HashSet};

use cargo_metadata::{CrateType, DependencyKind, Package, PackageId, TargetKind};
use gpustub_core::diag::Origin;
use gpustub_core::manifest::DeviceLink;
use gpustub_report::error::Result;
use gpustub_report::report::Sources;

use crate::cargo_tree::{self, Features, Line, Query};
use crate::providers::{Image, Node};
use crate::selection::Selection;
use crate::tables::{Declared, Members};
use crate::workspace::{Workspace, folder, library};

/// What cargo resolved a package's dependency to.
#[derive(Debug)]
pub struct Edge {
    /// The index of that package.
    pub to: usize,
    /// Each kind, and for which targets: as in `[target.….dependencies]`, or all.
    pub kinds: Vec<(DependencyKind, Option<String>)>,
}

impl Edge {
    /// Whether it is, besides others, of this kind.
    pub fn is(&self, kind: DependencyKind) -> bool {
        self.kinds.iter().any(|(one, _)| *one == kind)
    }
}

/// The dependency graph, and what each package of it declares.
pub struct Graph<'a> {
    /// The packages, in the order of `cargo metadata`.
    pub packages: Vec<&'a Package>,
    /// What each declares.
    pub declared: Vec<Option<Declared>>,
    /// The features of each that are on.
    pub features: Vec<Vec<String>>,
    /// What each provides and links.
    pub nodes: Vec<Node>,
    /// What cargo resolved the dependencies of each to.
    pub edges: Vec<Vec<Edge>>,
    index: HashMap<&'a PackageId, usize>,
}

impl<'a> Graph<'a> {
    /// Reads what every package of the graph declares.
    pub fn read(workspace: &'a Workspace) -> Result<Self> {
        let mut graph = Self::resolved(workspace)?;
        graph.link();
        Ok(graph)
    }

    /// The same, for some packages with the features of the command line: just what cargo builds for
    /// those, their tests included. What the whole workspace is resolved to is more.
    pub fn of(
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
                features: Features::Given(&options.features),
                target: Some(triple),
                pruned: &[],
            };
            graph.narrow(&cargo_tree::lines(&query.text()?));
        }
        graph.link();
        Ok(graph)
    }

    /// What cargo resolved.
    fn resolved(workspace: &'a Workspace) -> Result<Self> {
        let metadata = &workspace.metadata;
        let packages: Vec<&Package> = metadata.packages.iter().collect();
        let index: HashMap<&PackageId, usize> = packages
            .iter()
            .enumerate()
            .map(|(at, package)| (&package.id, at))
            .collect();
        let mut graph = Self {
            declared: Vec::with_capacity(packages.len()),
            features: vec![Vec::new(); packages.len()],
            nodes: Vec::with_capacity(packages.len()),
            edges: packages.iter().map(|_| Vec::new()).collect(),
            packages,
            index,
        };
        for package in &graph.packages {
            graph.declared.push(Declared::read(workspace, package)?);
            graph.nodes.push(Node {
                name: package.name.to_string(),
                version: package.version.to_string(),
                ..Node::default()
            });
        }
        let resolve = metadata.resolve.as_ref();
        for node in resolve.into_iter().flat_map(|resolve| &resolve.nodes) {
            let Some(&at) = graph.index.get(&node.id) else {
                continue;
            };
            graph.features[at] = node.features.iter().map(ToString::to_string).collect();
            for dependency in &node.deps {
                let Some(&to) = graph.index.get(&dependency.pkg) else {
                    continue;
                };
                let kinds = dependency.dep_kinds.iter();
                graph.edges[at].push(Edge {
                    to,
                    kinds: kinds
                        .map(|info| (info.kind, info.target.as_ref().map(ToString::to_string)))
                        .collect(),
                });
            }
        }
        Ok(graph)
    }

    /// Keeps of the features and dependencies of the packages in a tree what is there. Where the programs
    /// and a build script have a package with other features each, it is taken as the programs have it.
    fn narrow(&mut self, lines: &[Line]) {
        #[derive(Default)]
        struct Built<'l> {
            features: Vec<&'l str>,
            edges: HashSet<(DependencyKind, usize)>,
        }
        // Of each package, for the target and for what runs on the host.
        let mut built: HashMap<(usize, bool), Built> = HashMap::new();
        let mut above: Vec<Option<(usize, bool)>> = Vec::new();
        for line in lines {
            above.truncate(line.depth);
            let parent = above.last().copied().flatten();
            let here = self.named(line).map(|at| {
                let below = parent.is_some_and(|(_, host)| host);
                let host = below || line.kind == DependencyKind::Build || self.is_macro(at);
                (at, host)
            });
            if let Some(here) = here {
                built
                    .entry(here)
                    .or_default()
                    .features
                    .clone_from(&line.features);
                if let Some(parent) = parent {
                    let edges = &mut built.entry(parent).or_default().edges;
                    edges.insert((line.kind, here.0));
                }
            }
            above.push(here);
        }
        for at in 0..self.packages.len() {
            let one = built.get(&(at, false)).or_else(|| built.get(&(at, true)));
            let Some(one) = one else { continue };
            self.features[at] = one.features.iter().map(ToString::to_string).collect();
            for edge in &mut self.edges[at] {
                let to = edge.to;
                edge.kinds
                    .retain(|(kind, _)| one.edges.contains(&(*kind, to)));
            }
            self.edges[at].retain(|edge| !edge.kinds.is_empty());
        }
    }

    /// The package that a line of `cargo tree` is about.
    pub fn named(&self, line: &Line) -> Option<usize> {
        let fits = |package: &Package| {
            package.name.as_str() == line.name && package.version.to_string() == line.version
        };
        let all = self.packages.iter().enumerate();
        let fitting: Vec<usize> = all.filter(|(_, one)| fits(one)).map(|(at, _)| at).collect();
        // From two places, with one name and version.
        let from_there = |&&at: &&usize| {
            let folder = folder(self.packages[at]).display().to_string();
            line.place.contains(&format!("({folder})"))
        };
        match fitting.as_slice() {
            [_, _, ..] => fitting.iter().find(from_there).or(fitting.first()).copied(),
            other => other.first().copied(),
        }
    }

    /// A procedural macro runs in the compiler and is in no image.
    fn is_macro(&self, at: usize) -> bool {
        library(self.packages[at]).is_some_and(|target| target.is_kind(TargetKind::ProcMacro))
    }

    /// Finds what each package links and provides.
    fn link(&mut self) {
        for at in 0..self.packages.len() {
            for edge in &self.edges[at] {
                if self.is_macro(edge.to) {
                    continue;
                }
                let node = &mut self.nodes[at];
                if edge.is(DependencyKind::Normal) {
                    node.dependencies.push(edge.to);
                } else if edge.is(DependencyKind::Development) {
                    node.dev_dependencies.push(edge.to);
                }
            }
        }
        let mut with_code: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, package) in self.packages.iter().enumerate() {
            if !self.rdc(at).is_empty() {
                with_code.entry(&package.name).or_default().push(at);
            }
        }
        for at in with_code
            .into_values()
            .filter(|all| all.len() > 1)
            .flatten()
        {
            self.nodes[at].twice = true;
        }
        for (at, declared) in self.declared.iter().enumerate() {
            let Some(declared) = declared else { continue };
            for stub in &declared.manifest.stubs {
                let features = self.features[at].iter().map(String::as_str);
                if !stub.required_features.are_enabled(features) {
                    continue;
                }
                let file = declared.shown.clone();
                let origin = Some(Origin {
                    file,
                    span: stub.id.span.clone(),
                });
                let node = &mut self.nodes[at];
                let side = if stub.provide {
                    &mut node.provides
                } else {
                    &mut node.requires
                };
                side.insert(stub.id.value.clone(), origin);
            }
        }
    }

    /// What the members declare, those that are selected apart.
    pub fn members(&self, workspace: &Workspace, selected: &[&Package]) -> Members<'_> {
        let all = self.packages.iter().zip(&self.declared);
        let all = all.filter(|(package, _)| workspace.has(package));
        let all = all.filter_map(|(package, one)| Some((*package, one.as_ref()?)));
        let (selected, others) =
            all.partition(|(package, _)| selected.iter().any(|one| one.id == package.id));
        Members { selected, others }
    }

    /// Where a package is in the lists.
    pub fn position(&self, id: &PackageId) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// The RDC libraries of a package, those that its features are on for.
    pub fn rdc(&self, at: usize) -> Vec<&DeviceLink> {
        let features = || self.features[at].iter().map(String::as_str);
        let declared = self.declared[at].iter();
        declared
            .flat_map(|declared| &declared.manifest.device_links)
            .filter(|library| library.required_features.are_enabled(features()))
            .collect()
    }

    /// The texts that diagnostics may point into.
    pub fn sources(&self) -> Sources {
        let declared = self.declared.iter().flatten();
        declared.flat_map(Declared::sources).collect()
    }

    /// The selected packages and all that they may link, members first, then by name.
    pub fn reachable(&self, selected: &[&Package]) -> Vec<usize> {
        let roots = || {
            selected
                .iter()
                .filter_map(|package| self.index.get(&package.id).copied())
        };
        let mut seen: Vec<usize> = roots().collect();
        let mut at = 0;
        while let Some(node) = seen.get(at).map(|&index| &self.nodes[index]) {
            for &next in node.dependencies.iter().chain(&node.dev_dependencies) {
                if !seen.contains(&next) {
                    seen.push(next);
                }
            }
            at += 1;
        }
        seen.sort_by_key(|&at| {
            let is_root = roots().any(|root| root == at);
            (
                !is_root,
                self.packages[at].name.as_str(),
                &self.packages[at].version,
            )
        });
        seen
    }

    /// What the linker makes of the selected packages.
    pub fn images(&self, selected: &[&Package]) -> Vec<Image> {
        let mut images = Vec::new();
        for package in selected {
            let Some(&at) = self.index.get(&package.id) else {
                continue;
            };
            for target in &package.targets {
                let mut add = |kind: &str, with_dev, dylib, complete| {
                    let name = format!("{kind} `{}`", target.name);
                    images.push(Image {
                        name,
                        package: at,
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
