//! Errors of a process: the images that a program starts with and opens, in which each object needs
//! exactly one device link.

use std::collections::{BTreeMap, BTreeSet};

use super::faults::{self, Fault, Finding, ImageFault};
use super::graph::{NodeForm, NodeId, ResolvedOpen};
use super::plan::{LinkPlan, Role};
use crate::diag::Diagnostic;
use crate::ids::IndexVec;
use crate::manifest::Cudart;

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
    let alone = |&id: &NodeId| is_terminal(id) && !plan.is_root(id) && !led_to[id];
    processes.check_apart(&graph.ids().filter(alone).collect::<Vec<_>>());
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

/// Whether no other image can call the function for a library in a device link, given the images that
/// hold the library. rustc exports from a cdylib only the functions for other images.
fn hides(plan: &LinkPlan<'_>, link: NodeId, held: &[NodeId]) -> bool {
    let node = plan.node(link);
    node.closed || (node.form == NodeForm::Cdylib && held.binary_search(&link).is_ok())
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
    image_steps: IndexVec<NodeId, Option<Step>>,
    link_steps: IndexVec<NodeId, Option<Step>>,
}

/// Time at which an image, or a device link, is loaded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    /// 0 at the start, then the number of the library that is opened.
    open: usize,
    /// Position in the order of loading.
    position: usize,
}

impl Process {
    fn load(
        into: &mut Vec<NodeId>,
        steps: &mut IndexVec<NodeId, Option<Step>>,
        id: NodeId,
        open: usize,
    ) {
        if steps[id].is_none() {
            let position = into.len();
            steps[id] = Some(Step { open, position });
            into.push(id);
        }
    }
}

