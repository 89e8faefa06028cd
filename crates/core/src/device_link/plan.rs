//! Rules: the files built from a node, and the position of its device link.

use super::graph::{Node, NodeForm, NodeId, NodeKind};
use super::walk::Walk;
use crate::gpu_arch::{Arch, ArchKind, Vendor};
use crate::manifest::Cudart;
use crate::text::join;

/// Role of a node in the plan.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq)]
pub enum LinkRole {
    /// K1: an archive of relocatable objects, never with a device link in it.
    Archive,
    /// K2: a shared library in two parts, `middle` with the objects and `final` with a device link.
    Split,
    /// K3: a shared library without device code of its own, linked with middles. It stays
    /// incomplete: the functions that register its objects are defined by a later link.
    Passes,
    /// K4: part of the images that link it.
    Absorbed,
    /// K5: no relocatable code.
    Plain,
    /// K6: links the final of this library, and has no device link of its own.
    UseFinal(NodeId),
    /// K7: has a device link of its own.
    OwnLink(LinkReason),
    /// Device-linked by its own build.
    Prelinked,
}

impl LinkRole {
    /// Name of the rule that assigns this role.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Archive => "archive-library",
            Self::Split => "split-library",
            Self::Passes => "incomplete-library",
            Self::Absorbed => "part-of-dependents",
            Self::Plain => "no-device-code",
            Self::UseFinal(_) => "uses-final",
            Self::OwnLink(_) => "own-device-link",
            Self::Prelinked => "already-device-linked",
        }
    }
}

/// Reason why no library's final can serve as a node's device link.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq)]
pub enum LinkReason {
    /// The node is closed: its contents are not shared.
    Closed,
    /// The node itself has device code, which no library's final contains.
    DeviceCode,
    /// Several libraries that do not reach each other: no final is over all of them.
    MostDerived(Vec<NodeId>),
    /// Code from archives, which is part of the image itself.
    StaticBelow,
}

/// A file that is built of a library's device code.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Artifact {
    /// The relocatable objects.
    Objects,
    /// The archive of the objects, for device links.
    Static,
    /// The shared library of the objects.
    Middle,
    /// The shared library with the device link, which needs the middle.
    Final,
}

/// An item of a host link, in the order of the command line.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LinkItem {
    /// The node's own objects.
    Objects,
    /// The object that the node's device link makes.
    LinkObject,
    /// The final of a library, between `--push-state,--no-as-needed` and `--pop-state`: no code
    /// calls it, and a linker that leaves it out leaves the kernels unregistered.
    Final(NodeId),
    /// The archive of a library. Follows a link object, which refers to each of its members.
    Archive(NodeId),
    /// The archive between `--whole-archive` and `--no-whole-archive`: if no link object refers to
    /// the members.
    WholeArchive(NodeId),
    /// The middle of a library.
    Middle(NodeId),
    /// The runtime.
    Cudart(Cudart),
}

/// Plan of a node.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct NodePlan {
    /// The node.
    pub node: NodeId,
    /// The rule that applies.
    pub role: LinkRole,
    /// Files built from its device code.
    pub artifacts: Vec<Artifact>,
    /// The libraries (for a program with device code: also itself) whose archives its device link
    /// is over, in order, each once. Empty: no device link. The link is stale when any of them
    /// changed.
    pub inputs: Vec<NodeId>,
    /// The inputs whose objects are in other images, which call the device link: rustc must export
    /// its functions for them from a cdylib.
    pub exports: Vec<NodeId>,
    /// Architectures that the device link makes machine code for, ascending. Empty: no library names one.
    pub archs: Vec<Arch>,
    /// Whether the device link needs `-dlto`: an input has code that is finished there.
    pub lto: bool,
    /// Oldest architecture whose PTX all CUDA code has. For a GPU without machine code that is not older, the
    /// driver repeats the device link from the PTX of all objects.
    pub ptx: Option<Arch>,
    /// Host link of its image; for a library in two parts, of the middle.
    pub line: Vec<LinkItem>,
    /// Host link of the final of a library in two parts.
    pub final_line: Vec<LinkItem>,
}

/// A plan. Each node's part is computed on request: the inputs of all device links together grow
/// with the square of the graph.
pub struct LinkPlan<'g> {
    pub(super) walk: Walk<'g>,
}

