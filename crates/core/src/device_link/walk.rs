//! What is reached from a node, in which order, and what of it lies inside its image.

use super::graph::Net;

/// What lies inside an image, and what it leads to.
#[derive(Default)]
pub(super) struct Inside {
    /// The relocatable code that it holds, its own first.
    pub owns: Vec<usize>,
    /// All nodes that became a part of it, itself first.
    pub nodes: Vec<usize>,
    /// The images that it is linked with.
    pub linked: Vec<usize>,
    /// The images that its code opens; and whether the final is opened.
    pub opened: Vec<(usize, bool)>,
}

/// A depth-first walk, as a list: each node before all that it leads to, and where that leaves a
/// choice, in the order of declaration. Without recursion: graphs may be deep.
fn dependents_first<'a>(
    count: usize,
    start: usize,
    next: impl Fn(usize) -> &'a [usize],
    enters: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let mut seen = vec![false; count];
    let mut order = Vec::new();
    // Followed from the last edge to the first: read backwards, the order of leaving a node is
    // then the wanted one.
    let mut path = vec![(start, next(start).len())];
    seen[start] = true;
    while let Some((at, left)) = path.last_mut() {
        let Some(rest) = left.checked_sub(1) else {
            order.push(*at);
            path.pop();
            continue;
        };
        *left = rest;
        let to = next(*at)[rest];
        if !seen[to] && enters(to) {
            seen[to] = true;
            path.push((to, next(to).len()));
        }
    }
    order.reverse();
    order
}

/// A graph, with what lies inside each of its images.
pub(super) struct Walk<'g> {
    pub net: Net<'g>,
    inside: Vec<Inside>,
}

impl<'g> Walk<'g> {
    pub fn new(net: Net<'g>) -> Self {
        let inside = (0..net.nodes.len()).map(|at| inside(&net, at)).collect();
        Self { net, inside }
    }

    /// Of an image.
    pub fn inside(&self, image: usize) -> &Inside {
        &self.inside[image]
    }

    /// Where the way to device code leads from `at`. What has its own device link hides what lies
    /// inside it, and leads on to what it is linked with.
    fn next(&self, root: usize, at: usize) -> &[usize] {
        if at != root && self.net.nodes[at].is_opaque() {
            &self.inside[at].linked
        } else {
            &self.net.links[at]
        }
    }

    /// Whether the way from `root` to device code goes through `at`.
    fn enters(&self, root: usize, at: usize) -> bool {
        !self.net.nodes[root].is_closed() || absorbs(&self.net, root, at)
    }

    /// All nodes that `root` reaches, itself first, dependents before dependencies.
    pub fn reached(&self, root: usize) -> Vec<usize> {
        let next = |at| self.next(root, at);
        dependents_first(self.net.nodes.len(), root, next, |at| self.enters(root, at))
    }

    /// R: the relocatable code that `root` reaches and that has no device link yet.
    pub fn below(&self, root: usize) -> Vec<usize> {
        let mut reached = self.reached(root);
        let nodes = self.net.nodes;
        reached.retain(|&at| at != root && nodes[at].is_rdc() && !nodes[at].is_opaque());
        reached
    }

    /// S: what a device link for `root` is over.
    pub fn members(&self, root: usize) -> Vec<usize> {
        match &self.net.prelinked[root] {
            Some(named) if !named.is_empty() => return named.clone(),
            Some(_) if self.net.nodes[root].is_image() => return self.inside[root].owns.clone(),
            _ => {}
        }
        let mut members = self.below(root);
        if self.net.nodes[root].is_rdc() {
            members.insert(0, root);
        }
        members
    }

    /// Top: those of `below` that no other one of them reaches.
    pub fn most_derived(&self, root: usize, below: &[usize]) -> Vec<usize> {
        let mut reached = vec![false; self.net.nodes.len()];
        let mut open: Vec<usize> = below.to_vec();
        while let Some(at) = open.pop() {
            for &to in self.next(root, at) {
                if !reached[to] && self.enters(root, to) {
                    reached[to] = true;
                    open.push(to);
                }
            }
        }
        below.iter().copied().filter(|&at| !reached[at]).collect()
    }
}

/// Whether `at` becomes a part of the image that reaches it.
fn absorbs(net: &Net<'_>, image: usize, at: usize) -> bool {
    let node = &net.nodes[at];
    !node.is_image() || (net.nodes[image].is_closed() && node.is_split())
}

fn inside(net: &Net<'_>, image: usize) -> Inside {
    if !net.nodes[image].is_image() {
        return Inside::default();
    }
    let next = |at: usize| net.links[at].as_slice();
    let nodes = dependents_first(net.nodes.len(), image, next, |at| absorbs(net, image, at));
    let mut inside = Inside {
        owns: nodes
            .iter()
            .copied()
            .filter(|&at| net.nodes[at].is_rdc())
            .collect(),
        ..Inside::default()
    };
    let mut seen = vec![false; net.nodes.len()];
    for &at in &nodes {
        for &to in &net.links[at] {
            if !absorbs(net, image, to) && !seen[to] {
                seen[to] = true;
                inside.linked.push(to);
            }
        }
        for open in &net.opens[at] {
            if !inside.opened.contains(open) {
                inside.opened.push(*open);
            }
        }
    }
    inside.nodes = nodes;
    inside
}
