//! Layers, searched in order for each symbol: what that comes to, worked out once.

use std::collections::{HashMap, HashSet};

use super::Input;
use super::unique::Unique;

/// A view in one table.
#[derive(Debug, Default)]
pub struct Flat<'r> {
    /// Each symbol, and the index of the member that has it.
    pub symbols: Vec<(&'r [u8], usize)>,
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

impl<'r> Flat<'r> {
    /// Flattens a view of these layers.
    pub fn of(unique: &Unique<'r, '_>, layers: &[usize]) -> Self {
        let named = |member: usize| -> &'r [u8] {
            let input: &'r Input<'_> = unique.members[member];
            &input.name
        };
        let mut flat = Self::default();
        // Of a symbol: the member, its layer, and whether its definition is weak.
        let mut taken: HashMap<&[u8], (usize, usize, bool)> = HashMap::new();
        let mut listed = HashSet::new();
        for (layer, &of) in layers.iter().enumerate() {
            let mut left = Vec::new();
            for &member in &unique.layers[of] {
                if !listed.insert(member) {
                    continue;
                }
                let input: &'r Input<'_> = unique.members[member];
                let mut has = input.symbols.is_empty();
                for symbol in &input.symbols {
                    let name: &'r [u8] = &symbol.name;
                    let first = *taken.entry(name).or_insert_with(|| {
                        has = true;
                        flat.symbols.push((name, member));
                        (member, layer, symbol.weak)
                    });
                    let (by, taken_layer, weak) = first;
                    if taken_layer < layer {
                        left.push(Shadow {
                            symbol: name,
                            taken: named(by),
                            taken_layer,
                            left: &input.name,
                            member,
                            left_layer: layer,
                            clash: !weak && !symbol.weak,
                        });
                    }
                }
                if has {
                    flat.members.push((member, layer));
                }
            }
            flat.shadows.extend(left);
        }
        flat
    }

    /// What cannot be linked: see [`Conflict`].
    pub fn conflicts(&self) -> Vec<Conflict<'r>> {
        let mut needed: HashMap<usize, &[u8]> = HashMap::new();
        for &(symbol, member) in &self.symbols {
            needed.entry(member).or_insert(symbol);
        }
        let clashes = self.shadows.iter().filter(|shadow| shadow.clash);
        clashes
            .filter_map(|shadow| {
                Some(Conflict {
                    shadow: *shadow,
                    needed_for: needed.get(&shadow.member)?,
                })
            })
            .collect()
    }
}
