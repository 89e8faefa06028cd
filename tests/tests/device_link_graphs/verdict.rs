//! Registrations that a plan promises, and those that a recording runtime has seen.

use std::collections::BTreeSet;

use gpustub_core::device_link::{LinkItem, LinkPlan, LinkRole, NodeId, NodePlan};
use gpustub_tests::command::Ran;

use crate::link::file;

/// Registrations of a process.
#[derive(Debug, PartialEq, Eq)]
pub struct Registered {
    /// Files whose device link was registered.
    links: Vec<String>,
    /// Files with a kernel each, `<file> <kernel>`.
    kernels: Vec<String>,
    /// Whether every launch returned 0.
    launched: bool,
}

impl Registered {
    /// Registrations that the plans of all nodes promise for a process with these.
    pub fn planned(plan: &LinkPlan<'_>, planned: &[NodePlan], process: NodeId) -> Self {
        let opens = plan.node(process).opens.iter();
        let opened = opens.filter_map(|open| plan.find(&open.to));
        let (mut links, mut kernels) = (BTreeSet::new(), Vec::new());
        let mut loaded = BTreeSet::new();
        for root in [process].into_iter().chain(opened) {
            let (mut pending, mut objects, mut links_of_root) =
                (vec![root], Vec::new(), Vec::new());
            while let Some(id) = pending.pop() {
                let Some(image) = planned
                    .iter()
                    .find(|image| image.node == id)
                    .filter(|_| loaded.insert(id))
                else {
                    continue;
                };
                match image.role {
                    LinkRole::UseFinal(top) => drop(links.insert(file(plan, top, true))),
                    LinkRole::OwnLink(_) => links_of_root.push(image),
                    _ => {}
                }
                for item in &image.line {
                    let library = match *item {
                        LinkItem::Objects => id,
                        LinkItem::Archive(library) | LinkItem::WholeArchive(library) => library,
                        LinkItem::Middle(middle) => {
                            pending.push(middle);
                            continue;
                        }
                        _ => continue,
                    };
                    objects.push(library);
                    kernels.push(format!(
                        "{} {}_kernel",
                        file(plan, id, false),
                        plan.node(library).name
                    ));
                }
            }
            // Objects call when they are loaded, so a link over objects that were loaded before registers nothing.
            for image in links_of_root {
                if image.inputs.iter().any(|input| objects.contains(input)) {
                    links.insert(file(plan, image.node, false));
                }
            }
        }
        kernels.sort();
        Self {
            links: links.into_iter().collect(),
            kernels,
            launched: true,
        }
    }

    /// Whether one copy of a library's objects has two device links. HIP registers both, CUDA one of them.
    pub fn has_duplicates(&self, plan: &LinkPlan<'_>, planned: &[NodePlan]) -> bool {
        let links = planned.iter().filter(|image| {
            let is_final = image.role == LinkRole::Split;
            self.links.contains(&file(plan, image.node, is_final))
        });
        let links = Vec::from_iter(links);
        planned.iter().any(|library| {
            let kernel = format!(" {}_kernel", plan.node(library.node).name);
            let copies = self.kernels.iter().filter(|name| name.ends_with(&kernel));
            let links = links
                .iter()
                .filter(|link| link.inputs.contains(&library.node));
            links.count() > copies.count()
        })
    }

    /// Registrations of a run; `None` if the program could not start, or a library not be opened.
    pub fn recorded(ran: &Ran) -> Option<Self> {
        let (mut links, mut kernels) = (Vec::new(), Vec::new());
        for line in ran.stderr.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["record", "open", _, address, ..] => links.push(image(address).to_owned()),
                ["record", "function", _, address, mangled, ..] => {
                    // The mangled name is `_Z8a_kernelPi`.
                    let name = mangled.trim_start_matches("_Z").trim_end_matches("Pi");
                    let name = name.trim_start_matches(|c: char| c.is_ascii_digit());
                    kernels.push(format!("{} {name}", image(address)));
                }
                _ => {}
            }
        }
        links.sort();
        kernels.sort();
        let launched = ran.stdout.lines().all(|line| line.ends_with(" 0"));
        let registered = Self {
            links,
            kernels,
            launched,
        };
        ran.status.success().then_some(registered)
    }
}

/// Image of an address, `IMAGE+OFFSET`.
fn image(address: &str) -> &str {
    address.split('+').next().unwrap_or_default()
}