impl<'g> LinkPlan<'g> {
    /// The nodes of the graph; empty if the graph was invalid.
    pub fn nodes(&self) -> &'g [Node] {
        self.walk.graph.nodes
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.walk
            .graph
            .ids()
            .find(|&id| self.walk.graph.name(id) == name)
    }

    /// A node of the graph.
    pub fn node(&self, id: NodeId) -> &'g Node {
        self.walk.graph.node(id)
    }

    /// The plan of each node, in the graph's order.
    pub fn node_plans(&self) -> impl Iterator<Item = NodePlan> {
        self.walk.graph.ids().map(|id| self.node_plan(id))
    }

    /// The rule that applies to a node.
    pub fn role(&self, id: NodeId) -> LinkRole {
        let node = self.node(id);
        if node.is_image() && node.prelinked.is_some() {
            return LinkRole::Prelinked;
        }
        if node.is_split() {
            return LinkRole::Split;
        }
        if !node.is_image() {
            return if node.is_rdc() {
                LinkRole::Archive
            } else {
                LinkRole::Absorbed
            };
        }
        let below = self.walk.unlinked_below(id);
        if !node.is_terminal() {
            return if below.is_empty() {
                LinkRole::Plain
            } else {
                LinkRole::Passes
            };
        }
        if below.is_empty() && !node.is_rdc() {
            return LinkRole::Plain;
        }
        let reason = if self.walk.is_closed(id) {
            LinkReason::Closed
        } else if node.is_rdc() {
            LinkReason::DeviceCode
        } else {
            match self.walk.most_derived(id, &below).as_slice() {
                [top] if below.iter().all(|&id| self.node(id).is_split()) => {
                    return LinkRole::UseFinal(*top);
                }
                [_] => LinkReason::StaticBelow,
                several => LinkReason::MostDerived(several.to_vec()),
            }
        };
        LinkRole::OwnLink(reason)
    }

    /// Inputs of the node's device link, or of its final's.
    pub fn inputs(&self, id: NodeId) -> Vec<NodeId> {
        match self.role(id) {
            LinkRole::Split | LinkRole::OwnLink(_) | LinkRole::Prelinked => self.walk.members(id),
            _ => Vec::new(),
        }
    }

    /// Everything planned for a node.
    pub fn node_plan(&self, id: NodeId) -> NodePlan {
        use Artifact::{Final, Middle, Objects, Static};
        let node = self.node(id);
        let role = self.role(id);
        let (inputs, artifacts) = match role {
            LinkRole::Archive => (Vec::new(), vec![Objects, Static]),
            LinkRole::Split => (self.walk.members(id), vec![Objects, Static, Middle, Final]),
            LinkRole::OwnLink(_) if node.is_rdc() => (self.walk.members(id), vec![Objects]),
            LinkRole::OwnLink(_) | LinkRole::Prelinked => (self.walk.members(id), Vec::new()),
            _ => (Vec::new(), Vec::new()),
        };
        let (mut line, mut final_line) = (Vec::new(), Vec::new());
        if node.is_image() && role != LinkRole::Prelinked && role != LinkRole::Plain {
            (line, final_line) = self.lines(id, &role);
        }
        let has_link = role != LinkRole::Prelinked && !inputs.is_empty();
        let archs = if has_link {
            self.requested_archs(id, &inputs)
        } else {
            Vec::new()
        };
        NodePlan {
            node: id,
            lto: has_link && self.has_lto(&inputs),
            // Without machine code there is no device link to repeat.
            ptx: (!archs.is_empty())
                .then(|| self.common_ptx(&inputs))
                .flatten(),
            archs,
            exports: match role {
                LinkRole::OwnLink(_) if !node.closed => self.walk.linked_elsewhere(id),
                _ => Vec::new(),
            },
            role,
            artifacts,
            inputs,
            line,
            final_line,
        }
    }

    fn has_lto(&self, inputs: &[NodeId]) -> bool {
        inputs
            .iter()
            .flat_map(|&id| &self.node(id).archs)
            .any(|arch| arch.kind() == ArchKind::Lto)
    }

    /// Oldest architecture whose PTX each library with CUDA code has. `None`: one has no PTX.
    fn common_ptx(&self, inputs: &[NodeId]) -> Option<Arch> {
        let mut oldest = Vec::new();
        for archs in self.cuda_archs(inputs).map(|(_, archs)| archs) {
            oldest.push(archs.into_iter().filter(|arch| arch.is_portable()).min()?);
        }
        oldest.into_iter().max()
    }

    /// Libraries with CUDA code, and its architectures. Those of unknown ones are left out.
    pub(super) fn cuda_archs(
        &self,
        inputs: &[NodeId],
    ) -> impl Iterator<Item = (NodeId, Vec<Arch>)> {
        inputs.iter().filter_map(|&id| {
            let archs = Vendor::Nvidia.select(self.node(id).archs.iter().copied());
            (!archs.is_empty()).then_some((id, archs))
        })
    }

    /// Architectures that a device link makes machine code for: for each vendor those that the program requests,
    /// else all that its inputs contain. PTX requests none: nvlink links PTX only for a given `sm_`.
    pub(super) fn requested_archs(&self, id: NodeId, inputs: &[NodeId]) -> Vec<Arch> {
        let node = self.node(id);
        let libraries = inputs.iter().map(|&input| &self.node(input).archs);
        let contained: Vec<Arch> = libraries.clone().flatten().copied().collect();
        let requested: Vec<Arch> = match node.kind {
            NodeKind::Rdc => Vec::new(),
            _ => node.archs.clone(),
        };
        let mut archs = contained.clone();
        archs.retain(|arch| !arch.vendor().is_in(requested.iter().copied()));
        // Of a vendor without any code there is no device link. Unknown architectures are those of an archive of CUDA.
        let has_unknown = libraries.clone().any(Vec::is_empty);
        archs.extend(requested.into_iter().filter(|arch| {
            let vendor = arch.vendor();
            has_unknown && vendor == Vendor::Nvidia || vendor.is_in(contained.iter().copied())
        }));
        linked_archs(archs.into_iter())
    }

    /// The host link of an image, and that of its final.
    fn lines(&self, id: NodeId, role: &LinkRole) -> (Vec<LinkItem>, Vec<LinkItem>) {
        let node = self.node(id);
        let has_own_link = matches!(role, LinkRole::OwnLink(_));
        let owns = &self.walk.image_contents(id).owns;
        let middles: Vec<LinkItem> = self
            .walk
            .unlinked_below(id)
            .into_iter()
            .filter(|&library| self.node(library).is_split() && !node.closed)
            .map(LinkItem::Middle)
            .collect();
        let cudart = self.cudart(id).map(LinkItem::Cudart);
        let mut line = Vec::new();
        line.extend(node.is_rdc().then_some(LinkItem::Objects));
        line.extend(has_own_link.then_some(LinkItem::LinkObject));
        if let LinkRole::UseFinal(top) = role {
            line.push(LinkItem::Final(*top));
        }
        let archive = if has_own_link {
            LinkItem::Archive
        } else {
            LinkItem::WholeArchive
        };
        line.extend(
            owns.iter()
                .filter(|&&library| library != id)
                .map(|&library| archive(library)),
        );
        line.extend(&middles);
        line.extend(cudart);
        let mut final_line = Vec::new();
        if *role == LinkRole::Split {
            final_line.extend([LinkItem::LinkObject, LinkItem::Middle(id)]);
            final_line.extend(middles);
            final_line.extend(cudart);
        }
        (line, final_line)
    }

    /// Runtime that an image is linked with: its own setting, else that of its libraries.
    fn cudart(&self, id: NodeId) -> Option<Cudart> {
        self.node(id).cudart.or_else(|| {
            self.walk
                .members(id)
                .into_iter()
                .find_map(|member| self.node(member).cudart)
        })
    }

    /// Name of the image with a node's device link: `A_final`, or `exe`.
    pub(super) fn link_name(&self, id: NodeId) -> String {
        let node = self.node(id);
        let suffix = if node.is_split() { "_final" } else { "" };
        format!("{}{suffix}", node.name)
    }

    pub(super) fn link_names(&self, ids: &[NodeId]) -> Vec<String> {
        ids.iter().map(|&id| self.link_name(id)).collect()
    }

    /// Whether a process can start with the node.
    pub(super) fn is_root(&self, id: NodeId) -> bool {
        self.node(id).form == NodeForm::Bin
    }
}

/// Architectures that a device link of this code makes machine code for, ascending.
pub(super) fn linked_archs(archs: impl Iterator<Item = Arch>) -> Vec<Arch> {
    let mut linked: Vec<Arch> = archs
        .filter(|arch| arch.kind() != ArchKind::Virtual)
        .map(|arch| arch.as_kind(ArchKind::Real))
        .collect();
    linked.sort_unstable();
    linked.dedup();
    linked
}

/// Architectures for messages: `sm_80, sm_90`.
pub(super) fn arch_names(archs: &[Arch]) -> String {
    join(&archs.iter().map(Arch::to_string).collect::<Vec<_>>(), ", ")
}
