//! Human-readable forms of a plan: text, and a drawing for Graphviz.

use std::fmt::Write;

use super::graph::{NodeForm, NodeId, NodeKind};
use super::plan::{Artifact, LinkItem, LinkPlan, LinkReason, LinkRole, NodePlan};
use crate::ids::Id;

impl LinkPlan<'_> {
    /// The whole plan, a line a node.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for planned in self.node_plans() {
            let name = self.walk.graph.name(planned.node);
            let _ = writeln!(text, "{name}: {}", self.summary(&planned));
        }
        text
    }

    /// One-line plan of a node.
    pub fn summary(&self, planned: &NodePlan) -> String {
        let inputs = self.names(&planned.inputs);
        let mut text = match &planned.role {
            LinkRole::Archive | LinkRole::Split => {
                let artifacts: Vec<&str> = planned
                    .artifacts
                    .iter()
                    .map(|artifact| artifact.word())
                    .collect();
                let mut text = format!("artifacts {}", artifacts.join("+"));
                if planned.role == LinkRole::Split {
                    let _ = write!(text, "; final device link: {inputs}");
                }
                text
            }
            LinkRole::Passes => {
                let mut text = "shared, undefined register symbols allowed".to_owned();
                let middles = self.middles_below(planned.node);
                if !middles.is_empty() {
                    let _ = write!(text, ", links middles {}", self.names(&middles));
                }
                text
            }
            LinkRole::Absorbed => match self.names(&self.walk.unlinked_below(planned.node)) {
                below if below.is_empty() => "passed on to dependents".to_owned(),
                below => format!("passed on to dependents: {below}"),
            },
            LinkRole::Plain => "no RDC".to_owned(),
            LinkRole::UseFinal(top) => {
                let middles = self.middles_below(planned.node);
                format!(
                    "uses {}_final, then middles {}",
                    self.walk.graph.name(*top),
                    self.names(&middles)
                )
            }
            LinkRole::OwnLink(reason) => {
                let reason = self.short_reason(reason);
                let mut files = self.file_names(&planned.line);
                if files.is_empty() {
                    files.push_str("nothing");
                }
                format!("device link: {inputs} ({reason}); links {files}")
            }
            LinkRole::Prelinked => format!("already device-linked: {inputs}"),
        };
        if self.node(planned.node).form == NodeForm::Cdylib && !planned.exports.is_empty() {
            let _ = write!(
                text,
                "; exports the functions for {}",
                self.names(&planned.exports)
            );
        }
        let whole_archives: Vec<LinkItem> = planned
            .line
            .iter()
            .copied()
            .filter(|item| matches!(item, LinkItem::WholeArchive(_)))
            .collect();
        if !whole_archives.is_empty() {
            let _ = write!(text, "; holds all of {}", self.file_names(&whole_archives));
        }
        if !planned.archs.is_empty() {
            let archs: Vec<String> = planned.archs.iter().map(ToString::to_string).collect();
            let _ = write!(text, "; for {}", archs.join(" "));
        }
        if planned.lto {
            text.push_str("; -dlto");
        }
        if let Some(ptx) = planned.ptx {
            let _ = write!(text, "; later GPUs by {ptx}");
        }
        text
    }

    fn names(&self, ids: &[NodeId]) -> String {
        self.walk.graph.names(ids).join(" ")
    }

    /// The libraries in two parts that a node reaches.
    fn middles_below(&self, id: NodeId) -> Vec<NodeId> {
        let mut middles = self.walk.unlinked_below(id);
        middles.retain(|&library| self.node(library).is_split());
        middles
    }

    /// Short reason why a node has a device link of its own.
    pub(super) fn short_reason(&self, reason: &LinkReason) -> String {
        match reason {
            LinkReason::Closed => "closed image".to_owned(),
            LinkReason::DeviceCode => "has RDC code".to_owned(),
            LinkReason::StaticBelow => "static RDC below".to_owned(),
            LinkReason::MostDerived(libraries) => {
                format!(
                    "{} most derived: {}",
                    libraries.len(),
                    self.names(libraries)
                )
            }
        }
    }

    /// The libraries of a host link, as file names.
    fn file_names(&self, line: &[LinkItem]) -> String {
        let mut files = Vec::new();
        for item in line {
            let (library, suffix) = match *item {
                LinkItem::Archive(library) | LinkItem::WholeArchive(library) => (library, ".a"),
                LinkItem::Middle(library) => (library, "_middle"),
                LinkItem::Final(library) => (library, "_final"),
                LinkItem::Objects | LinkItem::LinkObject | LinkItem::Cudart(_) => continue,
            };
            files.push(format!("{}{suffix}", self.walk.graph.name(library)));
        }
        files.join(" ")
    }

    /// The graph in Graphviz' language: a node with a device link of its own is drawn bold, and a
    /// bold arrow leads to the final that a node uses, a dotted one to a library opened at run
    /// time.
    pub fn to_dot(&self) -> String {
        let mut text = String::from("digraph device_link {\n  node [fontname=\"sans-serif\"];\n");
        for planned in self.node_plans() {
            let (index, node) = (planned.node.index(), self.node(planned.node));
            let shape = match node.form {
                NodeForm::Static | NodeForm::Object if node.kind == NodeKind::Interface => {
                    "plaintext"
                }
                NodeForm::Static | NodeForm::Object => "box",
                NodeForm::Shared => "ellipse",
                NodeForm::Bin => "doubleoctagon",
                NodeForm::Plugin | NodeForm::Cdylib => "octagon",
            };
            let mut label = format!("{}\n{}", node.name, planned.role.rule());
            if !planned.inputs.is_empty() {
                let _ = write!(label, "\ndevice link: {}", self.names(&planned.inputs));
            }
            let has_link = matches!(
                planned.role,
                LinkRole::OwnLink(_) | LinkRole::Split | LinkRole::Prelinked
            );
            let mut style: Vec<&str> = Vec::new();
            style.extend(has_link.then_some("bold"));
            style.extend((node.kind == NodeKind::Rdc).then_some("filled"));
            let label = quoted(&label);
            let style = style.join(",");
            let _ = writeln!(
                text,
                "  n{index} [label={label} shape={shape} style=\"{style}\" fillcolor=\"#d9ead3\"];"
            );
            for (link, to) in node.links.iter().zip(&self.walk.graph.links[planned.node]) {
                let dashed = if link.private { " [style=dashed]" } else { "" };
                let _ = writeln!(text, "  n{index} -> n{}{dashed};", to.index());
            }
            for open in &self.walk.graph.opens[planned.node] {
                let to = open.to.index();
                let label = if open.r#final { "opens final" } else { "opens" };
                let _ = writeln!(
                    text,
                    "  n{index} -> n{to} [style=dotted label=\"{label}\"];"
                );
            }
            if let LinkRole::UseFinal(top) = planned.role {
                let top = top.index();
                let _ = writeln!(text, "  n{index} -> n{top} [style=bold label=\"final\"];");
            }
        }
        text.push_str("}\n");
        text
    }
}

impl Artifact {
    /// Keyword in the text of a plan.
    pub fn word(self) -> &'static str {
        match self {
            Self::Objects => "objects",
            Self::Static => "static",
            Self::Middle => "middle",
            Self::Final => "final",
        }
    }
}

/// A quoted string of Graphviz' language.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_a_string_of_the_drawing() {
        assert_eq!(quoted("a\"b\\n\nc"), r#""a\"b\\n\nc""#);
    }
}
