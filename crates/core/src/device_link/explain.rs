//! Explanation of a node's plan: the rule and its reasons.

use std::fmt::Write;

use super::graph::{NodeId, NodeKind};
use super::plan::{LinkItem, LinkPlan, LinkReason, LinkRole};
use crate::ids::IndexVec;

impl LinkPlan<'_> {
    /// Describes one node in a few lines: the rule, its reason, the inputs of its device link with
    /// the path to each, and its host link.
    pub fn explain(&self, id: NodeId) -> String {
        let node = self.node(id);
        let planned = self.node_plan(id);
        let code = match node.kind {
            NodeKind::Rdc => "with relocatable device code",
            NodeKind::Plain => "without relocatable device code of its own",
            NodeKind::Interface => "headers alone",
        };
        let closed = if self.walk.is_closed(id) {
            ", closed"
        } else {
            ""
        };
        let mut text = format!(
            "{}: {} ({}{closed}, {code})\n",
            node.name,
            self.summary(&planned),
            node.form.word()
        );
        let _ = writeln!(
            text,
            "{}: {}",
            planned.role.rule(),
            self.reason(id, &planned.role)
        );
        let below = self.walk.unlinked_below(id);
        if !below.is_empty() {
            text.push_str("reaches, dependents before dependencies:\n");
            let predecessors = self.predecessors(id);
            for member in below {
                let (name, form) = (self.walk.graph.name(member), self.node(member).form.word());
                let _ = write!(text, "  {name} ({form})");
                if let Some(from) = predecessors[member].filter(|&from| from != id) {
                    let _ = write!(text, ", through {}", self.walk.graph.name(from));
                }
                text.push('\n');
            }
        }
        for (heading, line) in [("host link", &planned.line), ("final", &planned.final_line)] {
            if line.is_empty() {
                continue;
            }
            let _ = writeln!(text, "{heading}, in this order:");
            for item in line {
                let _ = writeln!(text, "  {}", self.describe_item(id, item));
            }
        }
        text
    }

    fn reason(&self, id: NodeId, role: &LinkRole) -> String {
        match role {
            LinkRole::Archive => {
                "an archive holds objects only; nvlink skips one with a device link in \
                              it, and the program's own link is over its objects"
                    .to_owned()
            }
            LinkRole::Split => {
                "the library with the objects is left without a device link, so that a \
                            program may link it with others; its final is for programs that need \
                            no more than it"
                    .to_owned()
            }
            LinkRole::Passes => {
                "shared and not closed: a device link here would keep its libraries \
                             from being linked with others"
                    .to_owned()
            }
            LinkRole::Absorbed => "becomes a part of the image that links it".to_owned(),
            LinkRole::Plain => {
                "reaches no relocatable code that is not yet device-linked".to_owned()
            }
            LinkRole::UseFinal(top) => format!(
                "all that it reaches is shared, and {} reaches all the rest: the final of {} has \
                 the whole device link",
                self.walk.graph.name(*top),
                self.walk.graph.name(*top)
            ),
            LinkRole::OwnLink(LinkReason::Closed) => {
                "closed: the device link covers only the contents of this image, \
                                           and joins no other device link"
                    .to_owned()
            }
            LinkRole::OwnLink(LinkReason::DeviceCode) => format!(
                "no library's final is over the code of {} itself",
                self.walk.graph.name(id)
            ),
            LinkRole::OwnLink(reason @ LinkReason::MostDerived(_)) => format!(
                "{}: they do not reach each other, so no final is over all of them, and two finals \
                 would register what they share twice",
                self.short_reason(reason)
            ),
            LinkRole::OwnLink(LinkReason::StaticBelow) => {
                "an archive that it reaches has no final; its \
                                                objects are linked where they lie"
                    .to_owned()
            }
            LinkRole::Prelinked => {
                "already device-linked when built; its contents are not linked again".to_owned()
            }
        }
    }

    /// For each node that `root` reaches, the node that it is first reached from.
    fn predecessors(&self, root: NodeId) -> IndexVec<NodeId, Option<NodeId>> {
        let mut predecessors = self.walk.graph.table(None);
        for from in self.walk.reached(root) {
            for &to in &self.walk.graph.links[from] {
                predecessors[to] = predecessors[to].or(Some(from));
            }
        }
        predecessors
    }

    /// A line about an item of the host link of a node.
    fn describe_item(&self, id: NodeId, item: &LinkItem) -> String {
        let graph = &self.walk.graph;
        match item {
            LinkItem::Objects => "own objects".to_owned(),
            LinkItem::LinkObject => {
                format!(
                    "the device link over {}",
                    graph.names(&self.inputs(id)).join(" ")
                )
            }
            LinkItem::Final(library) => format!(
                "{}_final, also if nothing calls it (--no-as-needed)",
                graph.name(*library)
            ),
            LinkItem::Archive(library) => format!("{}.a", graph.name(*library)),
            LinkItem::WholeArchive(library) => {
                format!("{}.a, all members (--whole-archive)", graph.name(*library))
            }
            LinkItem::Middle(library) => format!("{}_middle", graph.name(*library)),
            LinkItem::Cudart(cudart) => format!("the CUDA runtime: {}", cudart.word()),
        }
    }
}
