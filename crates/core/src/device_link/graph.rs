//! Graph of libraries and programs, and its validation.

use std::ops::Index;

use crate::by_name::ByName;
use crate::define_id;
use crate::diag::{Diagnostic, INVALID_GRAPH, Origin, REQUIRES_CYCLE, UNKNOWN_DEVICE_LIBRARY};
use crate::gpu_arch::Arch;
use crate::ids::{Id, IndexVec};
use crate::manifest::Cudart;
use crate::suggest::nearest;

define_id! {
    /// Index of a node in its graph.
    pub struct NodeId;
}

/// Whether a node has device code of its own.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Relocatable device code.
    Rdc,
    /// Host code only; also device code that was not compiled as relocatable.
    Plain,
    /// Headers and dependencies only.
    Interface,
}

/// Form in which a node is built.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NodeForm {
    /// An archive, or a Rust `rlib`.
    Static,
    /// Objects that are not gathered into a library.
    Object,
    /// A shared library that others link.
    Shared,
    /// A program, test, example or build script.
    Bin,
    /// A shared library that is only opened at run time.
    Plugin,
    /// A Rust `cdylib`, which rustc gives the exports that it knows: closed, unless code that it
    /// reaches is in another image.
    Cdylib,
}

impl NodeForm {
    /// Keyword in the notation.
    pub fn word(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Object => "object",
            Self::Shared => "shared",
            Self::Bin => "bin",
            Self::Plugin => "plugin",
            Self::Cdylib => "cdylib",
        }
    }
}

/// Edge from a node to a node that it is linked with.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct Link {
    /// Name of the linked node.
    pub to: String,
    /// Whether the linked node's headers are not passed on. The plan is the same.
    pub private: bool,
}

/// Edge from a node to a shared library that it opens at run time.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct Open {
    /// Name of the library.
    pub to: String,
    /// Whether the library with its device link is opened, not the one with its objects.
    pub r#final: bool,
}

/// A library, a program or a plugin. Names refer to other nodes of the graph.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct Node {
    /// Unique in its graph.
    pub name: String,
    /// Declaration of the node, for diagnostics.
    pub origin: Option<Origin>,
    /// Kind of device code.
    pub kind: NodeKind,
    /// Form in which it is built.
    pub form: NodeForm,
    /// For an image: the symbols of its device link are local to it, and it contains all the
    /// relocatable code that it reaches.
    pub closed: bool,
    /// Whether it is a build script or a procedural macro, which cargo passes no link arguments.
    pub host: bool,
    /// Device link made before, by the node's own build: over these nodes, or, if empty, over all
    /// of the node's contents.
    pub prelinked: Option<Vec<String>>,
    /// For relocatable code: the architectures that the node contains. Otherwise: the architectures
    /// requested from its device link. Empty: unknown, or all that its libraries contain.
    pub archs: Vec<Arch>,
    /// The runtime of its host code, if that is known.
    pub cudart: Option<Cudart>,
    /// Device symbols that it defines, as far as they are known.
    pub symbols: Vec<String>,
    /// Library of which the node is one of several versions.
    pub version_of: Option<String>,
    /// Libraries whose metadata its build script receives; `None`: all.
    pub visible: Option<Vec<String>>,
    /// Linked nodes, in the order of declaration.
    pub links: Vec<Link>,
    /// Libraries opened at run time.
    pub opens: Vec<Open>,
}

impl Node {
    /// A node with default properties.
    pub fn new(name: impl Into<String>, kind: NodeKind, form: NodeForm) -> Self {
        Self {
            name: name.into(),
            origin: None,
            kind,
            form,
            closed: false,
            host: false,
            prelinked: None,
            archs: Vec::new(),
            cudart: None,
            symbols: Vec::new(),
            version_of: None,
            visible: None,
            links: Vec::new(),
            opens: Vec::new(),
        }
    }

    pub(super) fn is_rdc(&self) -> bool {
        self.kind == NodeKind::Rdc
    }

    /// Whether it is a file that the loader maps.
    pub(super) fn is_image(&self) -> bool {
        !matches!(self.form, NodeForm::Static | NodeForm::Object)
    }

    /// Whether a device link for the node may be made: the end of a chain of libraries.
    pub(super) fn is_terminal(&self) -> bool {
        use NodeForm::{Bin, Cdylib, Plugin};
        self.closed || matches!(self.form, Bin | Plugin | Cdylib)
    }

    /// Whether the node is built as objects, archive, middle and final.
    pub(super) fn is_split(&self) -> bool {
        self.is_rdc() && self.form == NodeForm::Shared && !self.closed && self.prelinked.is_none()
    }

