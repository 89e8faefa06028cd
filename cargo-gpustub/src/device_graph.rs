//! The graph of RDC libraries, crates and programs, from what cargo resolved and what each package
//! declares: what core plans device links of.
//!
//! A library is called as in `[device-link.<name>]`; everything else `<package>/<what>[/<target>]`:
//! `report/rlib`, `app/bin/app`. Only what reaches a library is in the graph. Finalizer crates are
//! not: they are how a program's build sees its libraries.

mod names;
mod runtime;
mod sees;

use std::collections::{BTreeSet, HashMap};

use cargo_metadata::{CrateType, DependencyKind, Package, Target, TargetKind};
use gpustub_build::device_link::sources::{self, Folders};
use gpustub_core::arch::{Arch, ArchKind};
use gpustub_core::device_link::{Graph, Kind, Link, LinkPlan, Node, NodeForm, plan};
use gpustub_core::diag::{Diagnostic, MISSING_ARCH, Origin, UNKNOWN_NODE, has_errors};
use gpustub_core::manifest::{DeviceCode, DeviceLink, Form, Spanned};
use gpustub_core::suggest::nearest;
use gpustub_object::archive_device_code_file;

use crate::finalizer;
use crate::graph::Graph as Packages;
use crate::workspace::{folder, library, shown};
use names::Names;
use sees::Sight;

/// The graph, and what its nodes are to cargo.
#[derive(Debug, Default)]
pub struct DeviceGraph {
    /// What is planned. Without nodes: there is no relocatable code.
    pub graph: Graph,
    /// Of each node, in the same order.
    pub of: Vec<Of>,
    /// What is wrong already.
    pub found: Vec<Diagnostic>,
}

/// What a node is to cargo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Of {
    /// The index of its package.
    pub package: usize,
    /// `library`, or what its target is: `rlib`, `bin`, `lib-tests`, …
    pub what: &'static str,
    /// The target's name, of what a package may have several of.
    pub target: Option<String>,
}

impl Of {
    /// The name of the node in a graph where the package is called `package`.
    fn name(&self, package: &str) -> String {
        let target = self.target.iter().map(|target| format!("/{target}"));
        format!("{package}/{}{}", self.what, target.collect::<String>())
    }
}

impl DeviceGraph {
    /// The graph of the programs of some packages, and of all that they are built with.
    pub fn read(packages: &Packages, selected: &[&Package]) -> Self {
        let selected: BTreeSet<usize> = selected
            .iter()
            .filter_map(|package| packages.position(&package.id))
            .collect();
        let reached = reached(packages, &selected);
        if reached.iter().all(|&at| packages.rdc(at).is_empty()) {
            return Self::default();
        }
        let mut builder = Builder {
            names: Names::new(packages, &reached),
            sight: Sight::new(packages),
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
        let nodes = &self.graph.nodes;
        let at: HashMap<&str, usize> = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (node.name.as_str(), at))
            .collect();
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        for (user, node) in nodes.iter().enumerate() {
            for link in &node.links {
                if let Some(&to) = at.get(link.to.as_str()) {
                    users[to].push(user);
                }
            }
        }
        let mut keeps: Vec<bool> = self.of.iter().map(|of| of.what == "library").collect();
        let mut open: Vec<usize> = (0..nodes.len()).filter(|&at| keeps[at]).collect();
        while let Some(at) = open.pop() {
            for &user in &users[at] {
                if !std::mem::replace(&mut keeps[user], true) {
                    open.push(user);
                }
            }
        }
        let kept: BTreeSet<String> = (nodes.iter().zip(&keeps))
            .filter(|(_, keep)| **keep)
            .map(|(node, _)| node.name.clone())
            .collect();
        let mut keep = keeps.iter();
        self.of.retain(|_| keep.next() == Some(&true));
        let mut keep = keeps.iter();
        self.graph.nodes.retain(|_| keep.next() == Some(&true));
        for node in &mut self.graph.nodes {
            node.links.retain(|link| kept.contains(&link.to));
        }
    }
}

