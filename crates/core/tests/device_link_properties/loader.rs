//! Model of the dynamic loader, independent of the planner: the files that a plan makes, and the device
//! link that each object calls.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::device_link::{
    Graph, LinkItem, LinkPlan, LinkRole, Node, NodeForm, NodeId, NodeKind, NodePlan,
};

/// Whether a node is built as middle and final.
pub fn is_split(node: &Node) -> bool {
    node.kind == NodeKind::Rdc
        && node.form == NodeForm::Shared
        && !node.closed
        && node.prelinked.is_none()
}

/// A shared library or program as the planned host link makes it. A final is a file of its own.
#[derive(Default, Debug)]
struct File {
    held: BTreeSet<NodeId>,
    /// Inputs of the device link in it.
    linked: BTreeSet<NodeId>,
    /// Inputs whose function no other file can call.
    hidden: BTreeSet<NodeId>,
    needs: Vec<FileId>,
    opens: Vec<FileId>,
}

/// A node's image, or its final.
type FileId = (NodeId, bool);

impl File {
    fn new(plan: &LinkPlan<'_>, graph: &Graph, (image, r#final): FileId) -> Self {
        let planned: NodePlan = plan.node_plan(image);
        let (node, mut file) = (&graph[image], Self::default());
        let line = if r#final {
            planned.final_line
        } else {
            planned.line
        };
        if r#final || matches!(planned.role, LinkRole::OwnLink(_) | LinkRole::Prelinked) {
            file.linked.extend(planned.inputs);
        }
        if !r#final {
            file.held
                .extend((node.kind == NodeKind::Rdc).then_some(image));
            // The planned lines do not contain prelinked code.
            if planned.role == LinkRole::Prelinked {
                file.held.extend(&file.linked);
            }
        }
        for item in line {
            match item {
                LinkItem::Archive(library) | LinkItem::WholeArchive(library) => {
                    file.held.insert(library);
                }
                LinkItem::Middle(library) => file.needs.push((library, false)),
                LinkItem::Final(library) => file.needs.push((library, true)),
                LinkItem::Objects | LinkItem::LinkObject | LinkItem::Cudart(_) => {}
            }
        }
        if !r#final {
            file.add_host_code(graph, node.closed, image);
        }
        for &library in &file.linked {
            if node.closed || (node.form == NodeForm::Cdylib && file.held.contains(&library)) {
                file.hidden.insert(library);
            }
        }
        file
    }

    /// Adds the files that a node's host code needs and opens.
    fn add_host_code(&mut self, graph: &Graph, is_closed: bool, id: NodeId) {
        for open in &graph[id].opens {
            let to = graph.find(&open.to).unwrap();
            self.opens.push((to, open.r#final));
        }
        for link in &graph[id].links {
            let to = graph.find(&link.to).unwrap();
            let library = &graph[to];
            if library.form == NodeForm::Static || (is_closed && is_split(library)) {
                self.add_host_code(graph, is_closed, to);
            } else {
                self.needs.push((to, false));
            }
        }
    }
}

/// Order in which libraries are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As declared; those of a library when it is loaded.
    Declared,
    /// The program opens all libraries itself, from the last to the first.
    Reversed,
    /// The program opens all libraries itself, first that of this number.
    First(usize),
}

/// Variant of a process in which the plan must hold.
#[derive(Clone, Copy, Debug)]
pub struct Loader {
    /// The program exports all its functions (`-rdynamic`), not only those that its libraries call.
    pub exports: bool,
    /// Libraries are opened with `RTLD_GLOBAL`.
    pub global: bool,
    pub order: Order,
}

/// Simulates the dynamic loader: each object calls the first function for it in the scopes.
#[derive(Default, Debug)]
pub struct Process {
    loaded: BTreeMap<FileId, File>,
    global: Vec<FileId>,
    /// Objects that have called each device link.
    called: BTreeMap<FileId, Vec<NodeId>>,
    fails: bool,
}

impl Process {
    pub fn run(plan: &LinkPlan<'_>, graph: &Graph, root: NodeId, loader: Loader) -> Self {
        let mut process = Self::default();
        let (mut opens, mut opened) = (vec![(root, false)], Vec::new());
        while let Some(open) = opens.pop() {
            if !opened.contains(&open) {
                opened.push(open);
            }
            opens.extend(process.open(plan, graph, open, loader).into_iter().rev());
        }
        match loader.order {
            Order::Declared => return process,
            Order::Reversed => opened[1..].reverse(),
            Order::First(number) if number < opened.len() => opened[1..=number].rotate_right(1),
            Order::First(_) => return process,
        }
        let mut process = Self::default();
        for open in opened {
            process.open(plan, graph, open, loader);
        }
        process
    }

    /// Opens a file with those that it needs. Returns the files that these open in turn.
    fn open(
        &mut self,
        plan: &LinkPlan<'_>,
        graph: &Graph,
        open: FileId,
        loader: Loader,
    ) -> Vec<FileId> {
        let is_start = self.loaded.is_empty();
        let (mut scope, mut new, mut opens) = (vec![open], Vec::new(), Vec::new());
        let mut next = 0;
        while let Some(&id) = scope.get(next) {
            next += 1;
            let file = self.loaded.entry(id).or_insert_with(|| {
                new.push(id);
                let file = File::new(plan, graph, id);
                opens.extend(&file.opens);
                file
            });
            for &need in &file.needs {
                if !scope.contains(&need) {
                    scope.push(need);
                }
            }
        }
        if is_start || loader.global {
            self.global.extend(&scope);
        }
        let start = self.global.first().copied();
        for caller in new {
            for &object in &self.loaded[&caller].held {
                let link = if self.loaded[&caller].hidden.contains(&object) {
                    Some(caller)
                } else {
                    start
                        .iter()
                        .chain(&self.global)
                        .chain(&scope)
                        .find(|&&id| {
                            let file = &self.loaded[&id];
                            file.linked.contains(&object)
                                && !file.hidden.contains(&object)
                                && self.exports(graph, id, caller, loader)
                        })
                        .copied()
                };
                match link {
                    Some(link) => self.called.entry(link).or_default().push(object),
                    None => self.fails = true,
                }
            }
        }
        opens
    }

    /// Whether the loader finds functions of a file for this caller.
    fn exports(&self, graph: &Graph, id: FileId, caller: FileId, loader: Loader) -> bool {
        graph[id.0].form != NodeForm::Bin
            || id == caller
            || loader.exports
            // Linkers export what the libraries on the program's command line call.
            || scope_of(&self.loaded, &self.loaded[&id].needs).contains(&caller)
    }

    /// Whether every object is registered: each device link that one has called, all have called once.
    pub fn is_sound(&self) -> bool {
        let is_complete = self.called.iter().all(|(link, called)| {
            let callers: BTreeSet<NodeId> = called.iter().copied().collect();
            callers == self.loaded[link].linked && callers.len() == called.len()
        });
        !self.fails && is_complete
    }
}

/// Files that are loaded with these.
fn scope_of(loaded: &BTreeMap<FileId, File>, ids: &[FileId]) -> BTreeSet<FileId> {
    let (mut scope, mut pending) = (BTreeSet::new(), ids.to_vec());
    while let Some(id) = pending.pop() {
        if scope.insert(id) {
            pending.extend(loaded.get(&id).into_iter().flat_map(|file| &file.needs));
        }
    }
    scope
}