    /// Whether dependents can ignore its device code, since it has its own device link.
    pub(super) fn is_opaque(&self) -> bool {
        let is_linked = self.closed || self.form == NodeForm::Cdylib || self.prelinked.is_some();
        self.is_image() && is_linked
    }

    /// A diagnostic with the node's origin.
    pub(super) fn with_origin(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        diagnostic.origin.clone_from(&self.origin);
        diagnostic
    }
}

/// Libraries and programs, in the order in which they are declared.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone, Default)]
pub struct Graph {
    /// The nodes.
    pub nodes: Vec<Node>,
}

impl Graph {
    /// The nodes' ids, in the order of declaration.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId::from_index)
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes
            .iter()
            .position(|node| node.name == name)
            .map(NodeId::from_index)
    }
}

impl Index<NodeId> for Graph {
    type Output = Node;

    fn index(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }
}

/// A graph whose names are resolved to ids.
pub(super) struct ResolvedGraph<'g> {
    pub nodes: &'g [Node],
    pub links: IndexVec<NodeId, Vec<NodeId>>,
    pub opens: IndexVec<NodeId, Vec<ResolvedOpen>>,
    /// [`Node::visible`].
    pub visible: IndexVec<NodeId, Option<Vec<NodeId>>>,
    pub prelinked: IndexVec<NodeId, Option<Vec<NodeId>>>,
}

/// [`Open`] with its name resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ResolvedOpen {
    pub to: NodeId,
    pub r#final: bool,
}

impl<'g> ResolvedGraph<'g> {
    /// A graph without nodes, in place of an invalid one.
    pub fn empty() -> Self {
        Self {
            nodes: &[],
            links: IndexVec::new(),
            opens: IndexVec::new(),
            visible: IndexVec::new(),
            prelinked: IndexVec::new(),
        }
    }

    pub fn node(&self, id: NodeId) -> &'g Node {
        &self.nodes[id.index()]
    }

    pub fn name(&self, id: NodeId) -> &'g str {
        &self.node(id).name
    }

    pub fn names(&self, ids: &[NodeId]) -> Vec<&'g str> {
        ids.iter().map(|&id| self.name(id)).collect()
    }

    /// All nodes, in the order of declaration.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId::from_index)
    }

    /// A table with an entry for each node.
    pub fn table<T: Clone>(&self, value: T) -> IndexVec<NodeId, T> {
        IndexVec::filled(value, self.nodes.len())
    }

    /// Resolves all names; errors if the graph cannot be planned.
    pub fn new(graph: &'g Graph) -> Result<Self, Vec<Diagnostic>> {
        let mut resolved = Self {
            nodes: &graph.nodes,
            ..Self::empty()
        };
        let (names, mut errors) = index_names(&resolved);
        for node in &graph.nodes {
            let mut links: Vec<NodeId> = Vec::new();
            for link in &node.links {
                links.extend(resolve(&names, node, &link.to, &mut errors));
            }
            let mut opens = Vec::new();
            for open in &node.opens {
                if let Some(to) = resolve(&names, node, &open.to, &mut errors) {
                    opens.push(ResolvedOpen {
                        to,
                        r#final: open.r#final,
                    });
                }
            }
            resolved.links.push(links);
            resolved.opens.push(opens);
            let visible = resolve_list(&names, node, node.visible.as_deref(), &mut errors);
            resolved.visible.push(visible);
            let prelinked = resolve_list(&names, node, node.prelinked.as_deref(), &mut errors);
            resolved.prelinked.push(prelinked);
        }
        for id in resolved.ids() {
            resolved.check_node(id, &mut errors);
        }
        if errors.is_empty() {
            errors.extend(resolved.find_cycle());
        }
        if errors.is_empty() {
            Ok(resolved)
        } else {
            Err(errors)
        }
    }

    /// Reports edges and marks that no node of this form may have.
    fn check_node(&self, id: NodeId, errors: &mut Vec<Diagnostic>) {
        let node = self.node(id);
        let mut report = |message: String, help: &str| {
            errors.push(node.with_origin(Diagnostic::error(&INVALID_GRAPH, message).help(help)));
        };
        for &to in &self.links[id] {
            let linked = self.node(to);
            if matches!(linked.form, NodeForm::Bin | NodeForm::Plugin) {
                let form = linked.form.word();
                report(
                    format!("`{}` links `{}`, a {form}", node.name, linked.name),
                    "programs and plugins cannot be linked; a plugin is opened: `opens NAME`",
                );
            }
        }
        for open in &self.opens[id] {
            let opened = self.node(open.to);
            if !opened.is_image() || opened.form == NodeForm::Bin {
                let form = opened.form.word();
                report(
                    format!("`{}` opens `{}`, a {form}", node.name, opened.name),
                    "only shared libraries, plugins and cdylibs can be opened at run time",
                );
            } else if open.r#final && !opened.is_split() {
                report(
                    format!(
                        "`{}` opens the final of `{}`, which has none",
                        node.name, opened.name
                    ),
                    "only open shared libraries with relocatable code have one",
                );
            }
        }
        if node.closed && !node.is_image() {
            let message = format!("`{}` is closed, but not an image", node.name);
            report(message, "only programs and shared libraries can be closed");
        }
        if node.kind == NodeKind::Interface && node.form != NodeForm::Static {
            let message = format!("`{}` is an interface, but not an archive", node.name);
            report(message, "an interface has no output: leave the form out");
        }
        if !node.is_rdc() && node.prelinked.is_some() && !node.is_image() {
            let message = format!("`{}` is prelinked, but has no device code", node.name);
            report(message, "mark the node with the device code");
        }
    }

    /// The first cycle of links.
    fn find_cycle(&self) -> Option<Diagnostic> {
        let (mut done, mut on_path) = (self.table(false), self.table(false));
        for start in self.ids() {
            // A path and, for each node on it, the number of its links that were followed.
            let mut path = vec![(start, 0)];
            while let Some((id, followed)) = path.last_mut() {
                let id = *id;
                on_path[id] = true;
                let Some(&next) = self.links[id].get(*followed).filter(|_| !done[id]) else {
                    (done[id], on_path[id]) = (true, false);
                    path.pop();
                    continue;
                };
                *followed += 1;
                if !on_path[next] {
                    path.push((next, 0));
                    continue;
                }
                let from = path.iter().position(|(id, _)| *id == next).unwrap_or(0);
                let cycle: Vec<NodeId> = path[from..].iter().map(|(id, _)| *id).collect();
                return Some(self.node(next).with_origin(self.cycle_error(&cycle)));
            }
        }
        None
    }

    fn cycle_error(&self, cycle: &[NodeId]) -> Diagnostic {
        const MAX_NAMES: usize = 8;
        let mut names = self.names(&cycle[..cycle.len().min(MAX_NAMES)]);
        names.extend((cycle.len() > MAX_NAMES).then_some("…"));
        names.extend(cycle.first().map(|&first| self.name(first)));
        let message = format!("libraries require each other: {}", names.join(" → "));
        Diagnostic::error(&REQUIRES_CYCLE, message)
            .help("move what both need into a library of its own")
    }
}

