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
        layer: LayerId,
        pool: &mut Pool<'r>,
        view: &mut ResolvedView<'r>,
        conflicts: &mut Vec<Conflict<'r>>,
    ) {
        let request = self.request;
        let inputs = &request.layers[layer.0];
        for (at, input) in inputs.members.iter().enumerate() {
            let mut member = pool.layers[layer][at];
            let symbols = &pool.contents[member].symbols;
            let own = view.members.len() as u32;
            view.symbols.reserve(symbols.len());
            let mut needed_for = None;
            let mut overridden = Vec::new();
            for &(name, binding) in symbols {
                match self.chosen[name] {
                    Some(earlier) if earlier.layer < position => {
                        overridden.push((name, binding, earlier));
                    }
                    Some(_) => {}
                    None => {
                        if needed_for.is_none() && Some(name) != self.in_each_module {
                            needed_for = Some(name);
                        }
                        view.symbols.push((name, own));
                        self.chosen[name] = Some(Chosen {
                            position: own,
                            layer: position,
                            binding,
                        });
                    }
                }
            }
            let first = view.overrides.len();
            for &(name, _, by) in &overridden {
                view.overrides.push(Override {
                    symbol: pool.names[name].bytes,
                    chosen: view.members[by.position as usize].name,
                    chosen_layer: by.layer,
                    overridden: &input.name,
                    overridden_layer: position,
                    outcome: Outcome::Unused,
                });
            }
            if !symbols.is_empty() && overridden.len() == symbols.len() {
                continue;
            }
            if let Some(needed_for) = needed_for.filter(|_| !overridden.is_empty()) {
                let of = |&(name, binding, by): &(NameId, Binding, Chosen)| Overridden {
                    name,
                    binding,
                    by: by.binding,
                    by_member: view.members[by.position as usize].member,
                };
                let overridden: Vec<_> = overridden.iter().map(of).collect();
                let interposable = inputs.interposable;
                match self.variants.find(member, &overridden, interposable, pool) {
                    Ok((variant, outcomes)) => {
                        member = variant;
                        let overrides = view.overrides[first..].iter_mut();
                        for (one, outcome) in overrides.zip(outcomes) {
                            one.outcome = outcome;
                        }
                    }
                    Err((at, reason)) => conflicts.push(Conflict {
                        overridden: view.overrides[first + at],
                        needed_for: pool.names[needed_for].bytes,
                        reason,
                    }),
                }
            }
            view.members.push(ViewMember {
                name: &input.name,
                member,
                layer: position,
            });
        }
    }
}
