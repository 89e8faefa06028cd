//! View resolution: the layers of a view are searched in order for each symbol.

use crate::definitions::collector::Binding;
use crate::ids::{IndexVec, LayerId, LayerPosition, MemberId, NameId};
use crate::pool::Pool;
use crate::request::Request;
use crate::variants::{Outcome, Overridden, Refusal, Variants};

/// Members and symbols of a view.
#[derive(Debug, Default)]
pub struct ResolvedView<'r> {
    /// Each symbol, with the position of the member that defines it.
    pub(crate) symbols: Vec<(NameId, u32)>,
    /// Members in layer order, without those all of whose symbols earlier layers define.
    pub members: Vec<ViewMember<'r>>,
    /// Definitions that an earlier layer overrides.
    pub overrides: Vec<Override<'r>>,
}

/// A member of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ViewMember<'r> {
    /// Name of the member.
    pub name: &'r [u8],
    /// Contents of the member.
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
    /// Result of the override.
    pub outcome: Outcome,
}

/// A member that a view needs for one symbol, and that defines another one which an earlier layer
/// overrides, but which cannot be undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict<'r> {
    /// The overridden definition.
    pub overridden: Override<'r>,
    /// The symbol that the member is needed for.
    pub needed_for: &'r [u8],
    /// The reason.
    pub reason: Refusal,
}

/// clang for AMD's GPUs defines this constant in each module that uses it (linkage
/// `weak_odr`), so that none needs that of another.
const IN_EACH_MODULE: &[u8] = b"__oclc_ABI_version";

/// The chosen definition of a symbol.
#[derive(Clone, Copy)]
struct Chosen {
    position: u32,
    layer: LayerPosition,
    binding: Binding,
}

/// Use of the symbols of a member in a view.
#[derive(Default)]
struct Choice {
    /// The first symbol that the view needs the member for.
    needed_for: Option<NameId>,
    /// Symbols that an earlier layer defines.
    overridden: Vec<Overridden>,
}

/// Resolves views.
pub struct ViewResolver<'r, 'd> {
    request: &'r Request<'d>,
    variants: Variants,
    /// The name [`IN_EACH_MODULE`].
    in_each_module: Option<NameId>,
    /// Chosen definition of each symbol; all `None` between two views.
    chosen: IndexVec<NameId, Option<Chosen>>,
}

impl<'r, 'd> ViewResolver<'r, 'd> {
    /// A resolver for views of the layers of a request.
    pub fn new(request: &'r Request<'d>, pool: &Pool<'r>) -> Self {
        Self {
            request,
            variants: Variants::default(),
            in_each_module: pool.names.find(IN_EACH_MODULE),
            chosen: IndexVec::from_elem(None, pool.names.count()),
        }
    }

    /// Resolves a view of these layers. Variants become part of the pool.
    pub fn resolve(
        &mut self,
        layers: &[LayerId],
        pool: &mut Pool<'r>,
    ) -> Result<ResolvedView<'r>, Vec<Conflict<'r>>> {
        let mut view = ResolvedView::default();
        let mut conflicts = Vec::new();
        for (position, &layer) in layers.iter().enumerate() {
            self.add_layer(
                LayerPosition(position),
                layer,
                pool,
                &mut view,
                &mut conflicts,
            );
        }
        for &(name, _) in &view.symbols {
            self.chosen[name] = None;
        }
        if conflicts.is_empty() {
            Ok(view)
        } else {
            Err(conflicts)
        }
    }

    fn add_layer(
        &mut self,
        position: LayerPosition,
        id: LayerId,
        pool: &mut Pool<'r>,
        view: &mut ResolvedView<'r>,
        conflicts: &mut Vec<Conflict<'r>>,
    ) {
        let request = self.request;
        let layer = &request.layers[id.0];
        for (index, input) in layer.members.iter().enumerate() {
            let mut member = ViewMember {
                name: &input.name,
                member: pool.layers[id][index],
                layer: position,
            };
            let first_override = view.overrides.len();
            let Choice {
                needed_for,
                overridden,
            } = self.choose(member, pool, view);
            let symbol_count = pool.contents[member.member].symbols.len();
            if symbol_count != 0 && overridden.len() == symbol_count {
                continue;
            }
            if let Some(needed_for) = needed_for.filter(|_| !overridden.is_empty()) {
                let variant =
                    self.variants
                        .find(member.member, &overridden, layer.interposable, pool);
                match variant {
                    Ok((variant, outcomes)) => {
                        member.member = variant;
                        for (index, outcome) in outcomes.into_iter().enumerate() {
                            view.overrides[first_override + index].outcome = outcome;
                        }
                    }
                    Err((index, reason)) => conflicts.push(Conflict {
                        overridden: view.overrides[first_override + index],
                        needed_for: pool.names[needed_for].bytes,
                        reason,
                    }),
                }
            }
            view.members.push(member);
        }
    }

    /// Chooses the next member of a view for the symbols that no member before it defines, and adds the
    /// overrides of those that an earlier layer defines.
    fn choose(
        &mut self,
        member: ViewMember<'r>,
        pool: &Pool<'r>,
        view: &mut ResolvedView<'r>,
    ) -> Choice {
        let symbols = &pool.contents[member.member].symbols;
        let position = view.members.len() as u32;
        view.symbols.reserve(symbols.len());
        let mut choice = Choice::default();
        for &(name, binding) in symbols {
            let Some(chosen) = self.chosen[name] else {
                if choice.needed_for.is_none() && Some(name) != self.in_each_module {
                    choice.needed_for = Some(name);
                }
                view.symbols.push((name, position));
                self.chosen[name] = Some(Chosen {
                    position,
                    layer: member.layer,
                    binding,
                });
                continue;
            };
            if chosen.layer < member.layer {
                let chosen_member = &view.members[chosen.position as usize];
                choice.overridden.push(Overridden {
                    name,
                    binding,
                    chosen_binding: chosen.binding,
                    chosen_member: chosen_member.member,
                });
                view.overrides.push(Override {
                    symbol: pool.names[name].bytes,
                    chosen: chosen_member.name,
                    chosen_layer: chosen.layer,
                    overridden: member.name,
                    overridden_layer: member.layer,
                    outcome: Outcome::Unused,
                });
            }
        }
        choice
    }
}