/// Index of nodes by name, and errors for names that several nodes have.
fn index_names(graph: &ResolvedGraph<'_>) -> (ByName<NodeId>, Vec<Diagnostic>) {
    let mut errors = Vec::new();
    // Sorted first: `ByName` takes names in order at no cost.
    let mut order: Vec<NodeId> = graph.ids().collect();
    order.sort_by_key(|&id| graph.name(id));
    let mut names = ByName::new();
    for id in order {
        let node = graph.node(id);
        if names.contains_key(&node.name) {
            let message = format!("duplicate node `{}`", node.name);
            let error = Diagnostic::error(&INVALID_GRAPH, message);
            errors.push(
                node.with_origin(error.help("give each library and program a name of its own")),
            );
        } else {
            names.insert(&node.name, id);
        }
    }
    (names, errors)
}

/// The node of a name that `node` refers to; an error if there is none.
fn resolve(
    names: &ByName<NodeId>,
    node: &Node,
    name: &str,
    errors: &mut Vec<Diagnostic>,
) -> Option<NodeId> {
    let id = names.get(name).copied();
    if id.is_none() {
        errors.push(unknown_node(node, name, names));
    }
    id
}

fn resolve_list(
    names: &ByName<NodeId>,
    node: &Node,
    list: Option<&[String]>,
    errors: &mut Vec<Diagnostic>,
) -> Option<Vec<NodeId>> {
    let mut ids = Vec::new();
    for name in list? {
        ids.extend(resolve(names, node, name, errors));
    }
    Some(ids)
}

fn unknown_node(node: &Node, name: &str, names: &ByName<NodeId>) -> Diagnostic {
    let message = format!("unknown device library `{name}` in `{}`", node.name);
    let help = match nearest(name, names.iter().map(|(known, _)| known.as_str())) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "declare the library, or remove the name".to_owned(),
    };
    node.with_origin(Diagnostic::error(&UNKNOWN_DEVICE_LIBRARY, message).help(help))
}
