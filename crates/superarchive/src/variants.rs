//! Variants of members, in which symbols that an earlier layer overrides are undefined.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use gpustub_archive::hash::hash_bytes;

use crate::definitions::collector::Binding;
use crate::definitions::undefine::{constant, undefine};
use crate::definitions::undefined::Undefined;
use crate::ids::{MemberId, NameId};
use crate::pool::{Contents, Pool};

/// Result of an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The view does not need the member, or omits it.
    Unused,
    /// The view has a variant of the member, in which the symbol is undefined.
    Undefined {
        /// Whether compilers may have inlined the definition into others of the member.
        may_be_inlined: bool,
    },
    /// Both definitions are equal: in COMDAT groups (C++, one-definition rule), or constants.
    Equal,
}

/// Reason why a symbol cannot be undefined in a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The definition is strong, and the layer is not declared interposable.
    Strong,
    /// The form of the member, or of the definition, does not permit it.
    Form(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strong => "the definition is strong: its member may contain copies of it",
            Self::Form(reason) => reason,
        })
    }
}

/// Variants that were made before: views that override the same symbols share them.
#[derive(Default)]
pub struct Variants {
    known: HashMap<(MemberId, Vec<NameId>), Result<Variant, RefusedSymbol>>,
}

/// Contents without some symbols.
#[derive(Clone)]
struct Variant {
    member: MemberId,
    /// Undefined symbols that compilers may have inlined.
    inlined: Vec<NameId>,
}

/// A symbol that cannot be undefined, and the reason.
type RefusedSymbol = (NameId, Refusal);

/// A definition that an earlier layer overrides.
#[derive(Clone, Copy)]
pub struct Overridden {
    pub name: NameId,
    pub binding: Binding,
    /// Binding of the definition that the view has.
    pub chosen_binding: Binding,
    /// The member with that definition.
    pub chosen_member: MemberId,
}

impl Overridden {
    /// Whether both are in groups of which linkers keep one.
    fn is_comdat(&self) -> bool {
        self.binding == Binding::Comdat && self.chosen_binding == Binding::Comdat
    }

    /// Whether both are weak constants with the same value, such as those that compilers add to each file.
    fn is_constant(&self, member: MemberId, pool: &Pool<'_>) -> bool {
        if self.binding != Binding::Weak {
            return false;
        }
        let name = pool.names[self.name].bytes;
        let bytes = constant(&pool.contents[member].data, name);
        bytes.is_some() && bytes == constant(&pool.contents[self.chosen_member].data, name)
    }
}

/// Sorted names of the symbols whose definition is not equal to the chosen one.
fn names_to_undefine(overridden: &[Overridden], equal: &[bool]) -> Vec<NameId> {
    let mut names: Vec<NameId> = overridden
        .iter()
        .zip(equal)
        .filter(|(_, equal)| !**equal)
        .map(|(symbol, _)| symbol.name)
        .collect();
    names.sort_unstable();
    names
}

impl Variants {
    /// The variant of a member for a view in which earlier layers define these symbols, and the outcome of
    /// each; or the position of a symbol that cannot be undefined.
    pub fn find(
        &mut self,
        member: MemberId,
        overridden: &[Overridden],
        interposable: bool,
        pool: &mut Pool<'_>,
    ) -> Result<(MemberId, Vec<Outcome>), (usize, Refusal)> {
        let inline_function = overridden
            .iter()
            .position(|symbol| symbol.binding == Binding::Comdat && !symbol.is_comdat());
        if let Some(index) = inline_function {
            let reason = "the definition is in a COMDAT group: compilers inline such functions";
            return Err((index, Refusal::Form(reason)));
        }
        let strong = overridden
            .iter()
            .position(|symbol| symbol.binding == Binding::Strong);
        if let Some(index) = strong.filter(|_| !interposable) {
            return Err((index, Refusal::Strong));
        }
        let mut equal: Vec<bool> = overridden.iter().map(Overridden::is_comdat).collect();
        let mut variant = self.variant(member, names_to_undefine(overridden, &equal), pool);
        if variant.is_err() {
            for (equal, symbol) in equal.iter_mut().zip(overridden) {
                *equal |= symbol.is_constant(member, pool);
            }
            variant = self.variant(member, names_to_undefine(overridden, &equal), pool);
        }
        let variant = variant.map_err(|(name, reason)| {
            let index = overridden.iter().position(|symbol| symbol.name == name);
            (index.unwrap_or(0), reason)
        })?;
        let mut outcomes = Vec::with_capacity(overridden.len());
        for (symbol, equal) in overridden.iter().zip(equal) {
            outcomes.push(if equal {
                Outcome::Equal
            } else {
                let may_be_inlined = variant.inlined.contains(&symbol.name);
                Outcome::Undefined { may_be_inlined }
            });
        }
        Ok((variant.member, outcomes))
    }

    fn variant(
        &mut self,
        member: MemberId,
        names: Vec<NameId>,
        pool: &mut Pool<'_>,
    ) -> Result<Variant, RefusedSymbol> {
        if names.is_empty() {
            let inlined = names;
            return Ok(Variant { member, inlined });
        }
        if let Some(variant) = self.known.get(&(member, names.clone())) {
            return variant.clone();
        }
        let original = &pool.contents[member];
        let symbols: Vec<&[u8]> = names.iter().map(|&name| pool.names[name].bytes).collect();
        let variant = match undefine(&original.data, &symbols) {
            Err((index, reason)) => Err((names[index], Refusal::Form(reason))),
            Ok(Undefined { data, inlined }) => {
                let contents = Contents {
                    hash: hash_bytes(&data),
                    data: Cow::Owned(data),
                    symbols: original
                        .symbols
                        .iter()
                        .copied()
                        .filter(|(name, _)| !names.contains(name))
                        .collect(),
                    original: Some(member),
                };
                Ok(Variant {
                    member: pool.contents.push(contents),
                    inlined: inlined.into_iter().map(|index| names[index]).collect(),
                })
            }
        };
        self.known.insert((member, names), variant.clone());
        variant
    }
}
