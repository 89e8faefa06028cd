//! What is refused of a process: the images that a program starts with and opens, where each
//! object needs one device link and no more.

use std::collections::BTreeMap;

use super::plan::{LinkPlan, Role};
use crate::diag::{
    DUPLICATE_DEVICE_LINK, DUPLICATE_DEVICE_OBJECTS, Diagnostic, INCOMPLETE_DEVICE_LINK,
    MISSING_DEVICE_LINK, MIXED_CUDART, UNSHARED_DEVICE_GLOBALS, listing,
};
use crate::manifest::Cudart;

/// What is wrong with some libraries. Sorted as it is told.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Fault {
    TwoLinks,
    DuplicateObjects,
    NeverLinked,
    Ghost,
    Runtime(Cudart, Cudart),
    Isolated,
}

/// One thing that is wrong: what, in which images, of which libraries.
type Finding = (Fault, Vec<usize>, Vec<usize>);

/// All processes of a plan; what is wrong in several is told once.
pub(super) fn check(plan: &LinkPlan<'_>) -> Vec<Diagnostic> {
    let mut processes = Processes {
        plan,
        links: (0..plan.nodes().len())
            .map(|at| link_of(plan, at))
            .collect(),
        members: vec![None; plan.nodes().len()],
        visited: vec![false; plan.nodes().len()],
        found: BTreeMap::new(),
    };
    // Programs first; then what nothing starts, links or opens: its program is not in the graph.
    let count = plan.nodes().len();
    let mut led_to = vec![false; count];
    for at in 0..count {
        let inside = plan.walk.inside(at);
        let opened = inside.opened.iter().map(|(to, _)| to);
        inside
            .linked
            .iter()
            .chain(opened)
            .for_each(|&to| led_to[to] = true);
    }
    let judge = |processes: &mut Processes<'_, '_>, wanted: &dyn Fn(usize) -> bool| {
        // Asked of all before the first is judged: what is found must not depend on their order.
        let visited = processes.visited.clone();
        let roots = (0..count).filter(|&at| !visited[at] && wanted(at));
        roots.for_each(|at| processes.judge(at));
    };
    let ends = |at: usize| plan.nodes()[at].is_terminal();
    judge(&mut processes, &|at| plan.is_root(at));
    judge(&mut processes, &|at| ends(at) && !led_to[at]);
    judge(&mut processes, &ends);
    processes.tell()
}

fn link_of(plan: &LinkPlan<'_>, image: usize) -> Option<usize> {
    match plan.role(image) {
        Role::UseFinal(top) => Some(top),
        Role::OwnLink(_) | Role::Prelinked => Some(image),
        _ => None,
    }
}

/// What stands with `key` in a sorted list, and all with it.
fn of(pairs: &[(usize, usize)], key: usize) -> Vec<usize> {
    let from = pairs.partition_point(|(other, _)| *other < key);
    let same = pairs[from..].iter().take_while(|(other, _)| *other == key);
    same.map(|(_, value)| *value).collect()
}

struct Processes<'p, 'g> {
    plan: &'p LinkPlan<'g>,
    /// The device link that comes with each image: its own, or the final that it uses.
    links: Vec<Option<usize>>,
    /// What the device links of libraries are over, once asked for.
    members: Vec<Option<Vec<usize>>>,
    visited: Vec<bool>,
    /// And the programs that have it.
    found: BTreeMap<Finding, Vec<usize>>,
}

/// The images of a process and its device links: images that have one, or whose final does.
struct Process {
    images: Vec<usize>,
    links: Vec<usize>,
}

