//! One copy of each member.

use std::collections::HashMap;

use gpustub_archive::hash;

use super::layers::Flat;
use super::names::{AsItIs, Names};
use super::{Input, Layer};

/// Members by their contents.
#[derive(Debug)]
pub struct Unique<'r, 'd> {
    /// Each once, as it comes first.
    pub members: Vec<&'r Input<'d>>,
    /// Of each, the hash of its contents.
    pub hashes: Vec<u64>,
    /// Of each, the numbers of its symbols among the names, in its own order.
    pub symbols: Vec<Vec<usize>>,
    /// The names of all symbols.
    pub names: Names<'r>,
    /// Of each layer, the indices of its members.
    pub layers: Vec<Vec<usize>>,
}

impl<'r, 'd> Unique<'r, 'd> {
    /// Finds members with the same contents. The name of the first is kept.
    pub fn of(layers: &'r [Layer<'d>]) -> Self {
        let mut unique = Self {
            members: Vec::new(),
            hashes: Vec::new(),
            symbols: Vec::new(),
            names: Names::default(),
            layers: Vec::new(),
        };
        let mut seen: HashMap<u64, Vec<usize>, AsItIs> = HashMap::default();
        for layer in layers {
            let mut indices = Vec::with_capacity(layer.members.len());
            for member in &layer.members {
                let hash = hash::of(member.data);
                let alike = seen.entry(hash).or_default();
                let same = |&&at: &&usize| unique.members[at].data == member.data;
                let at = alike.iter().find(same).copied().unwrap_or_else(|| {
                    alike.push(unique.members.len());
                    unique.members.push(member);
                    unique.hashes.push(hash);
                    let symbols = member.symbols.iter();
                    let symbols = symbols.map(|symbol| unique.names.number(&symbol.name));
                    unique.symbols.push(symbols.collect());
                    unique.members.len() - 1
                });
                indices.push(at);
            }
            unique.layers.push(indices);
        }
        unique
    }

    /// Leaves members out that none of these views has, and counts the others anew.
    pub fn keep(mut self, views: &mut [Flat<'_>]) -> Self {
        let mut used = vec![false; self.members.len()];
        for (member, _) in views.iter().flat_map(|view| &view.members) {
            used[*member] = true;
        }
        let mut count = 0;
        let places = used.iter().map(|&used| {
            count += usize::from(used);
            count - usize::from(used)
        });
        let places: Vec<usize> = places.collect();
        for view in views {
            let symbols = view.symbols.iter_mut().map(|(_, member)| member);
            let members = view.members.iter_mut().map(|(member, _)| member);
            symbols
                .chain(members)
                .for_each(|member| *member = places[*member]);
        }
        for layer in &mut self.layers {
            layer.retain(|&member| used[member]);
            layer
                .iter_mut()
                .for_each(|member| *member = places[*member]);
        }
        let is_used = |at: &usize| used[*at];
        let kept: Vec<usize> = (0..used.len()).filter(is_used).collect();
        self.members = kept.iter().map(|&at| self.members[at]).collect();
        self.hashes = kept.iter().map(|&at| self.hashes[at]).collect();
        self.symbols = (kept.iter())
            .map(|&at| std::mem::take(&mut self.symbols[at]))
            .collect();
        self
    }
}
