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
    made: HashMap<(MemberId, Vec<NameId>), Made>,
}

/// A definition that an earlier layer overrides.
#[derive(Clone, Copy)]
pub struct Overridden {
    pub name: NameId,
    pub binding: Binding,
    /// The definition that overrides it.
    pub by: Binding,
    pub by_member: MemberId,
}

impl Overridden {
    /// Whether both are in groups of which linkers keep one.
    fn is_comdat(&self) -> bool {
        self.binding == Binding::Comdat && self.by == Binding::Comdat
    }

    /// Whether both are weak constants with the same value, such as those that compilers add to each file.
    fn is_constant(&self, member: MemberId, pool: &Pool<'_>) -> bool {
        let name = pool.names[self.name].bytes;
        let value = |member| constant(&pool.contents[member].data, name);
        let own = value(member);
        self.binding == Binding::Weak && own.is_some() && own == value(self.by_member)
    }
}

/// A variant and the symbols that may be inlined in it, or a symbol that cannot be undefined.
type Made = Result<(MemberId, Vec<NameId>), (NameId, Refusal)>;

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
        let is_inline = |one: &Overridden| one.binding == Binding::Comdat && !one.is_comdat();
        if let Some(at) = overridden.iter().position(is_inline) {
            let reason = "the definition is in a COMDAT group: compilers inline such functions";
            return Err((at, Refusal::Form(reason)));
        }
        let is_strong = |one: &Overridden| one.binding == Binding::Strong;
        match overridden.iter().position(is_strong) {
            Some(at) if !interposable => return Err((at, Refusal::Strong)),
            _ => {}
        }
        let mut equal: Vec<bool> = overridden.iter().map(Overridden::is_comdat).collect();
        let names = |equal: &[bool]| {
            let all = overridden.iter().zip(equal);
            let mut names: Vec<NameId> = all
                .filter(|(_, equal)| !**equal)
                .map(|(one, _)| one.name)
                .collect();
            names.sort_unstable();
            names
        };
        let mut made = self.variant(member, names(&equal), pool);
        if made.is_err() {
            for (equal, one) in equal.iter_mut().zip(overridden) {
                *equal |= one.is_constant(member, pool);
            }
            made = self.variant(member, names(&equal), pool);
        }
        let position = |name| {
            overridden
                .iter()
                .position(|one| one.name == name)
                .unwrap_or(0)
        };
        let (variant, inlined) = made.map_err(|(name, reason)| (position(name), reason))?;
        let outcomes = overridden.iter().zip(equal).map(|(one, equal)| {
            if equal {
                return Outcome::Equal;
            }
            let may_be_inlined = inlined.contains(&one.name);
            Outcome::Undefined { may_be_inlined }
        });
        Ok((variant, outcomes.collect()))
    }

    fn variant(&mut self, member: MemberId, names: Vec<NameId>, pool: &mut Pool<'_>) -> Made {
        if names.is_empty() {
            return Ok((member, names));
        }
        if let Some(made) = self.made.get(&(member, names.clone())) {
            return made.clone();
        }
        let base = &pool.contents[member];
        let texts: Vec<&[u8]> = names.iter().map(|&name| pool.names[name].bytes).collect();
        let made = match undefine(&base.data, &texts) {
            Err((at, reason)) => Err((names[at], Refusal::Form(reason))),
            Ok(Undefined { data, inlined }) => {
                let symbols = base.symbols.iter().copied();
                let symbols = symbols.filter(|(name, _)| !names.contains(name)).collect();
                let variant = pool.contents.push(Contents {
                    hash: hash_bytes(&data),
                    data: Cow::Owned(data),
                    symbols,
                    original: Some(member),
                });
                Ok((variant, inlined.into_iter().map(|at| names[at]).collect()))
            }
        };
        self.made.insert((member, names), made.clone());
        made
    }
}