/// The packages that those are built with or of, by name and version. Tests count for those alone.
fn reached(packages: &Packages, selected: &BTreeSet<usize>) -> Vec<usize> {
    let mut seen = selected.clone();
    let mut open: Vec<usize> = selected.iter().copied().collect();
    while let Some(at) = open.pop() {
        for edge in &packages.edges[at] {
            let kinds = [DependencyKind::Normal, DependencyKind::Build];
            let always = kinds.into_iter().any(|kind| edge.is(kind));
            if (always || selected.contains(&at)) && seen.insert(edge.to) {
                open.push(edge.to);
            }
        }
    }
    let mut reached: Vec<usize> = seen.into_iter().collect();
    reached.sort_by_key(|&at| {
        let package = packages.packages[at];
        (package.name.as_str(), &package.version, &package.id)
    });
    reached
}

/// What a package's library is to Rust programs that depend on it.
fn linkable(package: &Package) -> Option<(&'static str, NodeForm)> {
    let target = library(package)?;
    let has = |kinds: &[CrateType]| kinds.iter().any(|k| target.crate_types.contains(k));
    if has(&[CrateType::ProcMacro]) {
        Some(("proc-macro", NodeForm::Cdylib))
    } else if has(&[CrateType::Lib, CrateType::RLib]) {
        Some(("rlib", NodeForm::Static))
    } else if has(&[CrateType::DyLib]) {
        // rustc hides what a Rust dylib takes in of C.
        Some(("dylib", NodeForm::Cdylib))
    } else {
        None
    }
}

struct Builder<'a> {
    packages: &'a Packages<'a>,
    names: Names,
    sight: Sight<'a>,
    made: DeviceGraph,
}