impl Processes<'_, '_> {
    fn process(&mut self, root: usize) -> Process {
        let count = self.plan.nodes().len();
        let (mut seen, mut linked) = (vec![false; count], vec![false; count]);
        seen[root] = true;
        let (mut images, mut links) = (vec![root], Vec::new());
        let mut next = 0;
        while let Some(&image) = images.get(next) {
            next += 1;
            let inside = self.plan.walk.inside(image);
            let opened = inside.opened.iter();
            let finals = opened
                .clone()
                .filter(|(_, r#final)| *r#final)
                .map(|(to, _)| *to);
            for link in self.links[image].into_iter().chain(finals) {
                if !std::mem::replace(&mut linked[link], true) {
                    links.push(link);
                }
            }
            for to in inside.linked.iter().chain(opened.map(|(to, _)| to)) {
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

    fn judge(&mut self, root: usize) {
        let plan = self.plan;
        let process = self.process(root);
        // Of each library: the device links over it, and the images that hold its objects.
        let (mut linked, mut held) = (Vec::new(), Vec::new());
        for &link in &process.links {
            // A program's own link is of no use to another process.
            if plan.is_root(link) {
                linked.extend(
                    plan.walk
                        .members(link)
                        .into_iter()
                        .map(|member| (member, link)),
                );
                continue;
            }
            let members = self.members[link].get_or_insert_with(|| plan.walk.members(link));
            linked.extend(members.iter().map(|&member| (member, link)));
        }
        for &image in &process.images {
            let owns = &plan.walk.inside(image).owns;
            held.extend(owns.iter().map(|&member| (member, image)));
        }
        linked.sort_unstable();
        held.sort_unstable();
        let mut faults: BTreeMap<(Fault, Vec<usize>), Vec<usize>> = BTreeMap::new();
        for same in linked.chunk_by(|a, b| a.0 == b.0) {
            let member = same[0].0;
            for fault in self.linked(&of(same, member), &of(&held, member)) {
                faults.entry(fault).or_default().push(member);
            }
        }
        for same in held.chunk_by(|a, b| a.0 == b.0) {
            let member = same[0].0;
            for fault in self.held(&of(same, member), &of(&linked, member)) {
                faults.entry(fault).or_default().push(member);
            }
        }
        if let Some((fault, images)) = self.runtimes(&process) {
            faults.insert((fault, images), Vec::new());
        }
        for ((fault, images), members) in faults {
            let roots = self.found.entry((fault, images, members)).or_default();
            roots.push(root);
        }
    }

    fn open(&self, images: &[usize]) -> Vec<usize> {
        let open = |&&at: &&usize| !self.plan.nodes()[at].is_closed();
        images.iter().filter(open).copied().collect()
    }

    /// What is wrong with the device links over a library, given the images that hold it.
    fn linked(&self, links: &[usize], held: &[usize]) -> Vec<(Fault, Vec<usize>)> {
        let mut faults = Vec::new();
        let open = self.open(links);
        // The symbols of a closed image meet no others: it is a world of its own.
        if open.len() > 1 {
            faults.push((Fault::TwoLinks, open.clone()));
        }
        if links.len() > open.len() && links.len() > 1 {
            faults.push((Fault::Isolated, links.to_vec()));
        }
        let open_holds = !self.open(held).is_empty();
        for &link in links {
            let closed = self.plan.nodes()[link].is_closed();
            if if closed {
                held.binary_search(&link).is_err()
            } else {
                !open_holds
            } {
                faults.push((Fault::Ghost, vec![link]));
            }
        }
        faults
    }

    /// What is wrong with the images that hold a library, given the device links over it.
    fn held(&self, images: &[usize], links: &[usize]) -> Vec<(Fault, Vec<usize>)> {
        let mut faults = Vec::new();
        let (open, open_links) = (self.open(images), self.open(links));
        // If all of them are linked too, it was told as two device links.
        if open.len() > 1
            && !open
                .iter()
                .all(|image| open_links.binary_search(image).is_ok())
        {
            faults.push((Fault::DuplicateObjects, open));
        }
        for &image in images {
            let closed = self.plan.nodes()[image].is_closed();
            if if closed {
                links.binary_search(&image).is_err()
            } else {
                open_links.is_empty()
            } {
                faults.push((Fault::NeverLinked, vec![image]));
            }
        }
        faults
    }

    /// The first two nodes of the process with different runtimes.
    fn runtimes(&self, process: &Process) -> Option<(Fault, Vec<usize>)> {
        let mut first: Option<(usize, Cudart)> = None;
        for &image in &process.images {
            for &at in &self.plan.walk.inside(image).nodes {
                let kind = self.plan.nodes()[at].cudart;
                let Some(kind) = kind.filter(|kind| *kind != Cudart::None) else {
                    continue;
                };
                match first {
                    None => first = Some((at, kind)),
                    Some((one, other)) if other != kind => {
                        return Some((Fault::Runtime(other, kind), vec![one, at]));
                    }
                    Some(_) => {}
                }
            }
        }
        None
    }

    fn tell(self) -> Vec<Diagnostic> {
        let plan = self.plan;
        let found = self.found.into_iter();
        found
            .map(|(finding, roots)| tell(plan, finding, &roots))
            .collect()
    }
}

fn tell(plan: &LinkPlan<'_>, (fault, images, members): Finding, roots: &[usize]) -> Diagnostic {
    let net = &plan.walk.net;
    let quoted = |names: Vec<&str>| {
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        listing(&quoted)
    };
    let (m, holders) = (quoted(net.names(&members)), quoted(net.names(&images)));
    let (root, links) = (quoted(net.names(roots)), {
        let names: Vec<String> = images.iter().map(|&at| plan.link_name(at)).collect();
        quoted(names.iter().map(String::as_str).collect())
    });
    let diagnostic = match fault {
        Fault::TwoLinks => Diagnostic::error(
            &DUPLICATE_DEVICE_LINK,
            format!("in {root}, {links} each device-link {m}; a process registers a library once"),
        )
        .help(format!(
            "close all but one of them, or link the middles and device-link all of it in {root}"
        )),
        Fault::DuplicateObjects => Diagnostic::error(
            &DUPLICATE_DEVICE_OBJECTS,
            format!("in {root}, {m} is inside {holders}"),
        )
        .help(format!("make {m} shared, or close all but one of them")),
        Fault::NeverLinked => Diagnostic::error(
            &MISSING_DEVICE_LINK,
            format!("in {root}, {m} (in {holders}) is never device-linked"),
        )
        .help(
            "open a library's final or a plugin instead, or let the program link the library: \
             then it is in the program's device link",
        ),
        Fault::Ghost => Diagnostic::error(
            &INCOMPLETE_DEVICE_LINK,
            format!("in {root}, {links} device-links {m}, which is not in the process"),
        )
        .help("no kernel of that device link is registered: link the library, or repeat the device link without it"),
        Fault::Runtime(one, other) => Diagnostic::error(
            &MIXED_CUDART,
            format!(
                "in {root}, `{}` uses the {} CUDA runtime, `{}` the {} one",
                net.name(images[0]),
                one.word(),
                net.name(images[1]),
                other.word()
            ),
        )
        .help("choose one kind with `cudart` for all libraries of a process"),
        Fault::Isolated => Diagnostic::warning(
            &UNSHARED_DEVICE_GLOBALS,
            format!("in {root}, {m} is in {links}, each with device globals of its own"),
        ),
    };
    match images.first() {
        Some(&image) => plan.nodes()[image].placed(diagnostic),
        None => diagnostic,
    }
}
