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
        let (mut links, mut files) = (BTreeSet::new(), BTreeSet::new());
        let opened = plan.node(process).opens.iter();
        let mut open: Vec<NodeId> = opened.filter_map(|open| plan.find(&open.to)).collect();
        open.push(process);
        let mut seen = BTreeSet::new();
        while let Some(at) = open.pop() {
            let Some(one) = planned
                .iter()
                .find(|one| one.node == at)
                .filter(|_| seen.insert(at))
            else {
                continue;
            };
            match one.role {
                LinkRole::UseFinal(top) => drop(links.insert(file(plan, top, true))),
                LinkRole::OwnLink(_) => drop(links.insert(file(plan, at, false))),
                _ => {}
            }
            for item in &one.line {
                let held = match *item {
                    LinkItem::Objects => at,
                    LinkItem::Archive(held) | LinkItem::WholeArchive(held) => held,
                    LinkItem::Middle(middle) => {
                        open.push(middle);
                        continue;
                    }
                    _ => continue,
                };
                files.insert(format!(
                    "{} {}_kernel",
                    file(plan, at, false),
                    plan.node(held).name
                ));
            }
        }
        Self {
            links: links.into_iter().collect(),
            kernels: files.into_iter().collect(),
            launched: true,
        }
    }

    /// Registrations of a run; `None` if the program could not start, or a library not be opened.
    pub fn recorded(ran: &Ran) -> Option<Self> {
        let lines = |start: &'static str| {
            let lines = ran
                .stderr
                .lines()
                .filter_map(move |line| line.strip_prefix(start));
            lines.map(|line| line.split(' ').collect::<Vec<&str>>())
        };
        let file = |place: &str| place.split('+').next().unwrap_or_default().to_owned();
        let mut links: Vec<String> = lines("record open ").map(|words| file(words[1])).collect();
        // The mangled name is `_Z8a_kernelPi`.
        let kernel = |words: Vec<&str>| {
            let name = words[2].trim_start_matches("_Z").trim_end_matches("Pi");
            format!(
                "{} {}",
                file(words[1]),
                name.trim_start_matches(|c: char| c.is_ascii_digit())
            )
        };
        let mut kernels: Vec<String> = lines("record function ").map(kernel).collect();
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
