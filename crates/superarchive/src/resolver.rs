//! View resolution: the layers of a view are searched in order for each symbol, and the result is one table.

use std::collections::{HashMap, HashSet};

use crate::dedup::UniqueMembers;
use crate::ids::{IndexVec, LayerId, LayerPosition, MemberId, NameId};
use crate::names::Names;
use crate::request::Input;

/// Members and symbols of a view.
#[derive(Debug, Default)]
pub struct ResolvedView<'r> {
    /// Defining member of each symbol.
    pub(crate) symbols: Vec<ViewSymbol>,
    /// Members in layer order, without those whose symbols are all defined by earlier members.
    pub members: Vec<ViewMember>,
    /// Definitions that an earlier layer overrides.
    pub overrides: Vec<Override<'r>>,
}

/// A symbol of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewSymbol {
    /// Name of the symbol.
    pub name: NameId,
    /// The member that defines it.
    pub member: MemberId,
}

/// A member of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewMember {
    /// The member.
    pub member: MemberId,
    /// Layer of the member.
    pub layer: LayerPosition,
}

/// A definition that is not part of a view, because an earlier layer also defines the symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Override<'r> {
    /// Name of the symbol.
    pub symbol: &'r [u8],
    /// Name of the member whose definition the view has.
    pub chosen: &'r [u8],
    /// Layer of the chosen member.
    pub chosen_layer: LayerPosition,
    /// Name of the member whose definition is overridden.
    pub overridden: &'r [u8],
    /// Layer of the overridden member.
    pub overridden_layer: LayerPosition,
    /// The overridden member.
    member: MemberId,
    /// Whether linking both members fails: both definitions are strong.
    pub both_strong: bool,
}

/// A member that a view needs for one symbol, and that defines another one which an earlier layer
/// overrides: a program that uses both symbols would have the second one twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict<'r> {
    /// The overridden definition.
    pub overridden: Override<'r>,
    /// The symbol that the member is needed for.
    pub needed_for: &'r [u8],
}

/// The chosen definition of a symbol.
#[derive(Clone, Copy)]
struct Chosen {
    member: MemberId,
    layer: LayerPosition,
    weak: bool,
}

/// Resolves views.
pub struct ViewResolver<'u, 'r, 'd> {
    members: &'u UniqueMembers<'r, 'd>,
    /// Chosen definition of each symbol; all `None` between two views.
    chosen: IndexVec<NameId, Option<Chosen>>,
}

impl<'u, 'r, 'd> ViewResolver<'u, 'r, 'd> {
    /// A resolver for views of the layers of these members.
    pub fn new(members: &'u UniqueMembers<'r, 'd>) -> Self {
        let chosen = IndexVec::from_elem(None, members.names.count());
        Self { members, chosen }
    }

    /// Resolves a view of these layers.
    pub fn resolve(&mut self, layers: &[LayerId]) -> ResolvedView<'r> {
        let unique = self.members;
        let name_of = |member: MemberId| -> &'r [u8] {
            let input: &'r Input<'_> = unique.inputs[member];
            &input.name
        };
        let mut view = ResolvedView::default();
        let mut listed = HashSet::new();
        for (position, &layer) in layers.iter().enumerate() {
            let position = LayerPosition(position);
            for &member in &unique.layers[layer] {
                if !listed.insert(member) {
                    continue;
                }
                let definitions = &unique.inputs[member].symbols;
                let mut is_needed = definitions.is_empty();
                for (definition, &name) in definitions.iter().zip(&unique.symbols[member]) {
                    let weak = definition.weak;
                    let chosen = *self.chosen[name].get_or_insert_with(|| {
                        is_needed = true;
                        view.symbols.push(ViewSymbol { name, member });
                        Chosen {
                            member,
                            layer: position,
                            weak,
                        }
                    });
                    if chosen.layer < position {
                        view.overrides.push(Override {
                            symbol: unique.names[name].bytes,
                            chosen: name_of(chosen.member),
                            chosen_layer: chosen.layer,
                            overridden: name_of(member),
                            overridden_layer: position,
                            member,
                            both_strong: !chosen.weak && !weak,
                        });
                    }
                }
                if is_needed {
                    view.members.push(ViewMember {
                        member,
                        layer: position,
                    });
                }
            }
        }
        for symbol in &view.symbols {
            self.chosen[symbol.name] = None;
        }
        view
    }
}

impl<'r> ResolvedView<'r> {
    /// Conflicts at link time: see [`Conflict`].
    pub(crate) fn conflicts(&self, names: &Names<'r>) -> Vec<Conflict<'r>> {
        let strong = self.overrides.iter().filter(|one| one.both_strong);
        let strong: Vec<_> = strong.collect();
        if strong.is_empty() {
            return Vec::new();
        }
        let mut needed: HashMap<MemberId, NameId> = HashMap::new();
        for symbol in &self.symbols {
            needed.entry(symbol.member).or_insert(symbol.name);
        }
        let conflicts = strong.into_iter().filter_map(|overridden| {
            let needed_for = needed.get(&overridden.member)?;
            Some(Conflict {
                overridden: *overridden,
                needed_for: names[*needed_for].bytes,
            })
        });
        conflicts.collect()
    }
}
