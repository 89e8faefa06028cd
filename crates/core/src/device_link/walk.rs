//! Nodes reached from a node, in order, and those of them inside its image.

use std::collections::BTreeSet;

use super::graph::{NodeForm, NodeId, ResolvedGraph, ResolvedOpen};
use crate::ids::IndexVec;

/// Contents of an image, and the images that it refers to.
#[derive(Default)]
pub(super) struct ImageContents {
    /// Relocatable code in the image, its own first.
    pub owns: Vec<NodeId>,
    /// All nodes that became a part of it, the image itself first.
    pub nodes: Vec<NodeId>,
    /// Images that it is linked with.
    pub linked: Vec<NodeId>,
    /// Images that its code opens.
    pub opened: Vec<ResolvedOpen>,
}

/// Depth-first walk as a list: each node before all its successors, and otherwise in the order of
/// declaration. Without recursion: graphs may be deep.
fn dependents_first<'a>(
    graph: &ResolvedGraph<'_>,
    start: NodeId,
    next: impl Fn(NodeId) -> &'a [NodeId],
    enters: impl Fn(NodeId) -> bool,
) -> Vec<NodeId> {
    let mut visited = graph.table(false);
    let mut order = Vec::new();
    // Followed from the last edge to the first: read backwards, the order of leaving a node is then
    // the required one.
    let mut path = vec![(start, next(start).len())];
    visited[start] = true;
    while let Some((id, unfollowed)) = path.last_mut() {
        let Some(edge) = unfollowed.checked_sub(1) else {
            order.push(*id);
            path.pop();
            continue;
        };
        *unfollowed = edge;
        let to = next(*id)[edge];
        if !visited[to] && enters(to) {
            visited[to] = true;
            path.push((to, next(to).len()));
        }
    }
    order.reverse();
    order
}

/// A graph with the contents of each of its images.
pub(super) struct Walk<'g> {
    pub graph: ResolvedGraph<'g>,
    contents: IndexVec<NodeId, ImageContents>,
    closed: IndexVec<NodeId, bool>,
}

impl<'g> Walk<'g> {
    pub fn new(graph: ResolvedGraph<'g>) -> Self {
        let contents = graph.ids().map(|id| find_contents(&graph, id)).collect();
        let closed = graph.nodes.iter().map(|node| node.closed).collect();
        let mut walk = Self {
            graph,
            contents,
            closed,
        };
        for id in walk.graph.ids() {
            let is_cdylib = walk.graph.node(id).form == NodeForm::Cdylib;
            walk.closed[id] |= is_cdylib && walk.linked_elsewhere(id).is_empty();
        }
        walk
    }

    /// Whether no other image can call the device link of the image.
    pub fn is_closed(&self, id: NodeId) -> bool {
        self.closed[id]
    }

    /// Inputs of a node's device link whose objects are in other images.
    pub fn linked_elsewhere(&self, id: NodeId) -> Vec<NodeId> {
        let owned: BTreeSet<NodeId> = self.contents[id].owns.iter().copied().collect();
        let mut members = self.members(id);
        members.retain(|member| !owned.contains(member));
        members
    }

    /// Contents of an image.
    pub fn image_contents(&self, image: NodeId) -> &ImageContents {
        &self.contents[image]
    }

    /// Next nodes on the way from `id` to device code. A node with its own device link hides its
    /// contents, and leads on to the nodes that it is linked with, unless its link is over these as well.
    fn next(&self, root: NodeId, id: NodeId) -> &[NodeId] {
        let node = self.graph.node(id);
        if id == root || !node.is_opaque() {
            &self.graph.links[id]
        } else if node.form == NodeForm::Cdylib && !node.closed {
            &[]
        } else {
            &self.contents[id].linked
        }
    }

    /// Whether the path from `root` to device code continues through `id`.
    fn enters(&self, root: NodeId, id: NodeId) -> bool {
        !self.graph.node(root).closed || absorbs(&self.graph, root, id)
    }

    /// All nodes that `root` reaches, itself first, dependents before dependencies.
    pub fn reached(&self, root: NodeId) -> Vec<NodeId> {
        dependents_first(
            &self.graph,
            root,
            |id| self.next(root, id),
            |id| self.enters(root, id),
        )
    }

    /// R: the relocatable code that `root` reaches and that has no device link yet.
    pub fn unlinked_below(&self, root: NodeId) -> Vec<NodeId> {
        let mut reached = self.reached(root);
        reached.retain(|&id| {
            let node = self.graph.node(id);
            id != root && node.is_rdc() && !node.is_opaque()
        });
        reached
    }

    /// S: inputs of a device link for `root`.
    pub fn members(&self, root: NodeId) -> Vec<NodeId> {
        match &self.graph.prelinked[root] {
            Some(inputs) if !inputs.is_empty() => return inputs.clone(),
            Some(_) if self.graph.node(root).is_image() => return self.contents[root].owns.clone(),
            _ => {}
        }
        let mut members = self.unlinked_below(root);
        if self.graph.node(root).is_rdc() {
            members.insert(0, root);
        }
        members
    }

    /// Top: the nodes of `below` that no other node of `below` reaches.
    pub fn most_derived(&self, root: NodeId, below: &[NodeId]) -> Vec<NodeId> {
        let mut reached = self.graph.table(false);
        let mut pending: Vec<NodeId> = below.to_vec();
        while let Some(id) = pending.pop() {
            for &to in self.next(root, id) {
                if !reached[to] && self.enters(root, to) {
                    reached[to] = true;
                    pending.push(to);
                }
            }
        }
        below.iter().copied().filter(|&id| !reached[id]).collect()
    }
}

/// Whether `id` becomes a part of the image that reaches it.
fn absorbs(graph: &ResolvedGraph<'_>, image: NodeId, id: NodeId) -> bool {
    let node = graph.node(id);
    !node.is_image() || (graph.node(image).closed && node.is_split())
}

fn find_contents(graph: &ResolvedGraph<'_>, image: NodeId) -> ImageContents {
    if !graph.node(image).is_image() {
        return ImageContents::default();
    }
    let nodes = dependents_first(
        graph,
        image,
        |id| graph.links[id].as_slice(),
        |id| absorbs(graph, image, id),
    );
    let mut contents = ImageContents {
        owns: nodes
            .iter()
            .copied()
            .filter(|&id| graph.node(id).is_rdc())
            .collect(),
        ..ImageContents::default()
    };
    let mut is_linked = graph.table(false);
    for &id in &nodes {
        for &to in &graph.links[id] {
            if !absorbs(graph, image, to) && !is_linked[to] {
                is_linked[to] = true;
                contents.linked.push(to);
            }
        }
        for open in &graph.opens[id] {
            if !contents.opened.contains(open) {
                contents.opened.push(*open);
            }
        }
    }
    contents.nodes = nodes;
    contents
}