impl Builder<'_> {
    fn add(&mut self, of: Of, node: Node) {
        self.made.of.push(of);
        self.made.graph.nodes.push(node);
    }

    /// The libraries that a package declares.
    fn libraries(&mut self, at: usize) {
        for declared in self.packages.rdc(at) {
            let of = Of {
                package: at,
                what: "library",
                target: Some(declared.name.value.clone()),
            };
            let node = self.library(at, declared);
            self.add(of, node);
        }
    }

    fn library(&mut self, at: usize, declared: &DeviceLink) -> Node {
        let (kind, form) = match (&declared.code, declared.form) {
            (DeviceCode::Headers, _) => (Kind::Interface, NodeForm::Static),
            (_, Form::Static) => (Kind::Rdc, NodeForm::Static),
            (_, Form::Shared) => (Kind::Rdc, NodeForm::Shared),
        };
        let id = &declared.name.value;
        let mut node = Node::new(self.names.library(at, id), kind, form);
        node.origin = self.place(at, declared.name.span.clone());
        node.archs = declared.archs.iter().map(|arch| arch.value).collect();
        node.cudart = (kind == Kind::Rdc).then_some(declared.cudart);
        match &declared.code {
            DeviceCode::External { archive, .. } => {
                self.external(at, declared, &archive.value, &mut node);
            }
            DeviceCode::Sources(patterns) => self.sources(at, id, patterns),
            DeviceCode::Headers => {}
        }
        if declared.form == Form::Shared {
            self.made
                .found
                .extend(runtime::refused(self.packages, at, declared));
        }
        node.version_of = self.names.is_shared(id).then(|| id.clone());
        for name in &declared.requires {
            let found = self.sight.required(at, &name.value);
            if found.is_empty() {
                let mut error = self.unknown(at, id, &name.value);
                error.origin = self.place(at, name.span.clone());
                self.made.found.push(error);
            }
            let names = &self.names;
            let links = found
                .into_iter()
                .map(|(at, id)| link(names.library(at, &id)));
            node.links.extend(links);
        }
        node
    }

    /// What the archive of a library that others have built tells, if it is built yet.
    fn external(&mut self, at: usize, declared: &DeviceLink, archive: &str, node: &mut Node) {
        let path = folder(self.packages.packages[at]).join(archive);
        if !path.exists() {
            return;
        }
        match archive_device_code_file(&path) {
            Ok(code) => {
                let holds: Vec<Arch> = code.archs().into_iter().collect();
                if let Some(mut error) = wrong_archs(declared, archive, &holds) {
                    let first = declared.archs.iter().find(|a| !has(&holds, a.value));
                    error.origin = first.and_then(|arch| self.place(at, arch.span.clone()));
                    self.made.found.push(error);
                    node.archs = holds;
                }
                node.prelinked = code.is_prelinked().then(Vec::new);
            }
            Err(error) => self.made.found.push(node_placed(error.diagnostic(), node)),
        }
    }

    /// Patterns that match no file, as the build says it.
    fn sources(&mut self, at: usize, id: &str, patterns: &[Spanned<String>]) {
        let folders = Folders {
            package: folder(self.packages.packages[at]),
            out_dir: None,
        };
        for pattern in patterns {
            if let Err(mut error) = sources::matching(folders, id, &pattern.value) {
                error.origin = self.place(at, pattern.span.clone());
                self.made.found.push(*error);
            }
        }
    }

    /// A `requires` that names no library in sight of its package.
    fn unknown(&self, at: usize, id: &str, name: &str) -> Diagnostic {
        let message = format!(
            "`device-link.{id}` requires `{name}`, which neither its package nor a direct \
             dependency of it declares"
        );
        let others = self.packages.declared.iter().flatten();
        let known: Vec<(&str, bool)> = (0..self.packages.packages.len())
            .flat_map(|other| self.packages.rdc(other))
            .map(|one| (one.name.value.as_str(), true))
            .chain(others.flat_map(|declared| {
                let all = declared.manifest.device_links.iter();
                all.map(|one| (one.name.value.as_str(), false))
            }))
            .collect();
        let help = match known.iter().find(|(known, _)| *known == name) {
            Some((_, true)) => format!(
                "add the package that declares it to [dependencies] of `{}`; that package needs a \
                 `links` key, which `cargo gpustub sync` writes",
                self.packages.packages[at].name
            ),
            Some((_, false)) => "it follows a cargo feature that is off".to_owned(),
            None => match nearest(name, known.iter().map(|(known, _)| *known)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "declare it, or remove the name".to_owned(),
            },
        };
        Diagnostic::error(&UNKNOWN_NODE, message).help(help)
    }

    fn place(&self, at: usize, span: std::ops::Range<usize>) -> Option<Origin> {
        let file = self.packages.declared[at].as_ref()?.shown.clone();
        Some(Origin { file, span })
    }

    /// A package's library, as its dependents link it.
    fn crates(&mut self, at: usize) {
        let package = self.packages.packages[at];
        if finalizer::is_one(package) {
            return;
        }
        let Some((what, form)) = linkable(package) else {
            return;
        };
        let links = self.compiled_in(at, false);
        let of = Of {
            package: at,
            what,
            target: None,
        };
        let mut node = self.image(&of, form, links);
        node.host = what == "proc-macro";
        if what == "dylib" {
            node.sees = Some(self.seen(at, false));
        }
        self.add(of, node);
    }

    /// A node of a package's target.
    fn image(&self, of: &Of, form: NodeForm, links: Vec<Link>) -> Node {
        let package = self.packages.packages[of.package];
        let name = of.name(self.names.package(of.package));
        let mut node = Node::new(name, Kind::Plain, form);
        node.origin = Some(Origin {
            file: shown(package.manifest_path.as_std_path()),
            span: 0..0,
        });
        node.links = links;
        node
    }

    /// What is linked with the package's own code: its libraries, and its dependencies' crates.
    fn compiled_in(&self, at: usize, tests: bool) -> Vec<Link> {
        let own = self.packages.rdc(at).into_iter();
        let mut links: Vec<Link> = own
            .map(|declared| link(self.names.library(at, &declared.name.value)))
            .collect();
        links.extend(self.depends(at, DependencyKind::Normal));
        if tests {
            links.extend(self.depends(at, DependencyKind::Development));
        }
        links
    }

    /// What a program of the package is linked with.
    fn linked(&self, at: usize, tests: bool) -> Vec<Link> {
        let Some(own) = self.rlib(at) else {
            return self.compiled_in(at, tests);
        };
        let mut links = vec![link(own)];
        if tests {
            links.extend(self.depends(at, DependencyKind::Development));
        }
        links
    }

    /// The crates of a kind of dependencies.
    fn depends(&self, at: usize, kind: DependencyKind) -> Vec<Link> {
        let edges = self.packages.edges[at].iter();
        edges
            .filter(|edge| edge.is(kind))
            .filter_map(|edge| self.rlib(edge.to).map(link))
            .collect()
    }

    /// The name of a package's crate, if Rust code can be linked with it.
    fn rlib(&self, at: usize) -> Option<String> {
        let package = self.packages.packages[at];
        let (what, _) = linkable(package).filter(|(what, _)| *what != "proc-macro")?;
        let of = Of {
            package: at,
            what,
            target: None,
        };
        (!finalizer::is_one(package)).then(|| of.name(self.names.package(at)))
    }

    /// The names of the libraries that a package's device link is told of.
    fn seen(&mut self, at: usize, tests: bool) -> Vec<String> {
        let seen = self.sight.of_programs(at, tests);
        let names = &self.names;
        seen.into_iter()
            .map(|(at, id)| names.library(at, &id))
            .collect()
    }

    /// What the linker makes of a package: of all the build script, of the selected ones the rest.
    fn images(&mut self, at: usize, selected: bool) {
        let package = self.packages.packages[at];
        if finalizer::is_one(package) {
            return;
        }
        for target in &package.targets {
            for (what, form, tests) in parts(package, target) {
                let host = what == "build-script";
                // The tests of a crate without programs are left to those who have some.
                let left = what == "lib-tests" && !self.sight.has_link(at, true);
                if left || !(selected || host) {
                    continue;
                }
                let links = match what {
                    "build-script" => self.depends(at, DependencyKind::Build),
                    "cdylib" | "staticlib" => self.compiled_in(at, false),
                    "lib-tests" => self.compiled_in(at, true),
                    _ => self.linked(at, tests),
                };
                let several = matches!(what, "bin" | "bin-tests" | "test" | "example" | "bench");
                let of = Of {
                    package: at,
                    what,
                    target: several.then(|| target.name.clone()),
                };
                let mut node = self.image(&of, form, links);
                node.host = host;
                node.sees = (!host).then(|| self.seen(at, tests));
                self.add(of, node);
            }
        }
    }
}

