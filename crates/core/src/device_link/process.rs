//! Errors of a process: the images that a program starts with and opens, in which each object needs
//! exactly one device link.

use std::collections::BTreeMap;

use super::graph::NodeId;
use super::plan::{LinkPlan, Role};
use crate::diag::{
    DUPLICATE_DEVICE_LINK, DUPLICATE_DEVICE_OBJECTS, Diagnostic, INCOMPLETE_DEVICE_LINK,
    MISSING_DEVICE_LINK, MIXED_CUDART, UNSHARED_DEVICE_GLOBALS, listing,
};
use crate::ids::IndexVec;
use crate::manifest::Cudart;

/// Kind of a fault, in report order.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Fault {
    DuplicateDeviceLink,
    DuplicateDeviceObjects,
    MissingDeviceLink,
    IncompleteDeviceLink,
    MixedCudart(Cudart, Cudart),
    UnsharedDeviceGlobals,
}

/// A fault and the images that it concerns.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ImageFault {
    fault: Fault,
    images: Vec<NodeId>,
}

impl ImageFault {
    fn new(fault: Fault, images: Vec<NodeId>) -> Self {
        Self { fault, images }
    }
}

/// A fault of some images, and the libraries that it concerns.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    at: ImageFault,
    members: Vec<NodeId>,
}

/// Checks all processes of a plan; a fault of several processes is reported once.
pub(super) fn check_processes(plan: &LinkPlan<'_>) -> Vec<Diagnostic> {
    let graph = &plan.walk.graph;
    let mut processes = Processes {
        plan,
        links: graph.ids().map(|id| link_of_image(plan, id)).collect(),
        members: graph.table(None),
        visited: graph.table(false),
        found: BTreeMap::new(),
    };
    // Programs first, then images that no node starts, links or opens: their program is not in the graph.
    let mut led_to = graph.table(false);
    for id in graph.ids() {
        let contents = plan.walk.image_contents(id);
        let opened = contents.opened.iter().map(|open| &open.to);
        contents
            .linked
            .iter()
            .chain(opened)
            .for_each(|&to| led_to[to] = true);
    }
    let check = |processes: &mut Processes<'_, '_>, wanted: &dyn Fn(NodeId) -> bool| {
        // Selected before the first is checked: the findings must not depend on their order.
        let visited = processes.visited.clone();
        let roots = graph.ids().filter(|&id| !visited[id] && wanted(id));
        roots.for_each(|id| processes.check(id));
    };
    let is_terminal = |id: NodeId| plan.node(id).is_terminal();
    check(&mut processes, &|id| plan.is_root(id));
    check(&mut processes, &|id| is_terminal(id) && !led_to[id]);
    check(&mut processes, &is_terminal);
    processes.into_diagnostics()
}

fn link_of_image(plan: &LinkPlan<'_>, image: NodeId) -> Option<NodeId> {
    match plan.role(image) {
        Role::UseFinal(top) => Some(top),
        Role::OwnLink(_) | Role::Prelinked => Some(image),
        _ => None,
    }
}

/// Occurrence of a library in an image: in its device link, or among its objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Occurrence {
    member: NodeId,
    image: NodeId,
}

/// The images of a library, from a sorted list.
fn images_with(occurrences: &[Occurrence], member: NodeId) -> Vec<NodeId> {
    let from = occurrences.partition_point(|other| other.member < member);
    let same = occurrences[from..].iter();
    let same = same.take_while(|other| other.member == member);
    same.map(|occurrence| occurrence.image).collect()
}

struct Processes<'p, 'g> {
    plan: &'p LinkPlan<'g>,
    /// The device link that comes with each image: its own, or the final that it uses.
    links: IndexVec<NodeId, Option<NodeId>>,
    /// Inputs of each library's device link, computed on first use.
    members: IndexVec<NodeId, Option<Vec<NodeId>>>,
    visited: IndexVec<NodeId, bool>,
    /// The findings, and the programs that have each.
    found: BTreeMap<Finding, Vec<NodeId>>,
}

/// The images of a process and its device links: images that have one, or whose final does.
struct Process {
    images: Vec<NodeId>,
    links: Vec<NodeId>,
}

