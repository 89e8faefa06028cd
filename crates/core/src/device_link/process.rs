//! Errors of a process: the images that a program starts with and opens, in which each object needs
//! exactly one device link.

use std::collections::{BTreeMap, BTreeSet};

use super::faults::{self, Fault, Finding, ImageFault};
use super::graph::{NodeForm, NodeId, ResolvedOpen};
use super::plan::{LinkPlan, LinkRole};
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
        findings: BTreeMap::new(),
    };
    let mut is_used = graph.table(false);
    for id in graph.ids() {
        let contents = plan.walk.image_contents(id);
        for &to in &contents.linked {
            is_used[to] = true;
        }
        for open in &contents.opened {
            is_used[open.to] = true;
        }
    }
    // Programs first, then images that no node starts, links or opens: their program is not in the graph.
    processes.check_unvisited(&|id| plan.is_root(id));
    processes.check_unvisited(&|id| plan.node(id).is_terminal() && !is_used[id]);
    processes.check_unvisited(&|id| plan.node(id).is_terminal());
    let unused: Vec<NodeId> = graph
        .ids()
        .filter(|&id| plan.node(id).is_terminal() && !plan.is_root(id) && !is_used[id])
        .collect();
    processes.check_separate_links(&unused);
    processes.into_diagnostics()
}

fn link_of_image(plan: &LinkPlan<'_>, image: NodeId) -> Option<NodeId> {
    match plan.role(image) {
        LinkRole::UseFinal(top) => Some(top),
        LinkRole::OwnLink(_) | LinkRole::Prelinked => Some(image),
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
    let start = occurrences.partition_point(|occurrence| occurrence.member < member);
    occurrences[start..]
        .iter()
        .take_while(|occurrence| occurrence.member == member)
        .map(|occurrence| occurrence.image)
        .collect()
}

fn add_occurrences(occurrences: &mut Vec<Occurrence>, members: &[NodeId], image: NodeId) {
    for &member in members {
        occurrences.push(Occurrence { member, image });
    }
}

/// Whether no other image can call the function for a library in a device link, given the images that
/// hold the library. rustc exports from a cdylib only the functions for other images.
fn hides(plan: &LinkPlan<'_>, link: NodeId, holders: &[NodeId]) -> bool {
    let node = plan.node(link);
    node.closed || (node.form == NodeForm::Cdylib && holders.binary_search(&link).is_ok())
}

struct Processes<'p, 'g> {
    plan: &'p LinkPlan<'g>,
    /// The device link that comes with each image: its own, or the final that it uses.
    links: IndexVec<NodeId, Option<NodeId>>,
    /// Inputs of each library's device link, computed on first use.
    members: IndexVec<NodeId, Option<Vec<NodeId>>>,
    visited: IndexVec<NodeId, bool>,
    /// The findings, and the programs that have each.
    findings: BTreeMap<Finding, Vec<NodeId>>,
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
        loaded: &mut Vec<NodeId>,
        steps: &mut IndexVec<NodeId, Option<Step>>,
        id: NodeId,
        open: usize,
    ) {
        if steps[id].is_none() {
            let position = loaded.len();
            steps[id] = Some(Step { open, position });
            loaded.push(id);
        }
    }
}

/// The first of these images, or device links, that is loaded.
fn first_loaded(ids: &[NodeId], steps: &IndexVec<NodeId, Option<Step>>) -> Option<(Step, NodeId)> {
    ids.iter().filter_map(|&id| Some((steps[id]?, id))).min()
}