/// The images of a target: what each is called, its form, and whether dev-dependencies are in it.
fn parts(package: &Package, target: &Target) -> Vec<(&'static str, NodeForm, bool)> {
    let closed = target.crate_types.contains(&CrateType::CDyLib);
    let form = match closed {
        true => NodeForm::Cdylib,
        false => NodeForm::Bin,
    };
    let mut parts = Vec::new();
    let is_lib = library(package).is_some_and(|lib| lib.src_path == target.src_path);
    for (kind, what, tests) in [
        (TargetKind::Bin, "bin", false),
        (TargetKind::Test, "test", true),
        (TargetKind::Example, "example", true),
        (TargetKind::Bench, "bench", true),
        (TargetKind::CustomBuild, "build-script", false),
    ] {
        if target.is_kind(kind) {
            parts.push((what, form, tests));
        }
    }
    if is_lib && closed {
        parts.push(("cdylib", NodeForm::Cdylib, false));
    }
    if is_lib && target.crate_types.contains(&CrateType::StaticLib) {
        parts.push(("staticlib", NodeForm::Bin, false));
    }
    let is_bin = target.is_kind(TargetKind::Bin);
    let is_macro = target.is_kind(TargetKind::ProcMacro);
    if target.test && is_bin {
        parts.push(("bin-tests", NodeForm::Bin, true));
    } else if target.test && is_lib && !is_macro {
        parts.push(("lib-tests", NodeForm::Bin, true));
    }
    parts
}

/// Whether code for these is also what is declared of it: a device link for it can be made of them,
/// and for what is newer if PTX or LTO code is declared.
fn has(holds: &[Arch], declared: Arch) -> bool {
    let lasts = |kind| kind != ArchKind::Real;
    let mut holds = holds.iter();
    holds.any(|arch| arch.serves(declared) && lasts(arch.kind) >= lasts(declared.kind))
}

/// An archive that others have built, without what `archs` says of it. Builds believe `archs`, and nvlink
/// does not say what an archive lacks.
fn wrong_archs(declared: &DeviceLink, archive: &str, holds: &[Arch]) -> Option<Diagnostic> {
    let words = |archs: &[Arch]| {
        archs
            .iter()
            .map(Arch::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let archs = declared.archs.iter().map(|arch| arch.value);
    let missing: Vec<Arch> = archs.filter(|arch| !has(holds, *arch)).collect();
    if holds.is_empty() || missing.is_empty() {
        return None;
    }
    let name = &declared.name.value;
    let message = format!(
        "`archs` of device-link.{name} says {}, and {archive} has {} alone",
        words(&missing),
        words(holds)
    );
    let help = "write what the archive has, or build it for these, too";
    Some(Diagnostic::error(&MISSING_ARCH, message).help(help))
}

fn node_placed(mut diagnostic: Diagnostic, node: &Node) -> Diagnostic {
    diagnostic.origin.clone_from(&node.origin);
    diagnostic
}

fn link(to: String) -> Link {
    Link { to, private: false }
}