impl Processes<'_, '_> {
    fn process(&mut self, root: NodeId) -> Process {
        let graph = &self.plan.walk.graph;
        let (mut seen, mut linked) = (graph.table(false), graph.table(false));
        seen[root] = true;
        let (mut images, mut links) = (vec![root], Vec::new());
        let mut next = 0;
        while let Some(&image) = images.get(next) {
            next += 1;
            let contents = self.plan.walk.image_contents(image);
            let opened = contents.opened.iter();
            let finals = opened
                .clone()
                .filter(|open| open.r#final)
                .map(|open| open.to);
            for link in self.links[image].into_iter().chain(finals) {
                if !std::mem::replace(&mut linked[link], true) {
                    links.push(link);
                }
            }
            for to in contents.linked.iter().chain(opened.map(|open| &open.to)) {
                if !std::mem::replace(&mut seen[*to], true) {
                    images.push(*to);
                }
            }
        }
        images.iter().for_each(|&image| self.visited[image] = true);
        images.sort_unstable();
        links.sort_unstable();
        Process { images, links }
    }

    fn check(&mut self, root: NodeId) {
        let plan = self.plan;
        let process = self.process(root);
        // Each library in the device links over it, and in the images that hold its objects.
        let (mut linked, mut held) = (Vec::new(), Vec::new());
        let occurrence = |member, image| Occurrence { member, image };
        for &link in &process.links {
            // A program's own link cannot serve another process.
            if plan.is_root(link) {
                let members = plan.walk.members(link).into_iter();
                linked.extend(members.map(|member| occurrence(member, link)));
                continue;
            }
            let members = self.members[link].get_or_insert_with(|| plan.walk.members(link));
            linked.extend(members.iter().map(|&member| occurrence(member, link)));
        }
        for &image in &process.images {
            let owns = &plan.walk.image_contents(image).owns;
            held.extend(owns.iter().map(|&member| occurrence(member, image)));
        }
        linked.sort_unstable();
        held.sort_unstable();
        let mut faults: BTreeMap<ImageFault, Vec<NodeId>> = BTreeMap::new();
        for same in linked.chunk_by(|a, b| a.member == b.member) {
            let member = same[0].member;
            for fault in self.check_links(&images_with(same, member), &images_with(&held, member)) {
                faults.entry(fault).or_default().push(member);
            }
        }
        for same in held.chunk_by(|a, b| a.member == b.member) {
            let member = same[0].member;
            for fault in
                self.check_holders(&images_with(same, member), &images_with(&linked, member))
            {
                faults.entry(fault).or_default().push(member);
            }
        }
        if let Some(fault) = self.check_runtimes(&process) {
            faults.insert(fault, Vec::new());
        }
        for (at, members) in faults {
            let roots = self.found.entry(Finding { at, members }).or_default();
            roots.push(root);
        }
    }

    fn open_images(&self, images: &[NodeId]) -> Vec<NodeId> {
        let open = |&&at: &&NodeId| !self.plan.node(at).is_closed();
        images.iter().filter(open).copied().collect()
    }

    /// Faults in the device links over a library, given the images that hold it.
    fn check_links(&self, links: &[NodeId], held: &[NodeId]) -> Vec<ImageFault> {
        let mut faults = Vec::new();
        let open = self.open_images(links);
        // The symbols of a closed image are visible to no other image.
        if open.len() > 1 {
            faults.push(ImageFault::new(Fault::DuplicateDeviceLink, open.clone()));
        }
        if links.len() > open.len() && links.len() > 1 {
            faults.push(ImageFault::new(
                Fault::UnsharedDeviceGlobals,
                links.to_vec(),
            ));
        }
        let open_holds = !self.open_images(held).is_empty();
        for &link in links {
            let closed = self.plan.node(link).is_closed();
            if if closed {
                held.binary_search(&link).is_err()
            } else {
                !open_holds
            } {
                faults.push(ImageFault::new(Fault::IncompleteDeviceLink, vec![link]));
            }
        }
        faults
    }

    /// Faults in the images that hold a library, given the device links over it.
    fn check_holders(&self, images: &[NodeId], links: &[NodeId]) -> Vec<ImageFault> {
        let mut faults = Vec::new();
        let (open, open_links) = (self.open_images(images), self.open_images(links));
        // If all of them are linked as well, two device links were reported.
        if open.len() > 1
            && !open
                .iter()
                .all(|image| open_links.binary_search(image).is_ok())
        {
            faults.push(ImageFault::new(Fault::DuplicateDeviceObjects, open));
        }
        for &image in images {
            let closed = self.plan.node(image).is_closed();
            if if closed {
                links.binary_search(&image).is_err()
            } else {
                open_links.is_empty()
            } {
                faults.push(ImageFault::new(Fault::MissingDeviceLink, vec![image]));
            }
        }
        faults
    }

    /// The first two nodes of the process with different runtimes.
    fn check_runtimes(&self, process: &Process) -> Option<ImageFault> {
        let mut first: Option<(NodeId, Cudart)> = None;
        for &image in &process.images {
            for &id in &self.plan.walk.image_contents(image).nodes {
                let kind = self.plan.node(id).cudart;
                let Some(kind) = kind.filter(|kind| *kind != Cudart::None) else {
                    continue;
                };
                match first {
                    None => first = Some((id, kind)),
                    Some((one, other)) if other != kind => {
                        let fault = Fault::MixedCudart(other, kind);
                        return Some(ImageFault::new(fault, vec![one, id]));
                    }
                    Some(_) => {}
                }
            }
        }
        None
    }

    fn into_diagnostics(self) -> Vec<Diagnostic> {
        let plan = self.plan;
        let found = self.found.into_iter();
        found
            .map(|(finding, roots)| diagnostic(plan, finding, &roots))
            .collect()
    }
}

fn diagnostic(plan: &LinkPlan<'_>, finding: Finding, roots: &[NodeId]) -> Diagnostic {
    let Finding { at, members } = finding;
    let ImageFault { fault, images } = at;
    let graph = &plan.walk.graph;
    let quoted = |names: Vec<&str>| {
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        listing(&quoted)
    };
    let (m, holders) = (quoted(graph.names(&members)), quoted(graph.names(&images)));
    let (root, links) = (quoted(graph.names(roots)), {
        let names: Vec<String> = images.iter().map(|&at| plan.link_name(at)).collect();
        quoted(names.iter().map(String::as_str).collect())
    });
    let diagnostic = match fault {
        Fault::DuplicateDeviceLink => Diagnostic::error(
            &DUPLICATE_DEVICE_LINK,
            format!("in {root}, {links} each device-link {m}; a process registers a library once"),
        )
        .help(format!(
            "close all but one of them, or link the middles and device-link all of it in {root}"
        )),
        Fault::DuplicateDeviceObjects => Diagnostic::error(
            &DUPLICATE_DEVICE_OBJECTS,
            format!("in {root}, {m} is inside {holders}"),
        )
        .help(format!("make {m} shared, or close all but one of them")),
        Fault::MissingDeviceLink => Diagnostic::error(
            &MISSING_DEVICE_LINK,
            format!("in {root}, {m} (in {holders}) is never device-linked"),
        )
        .help(
            "open a library's final or a plugin instead, or let the program link the library: \
             then it is in the program's device link",
        ),
        Fault::IncompleteDeviceLink => Diagnostic::error(
            &INCOMPLETE_DEVICE_LINK,
            format!("in {root}, {links} device-links {m}, which is not in the process"),
        )
        .help("no kernel of that device link is registered: link the library, or repeat the device link without it"),
        Fault::MixedCudart(one, other) => Diagnostic::error(
            &MIXED_CUDART,
            format!(
                "in {root}, `{}` uses the {} CUDA runtime, `{}` the {} one",
                graph.name(images[0]),
                one.word(),
                graph.name(images[1]),
                other.word()
            ),
        )
        .help("choose one kind with `cudart` for all libraries of a process"),
        Fault::UnsharedDeviceGlobals => Diagnostic::warning(
            &UNSHARED_DEVICE_GLOBALS,
            format!("in {root}, {m} is in {links}, each with device globals of its own"),
        ),
    };
    match images.first() {
        Some(&image) => plan.node(image).with_origin(diagnostic),
        None => diagnostic,
    }
}
