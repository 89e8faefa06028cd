//! Model of the dynamic loader, independent of the planner: the files that a plan makes, and the device
//! link that each object calls.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::device_link::{
    Graph, Kind, LinkItem, LinkPlan, Node, NodeForm, NodeId, Planned, Role,
};

/// Whether a node is built as middle and final.
pub fn is_split(node: &Node) -> bool {
    node.kind == Kind::Rdc
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
        let planned: Planned = plan.planned(image);
        let (node, mut file) = (&graph[image], Self::default());
        let line = if r#final {
            planned.final_line
        } else {
            planned.line
        };
        if r#final || matches!(planned.role, Role::OwnLink(_) | Role::Prelinked) {
            file.linked.extend(planned.inputs);
        }
        if !r#final {
            file.held.extend((node.kind == Kind::Rdc).then_some(image));
            // The planned lines do not contain prelinked code.
            if planned.role == Role::Prelinked {
                file.held.extend(&file.linked);
            }
        }
        for item in line {
            match item {
                LinkItem::Archive(at) | LinkItem::WholeArchive(at) => {
                    file.held.insert(at);
                }
                LinkItem::Middle(at) => file.needs.push((at, false)),
                LinkItem::Final(at) => file.needs.push((at, true)),
                LinkItem::Objects | LinkItem::LinkObject | LinkItem::Cudart(_) => {}
            }
        }
        if !r#final {
            file.host(graph, node.closed, image);
        }
        let hides =
            |at: &&NodeId| node.closed || (node.form == NodeForm::Cdylib && file.held.contains(at));
        file.hidden = file.linked.iter().filter(hides).copied().collect();
        file
    }

    /// Files that a node's host code needs and opens.
    fn host(&mut self, graph: &Graph, is_closed: bool, at: NodeId) {
        for open in &graph[at].opens {
            let to = graph.find(&open.to).unwrap();
            self.opens.push((to, open.r#final));
        }
        for link in &graph[at].links {
            let to = graph.find(&link.to).unwrap();
            let other = &graph[to];
            if other.form == NodeForm::Static || (is_closed && is_split(other)) {
                self.host(graph, is_closed, to);
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
        for id in new {
            for &object in &self.loaded[&id].held {
                let own = self.loaded[&id].hidden.contains(&object).then_some(id);
                let is_bin = |at: FileId| graph[at.0].form == NodeForm::Bin;
                // Linkers export what the libraries on the program's command line call.
                let exports = |at: &FileId| {
                    let needed = || self.loaded[at].needs.iter();
                    let is_called = || scope_of(&self.loaded, needed()).contains(&id);
                    !is_bin(*at) || *at == id || loader.exports || is_called()
                };
                let defines = |at: &&FileId| {
                    let file = &self.loaded[*at];
                    file.linked.contains(&object) && !file.hidden.contains(&object) && exports(at)
                };
                let mut scopes = start.iter().chain(&self.global).chain(&scope);
                match own.or_else(|| scopes.find(defines).copied()) {
                    Some(link) => self.called.entry(link).or_default().push(object),
                    None => self.fails = true,
                }
            }
        }
        opens
    }

    /// Whether every object is registered: each device link that one has called, all have called once.
    pub fn is_sound(&self) -> bool {
        let complete = |(link, called): (&FileId, &Vec<NodeId>)| {
            let all: BTreeSet<NodeId> = called.iter().copied().collect();
            all == self.loaded[link].linked && all.len() == called.len()
        };
        !self.fails && self.called.iter().all(complete)
    }
}

/// Files that are loaded with these.
fn scope_of<'a>(
    loaded: &'a BTreeMap<FileId, File>,
    from: impl Iterator<Item = &'a FileId>,
) -> BTreeSet<FileId> {
    let (mut all, mut open) = (BTreeSet::new(), from.copied().collect::<Vec<_>>());
    while let Some(id) = open.pop() {
        if all.insert(id) {
            open.extend(loaded.get(&id).iter().flat_map(|file| &file.needs));
        }
    }
    all
}
