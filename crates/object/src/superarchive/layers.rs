//! Layers, searched in order for each symbol: what that comes to, worked out once.

use std::collections::{HashMap, HashSet};

use super::Input;
use super::names::Names;
use super::unique::Unique;

/// A view in one table.
#[derive(Debug, Default)]
pub struct Flat<'r> {
    /// The number of each symbol among the names, and the index of the member that has it.
    pub(super) symbols: Vec<(usize, usize)>,
    /// The members, each with the index of its layer in the view. Those whose symbols are all
    /// defined before are left out.
    pub members: Vec<(usize, usize)>,
    /// Symbols that a member of a later layer defines as well.
    pub shadows: Vec<Shadow<'r>>,
}

/// A definition that a view does not take, because an earlier layer has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shadow<'r> {
    /// The symbol.
    pub symbol: &'r [u8],
    /// The name of the member that is taken.
    pub taken: &'r [u8],
    /// The index of its layer in the view.
    pub taken_layer: usize,
    /// The name of the member that is not.
    pub left: &'r [u8],
    /// The index of that member among all that were given.
    member: usize,
    /// The index of its layer in the view.
    pub left_layer: usize,
    /// Whether linking both members fails: neither definition gives way.
    pub clash: bool,
}

/// A member that a view needs for one symbol, and that defines another which an earlier layer
/// overrides: a program that uses both symbols would have the second twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict<'r> {
    /// What is overridden, and by what.
    pub shadow: Shadow<'r>,
    /// The symbol that the member is needed for.
    pub needed_for: &'r [u8],
}

/// The definition of a symbol that a view takes.
#[derive(Clone, Copy)]
struct Taken {
    member: usize,
    layer: usize,
    weak: bool,
}

/// Flattens views.
pub struct Flattening<'u, 'r, 'd> {
    unique: &'u Unique<'r, 'd>,
    /// Of each name; of none between two views.
    taken: Vec<Option<Taken>>,
}

impl<'u, 'r, 'd> Flattening<'u, 'r, 'd> {
    pub fn new(unique: &'u Unique<'r, 'd>) -> Self {
        let taken = vec![None; unique.names.count()];
        Self { unique, taken }
    }

    /// Flattens a view of these layers.
    pub fn view(&mut self, layers: &[usize]) -> Flat<'r> {
        let unique = self.unique;
        let named = |member: usize| -> &'r [u8] {
            let input: &'r Input<'_> = unique.members[member];
            &input.name
        };
        let mut flat = Flat::default();
        let mut listed = HashSet::new();
        for (layer, &of) in layers.iter().enumerate() {
            let mut left = Vec::new();
            for &member in &unique.layers[of] {
                if !listed.insert(member) {
                    continue;
                }
                let symbols = &unique.members[member].symbols;
                let mut has = symbols.is_empty();
                for (symbol, &name) in symbols.iter().zip(&unique.symbols[member]) {
                    let weak = symbol.weak;
                    let first = *self.taken[name].get_or_insert_with(|| {
                        has = true;
                        flat.symbols.push((name, member));
                        Taken {
                            member,
                            layer,
                            weak,
                        }
                    });
                    if first.layer < layer {
                        left.push(Shadow {
                            symbol: unique.names.get(name).bytes,
                            taken: named(first.member),
                            taken_layer: first.layer,
                            left: named(member),
                            member,
                            left_layer: layer,
                            clash: !first.weak && !weak,
                        });
                    }
                }
                if has {
                    flat.members.push((member, layer));
                }
            }
            flat.shadows.extend(left);
        }
        for (name, _) in &flat.symbols {
            self.taken[*name] = None;
        }
        flat
    }
}

impl<'r> Flat<'r> {
    /// What cannot be linked: see [`Conflict`].
    pub(super) fn conflicts(&self, names: &Names<'r>) -> Vec<Conflict<'r>> {
        let clashes: Vec<_> = self.shadows.iter().filter(|shadow| shadow.clash).collect();
        if clashes.is_empty() {
            return Vec::new();
        }
        let mut needed: HashMap<usize, usize> = HashMap::new();
        for &(symbol, member) in &self.symbols {
            needed.entry(member).or_insert(symbol);
        }
        let conflicts = clashes.into_iter().filter_map(|shadow| {
            let needed_for = needed.get(&shadow.member)?;
            Some(Conflict {
                shadow: *shadow,
                needed_for: names.get(*needed_for).bytes,
            })
        });
        conflicts.collect()
    }
}