impl Processes<'_, '_> {
    /// Checks the processes that start with these images and that no earlier process contains.
    fn check_unvisited(&mut self, is_root: &dyn Fn(NodeId) -> bool) {
        // Selected before the first is checked: the findings must not depend on their order.
        let graph = &self.plan.walk.graph;
        let roots: Vec<NodeId> = graph
            .ids()
            .filter(|&id| !self.visited[id] && is_root(id))
            .collect();
        for root in roots {
            self.check(root);
        }
    }

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
            let mut opened: Vec<ResolvedOpen> = Vec::new();
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
                opened.extend(&contents.opened);
            }
            // In their order, and before those that earlier images open next.
            opens.extend(opened.into_iter().rev());
        }
        for &image in &process.images {
            self.visited[image] = true;
        }
        self.drop_covered(root, &mut process.links);
        self.drop_uncalled(&mut process.links);
        process.images.sort_unstable();
        process.links.sort_unstable();
        process
    }

    /// Drops the device links of other images over nothing but libraries that the program, or the
    /// opened plugin, links itself. It is loaded first, so that the objects call its functions.
    fn drop_covered(&mut self, root: NodeId, links: &mut Vec<NodeId>) {
        let plan = self.plan;
        let walk = &plan.walk;
        let Some(root_link) = self.links[root].filter(|_| !walk.is_closed(root)) else {
            return;
        };
        let members = match plan.node(root_link).form {
            NodeForm::Cdylib => walk.linked_elsewhere(root_link),
            _ => walk.members(root_link),
        };
        let covered: BTreeSet<NodeId> = members.into_iter().collect();
        links.retain(|&link| {
            let holds_objects =
                !plan.node(link).is_split() && !walk.image_contents(link).owns.is_empty();
            link == root_link
                || holds_objects
                || !self
                    .members(link)
                    .iter()
                    .all(|member| covered.contains(member))
        });
    }

    /// Drops the device links that nothing calls, from a list in the order of loading. Of images that load
    /// the same libraries and have a device link over all of them, the first gets the calls of all objects.
    fn drop_uncalled(&mut self, links: &mut Vec<NodeId>) {
        let mut called = BTreeSet::new();
        links.retain(|&link| {
            self.loaded_libraries(link)
                .is_none_or(|libraries| called.insert(libraries))
        });
    }

    /// The libraries of an image's own device link, each in an image that is loaded with it. `None` if the
    /// image holds one of them itself, or if no image that it loads holds one.
    fn loaded_libraries(&mut self, link: NodeId) -> Option<Vec<Occurrence>> {
        let plan = self.plan;
        let walk = &plan.walk;
        let is_callable = matches!(plan.role(link), LinkRole::OwnLink(_))
            && plan.node(link).form != NodeForm::Bin
            && !walk.is_closed(link);
        let members: BTreeSet<NodeId> = self.members(link).iter().copied().collect();
        let owns = &walk.image_contents(link).owns;
        if !is_callable || owns.iter().any(|owned| members.contains(owned)) {
            return None;
        }
        let (mut images, mut visited) = (vec![link], BTreeSet::from([link]));
        let mut libraries = Vec::new();
        while let Some(image) = images.pop() {
            let contents = walk.image_contents(image);
            for &member in contents.owns.iter().filter(|id| members.contains(id)) {
                libraries.push(Occurrence { member, image });
            }
            images.extend(contents.linked.iter().filter(|&&to| visited.insert(to)));
        }
        libraries.sort_unstable();
        let held = libraries.chunk_by(|a, b| a.member == b.member).count();
        (held == members.len()).then_some(libraries)
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
        for &link in &process.links {
            // A program's own link cannot serve another process.
            if plan.is_root(link) {
                add_occurrences(&mut linked, &plan.walk.members(link), link);
            } else {
                add_occurrences(&mut linked, self.members(link), link);
            }
        }
        for &image in &process.images {
            add_occurrences(&mut held, &plan.walk.image_contents(image).owns, image);
        }
        linked.sort_unstable();
        held.sort_unstable();
        let mut faults: BTreeMap<ImageFault, Vec<NodeId>> = BTreeMap::new();
        for occurrences in linked.chunk_by(|a, b| a.member == b.member) {
            let member = occurrences[0].member;
            let (links, holders) = (images_with(occurrences, member), images_with(&held, member));
            for fault in self.check_links(&links, &holders) {
                faults.entry(fault).or_default().push(member);
            }
        }
        for occurrences in held.chunk_by(|a, b| a.member == b.member) {
            let member = occurrences[0].member;
            let (holders, links) = (
                images_with(occurrences, member),
                images_with(&linked, member),
            );
            for fault in self.check_holders(&holders, &links) {
                faults.entry(fault).or_default().push(member);
            }
            if let Some(fault) = self.check_order(&process, &holders, &links) {
                faults.entry(fault).or_default().push(member);
            }
        }
        if let Some(fault) = self.check_runtimes(&process) {
            faults.insert(fault, Vec::new());
        }
        for (fault, members) in faults {
            let finding = Finding { fault, members };
            self.findings.entry(finding).or_default().push(root);
        }
    }

    /// The images or device links of a library that do not hide its function.
    fn open_images(&self, images: &[NodeId], holders: &[NodeId]) -> Vec<NodeId> {
        images
            .iter()
            .copied()
            .filter(|&image| !hides(self.plan, image, holders))
            .collect()
    }

    /// Faults in the device links over a library, given the images that hold it.
    fn check_links(&self, links: &[NodeId], holders: &[NodeId]) -> Vec<ImageFault> {
        let mut faults = Vec::new();
        let open = self.open_images(links, holders);
        if open.len() > 1 {
            faults.push(ImageFault::new(Fault::DuplicateDeviceLink, open.clone()));
        }
        if links.len() > open.len() && links.len() > 1 {
            faults.push(ImageFault::new(
                Fault::UnsharedDeviceGlobals,
                links.to_vec(),
            ));
        }
        let has_open_holder = !self.open_images(holders, holders).is_empty();
        for &link in links {
            let is_complete = if hides(self.plan, link, holders) {
                holders.binary_search(&link).is_ok()
            } else {
                has_open_holder
            };
            if !is_complete {
                faults.push(ImageFault::new(Fault::IncompleteDeviceLink, vec![link]));
            }
        }
        faults
    }

    /// Faults in the images that hold a library, given the device links over it.
    fn check_holders(&self, holders: &[NodeId], links: &[NodeId]) -> Vec<ImageFault> {
        let mut faults = Vec::new();
        let open = self.open_images(holders, holders);
        let open_links = self.open_images(links, holders);
        // If all of them are linked as well, two device links were reported.
        if open.len() > 1
            && !open
                .iter()
                .all(|image| open_links.binary_search(image).is_ok())
        {
            faults.push(ImageFault::new(Fault::DuplicateDeviceObjects, open));
        }
        for &image in holders {
            let is_linked = if hides(self.plan, image, holders) {
                links.binary_search(&image).is_ok()
            } else {
                !open_links.is_empty()
            };
            if !is_linked {
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
        holders: &[NodeId],
        links: &[NodeId],
    ) -> Option<ImageFault> {
        let open_holders = self.open_images(holders, holders);
        let open_links = self.open_images(links, holders);
        let (image_step, image) = first_loaded(&open_holders, &process.image_steps)?;
        let (link_step, link) = first_loaded(&open_links, &process.link_steps)?;
        (image_step.open < link_step.open)
            .then(|| ImageFault::new(Fault::LateDeviceLink, vec![image, link]))
    }

    /// Reports images that a program may open, but only one of them: their device links share libraries.
    fn check_separate_links(&mut self, images: &[NodeId]) {
        let plan = self.plan;
        let mut linked = Vec::new();
        let mut libraries_by_link: BTreeMap<NodeId, Vec<Occurrence>> = BTreeMap::new();
        let mut images_by_link: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for &image in images {
            let Some(link) = self.links[image] else {
                continue;
            };
            let images_of_link = images_by_link.entry(link).or_default();
            images_of_link.push(image);
            if images_of_link.len() > 1 {
                continue;
            }
            if let Some(libraries) = self.loaded_libraries(link) {
                libraries_by_link.insert(link, libraries);
            }
            let owns: BTreeSet<NodeId> = plan
                .walk
                .image_contents(link)
                .owns
                .iter()
                .copied()
                .collect();
            for &member in self.members(link) {
                let holders = if owns.contains(&member) {
                    &[link][..]
                } else {
                    &[]
                };
                if !hides(plan, link, holders) {
                    add_occurrences(&mut linked, &[member], link);
                }
            }
        }
        linked.sort_unstable();
        let mut members_by_links: BTreeMap<Vec<NodeId>, Vec<NodeId>> = BTreeMap::new();
        for occurrences in linked.chunk_by(|a, b| a.member == b.member) {
            if occurrences.len() == 1 {
                continue;
            }
            let Occurrence { member, image } = occurrences[0];
            let links = images_with(occurrences, member);
            let libraries = libraries_by_link.get(&image);
            // Nothing calls the link of the image that is opened second.
            if libraries.is_none()
                || links
                    .iter()
                    .any(|link| libraries_by_link.get(link) != libraries)
            {
                members_by_links.entry(links).or_default().push(member);
            }
        }
        for (links, members) in members_by_links {
            let roots = links
                .iter()
                .flat_map(|link| &images_by_link[link])
                .copied()
                .collect();
            let fault = ImageFault::new(Fault::SeparateDeviceLinks, links);
            self.findings.insert(Finding { fault, members }, roots);
        }
    }

    /// The first two nodes of the process with different runtimes.
    fn check_runtimes(&self, process: &Process) -> Option<ImageFault> {
        let mut first: Option<(NodeId, Cudart)> = None;
        for &image in &process.images {
            for &id in &self.plan.walk.image_contents(image).nodes {
                let cudart = match self.plan.node(id).cudart {
                    None | Some(Cudart::None) => continue,
                    Some(cudart) => cudart,
                };
                match first {
                    None => first = Some((id, cudart)),
                    Some((first_id, first_cudart)) if first_cudart != cudart => {
                        let fault = Fault::MixedCudart(first_cudart, cudart);
                        return Some(ImageFault::new(fault, vec![first_id, id]));
                    }
                    Some(_) => {}
                }
            }
        }
        None
    }

    fn into_diagnostics(self) -> Vec<Diagnostic> {
        let plan = self.plan;
        self.findings
            .into_iter()
            .map(|(finding, roots)| faults::diagnostic(plan, finding, &roots))
            .collect()
    }
}