impl Processes<'_, '_> {
    fn process(&mut self, root: NodeId) -> Process {
        let graph = &self.plan.walk.graph;
        let mut process = Process {
            images: Vec::new(),
            links: Vec::new(),
            image_steps: graph.table(None),
            link_steps: graph.table(None),
        };
        let mut opens = vec![ResolvedOpen {
            to: root,
            r#final: false,
        }];
        for step in 0.. {
            let Some(open) = opens.pop() else { break };
            let mut next = process.images.len();
            let mut more: Vec<ResolvedOpen> = Vec::new();
            Process::load(&mut process.images, &mut process.image_steps, open.to, step);
            if open.r#final {
                Process::load(&mut process.links, &mut process.link_steps, open.to, step);
            }
            while let Some(&image) = process.images.get(next) {
                next += 1;
                let contents = self.plan.walk.image_contents(image);
                for &to in &contents.linked {
                    Process::load(&mut process.images, &mut process.image_steps, to, step);
                }
                if let Some(link) = self.links[image] {
                    Process::load(&mut process.links, &mut process.link_steps, link, step);
                }
                more.extend(&contents.opened);
            }
            // In their order, and before those that earlier images open next.
            opens.extend(more.into_iter().rev());
        }
        (process.images.iter()).for_each(|&image| self.visited[image] = true);
        self.drop_covered(root, &mut process.links);
        process.images.sort_unstable();
        process.links.sort_unstable();
        process
    }

    /// Drops the device links of other images over nothing but libraries that the program, or the
    /// opened plugin, links itself. It is loaded first, so that the objects call its functions.
    fn drop_covered(&mut self, root: NodeId, links: &mut Vec<NodeId>) {
        let plan = self.plan;
        let walk = &plan.walk;
        let Some(own) = self.links[root].filter(|_| !walk.is_closed(root)) else {
            return;
        };
        let covered = match plan.node(own).form {
            NodeForm::Cdylib => walk.linked_elsewhere(own),
            _ => walk.members(own),
        };
        let covered: BTreeSet<NodeId> = covered.into_iter().collect();
        links.retain(|&link| {
            let is_split = plan.node(link).is_split();
            let is_apart = is_split || walk.image_contents(link).owns.is_empty();
            let is_covered = |member: &NodeId| covered.contains(member);
            link == own || !is_apart || !self.members(link).iter().all(is_covered)
        });
    }

    /// Inputs of the device link of a library or plugin.
    fn members(&mut self, link: NodeId) -> &[NodeId] {
        let plan = self.plan;
        self.members[link].get_or_insert_with(|| plan.walk.members(link))
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
            let members = self.members(link).iter();
            linked.extend(members.map(|&member| occurrence(member, link)));
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
            let (images, links) = (images_with(same, member), images_with(&linked, member));
            let mut found = self.check_holders(&images, &links);
            found.extend(self.check_order(&process, &images, &links));
            for fault in found {
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

    /// The images or device links of a library that do not hide its function.
    fn open_images(&self, images: &[NodeId], held: &[NodeId]) -> Vec<NodeId> {
        let open = |&&at: &&NodeId| !hides(self.plan, at, held);
        images.iter().filter(open).copied().collect()
    }

    /// Faults in the device links over a library, given the images that hold it.
    fn check_links(&self, links: &[NodeId], held: &[NodeId]) -> Vec<ImageFault> {
        let mut faults = Vec::new();
        let open = self.open_images(links, held);
        if open.len() > 1 {
            faults.push(ImageFault::new(Fault::DuplicateDeviceLink, open.clone()));
        }
        if links.len() > open.len() && links.len() > 1 {
            faults.push(ImageFault::new(
                Fault::UnsharedDeviceGlobals,
                links.to_vec(),
            ));
        }
        let open_holds = !self.open_images(held, held).is_empty();
        for &link in links {
            if if hides(self.plan, link, held) {
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
        let open = self.open_images(images, images);
        let open_links = self.open_images(links, images);
        // If all of them are linked as well, two device links were reported.
        if open.len() > 1
            && !open
                .iter()
                .all(|image| open_links.binary_search(image).is_ok())
        {
            faults.push(ImageFault::new(Fault::DuplicateDeviceObjects, open));
        }
        for &image in images {
            if if hides(self.plan, image, images) {
                links.binary_search(&image).is_err()
            } else {
                open_links.is_empty()
            } {
                faults.push(ImageFault::new(Fault::MissingDeviceLink, vec![image]));
            }
        }
        faults
    }

    /// Fault of a library that is opened before its device link: the loader finds no definition of
    /// the functions that its objects call.
    fn check_order(
        &self,
        process: &Process,
        images: &[NodeId],
        links: &[NodeId],
    ) -> Option<ImageFault> {
        let (held, linked) = (
            self.open_images(images, images),
            self.open_images(links, images),
        );
        let first = |all: &[NodeId], steps: &IndexVec<NodeId, Option<Step>>| {
            let known = |&id: &NodeId| Some((steps[id]?, id));
            all.iter().filter_map(known).min()
        };
        let (loaded, image) = first(&held, &process.image_steps)?;
        let (defined, link) = first(&linked, &process.link_steps)?;
        let is_late = loaded.open < defined.open;
        is_late.then(|| ImageFault::new(Fault::LateDeviceLink, vec![image, link]))
    }

    /// Reports images that a program may open, but only one of them: their device links share libraries.
    fn check_apart(&mut self, images: &[NodeId]) {
        let mut linked = Vec::new();
        let mut opened: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for &image in images {
            let Some(link) = self.links[image] else {
                continue;
            };
            let opened = opened.entry(link).or_default();
            opened.push(image);
            if opened.len() > 1 {
                continue;
            }
            let owns = &self.plan.walk.image_contents(link).owns;
            let owns: BTreeSet<NodeId> = owns.iter().copied().collect();
            let plan = self.plan;
            for &member in self.members(link) {
                let held = if owns.contains(&member) {
                    &[link][..]
                } else {
                    &[]
                };
                if !hides(plan, link, held) {
                    let image = link;
                    linked.push(Occurrence { member, image });
                }
            }
        }
        linked.sort_unstable();
        let mut faults: BTreeMap<Vec<NodeId>, Vec<NodeId>> = BTreeMap::new();
        for same in linked
            .chunk_by(|a, b| a.member == b.member)
            .filter(|same| same.len() > 1)
        {
            let links = same.iter().map(|occurrence| occurrence.image).collect();
            faults.entry(links).or_default().push(same[0].member);
        }
        for (links, members) in faults {
            let roots = links
                .iter()
                .flat_map(|link| &opened[link])
                .copied()
                .collect();
            let at = ImageFault::new(Fault::SeparateDeviceLinks, links);
            self.found.insert(Finding { at, members }, roots);
        }
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
            .map(|(finding, roots)| faults::diagnostic(plan, finding, &roots))
            .collect()
    }
}
