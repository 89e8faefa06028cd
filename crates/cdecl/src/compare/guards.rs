//! Differences that a library handles.

use super::{Kind, Pair, parts};
use crate::rules::{By, Guard};
use crate::types::{Declared, Type, TypeId, Types};

/// Effect of a guard on the differences of a struct.
#[derive(PartialEq, Eq)]
enum Effect {
    /// All of them are covered.
    All,
    /// Other sizes are covered, and new fields after the older ones.
    Size,
    /// Other sizes are covered, and new fields also in padding.
    SizeAndPadding,
    /// None is covered, for this reason.
    None(String),
}

impl Effect {
    /// Whether it covers a difference of the struct itself, or of what the struct contains and points to.
    fn covers(&self, kind: Kind, is_own: bool) -> bool {
        match self {
            Self::All => kind != Kind::Limit,
            Self::Size => is_own && kind == Kind::Size,
            Self::SizeAndPadding => is_own && [Kind::Size, Kind::Padding].contains(&kind),
            Self::None(_) => false,
        }
    }
}

/// Guards of a struct, with their effects.
pub(super) struct Guards<'a>(Vec<(&'a Guard, Effect)>);

impl Guards<'_> {
    /// Whether they cover all differences.
    pub(super) fn cover_all(&self) -> bool {
        self.0.iter().any(|(_, effect)| *effect == Effect::All)
    }
}

impl<'a> Pair<'a> {
    /// Guards of a struct behind a pointer.
    pub(super) fn guards(&self, a: TypeId, b: TypeId) -> Guards<'a> {
        let Some([older, newer]) = self.declared else {
            return Guards(Vec::new());
        };
        let is_of = |guard: &Guard, types: &Types, id| {
            let mut names = types.names(id);
            names.any(|name| guard.of.part(name).is_some())
        };
        let guards = newer.rules.guards.iter();
        let guards =
            guards.filter(|guard| is_of(guard, self.older, a) && is_of(guard, self.newer, b));
        // A caller that passes the size has the struct's memory.
        let is_sized =
            |guard: &&Guard| matches!(&guard.by, By::Argument(name, _) if *name == newer.name);
        let (sized, others): (Vec<_>, Vec<_>) = guards.partition(is_sized);
        let guards = if sized.is_empty() { others } else { sized };
        let effects = guards
            .into_iter()
            .filter_map(|guard| Some((guard, effect(guard, (older, a), (newer, b))?)));
        Guards(effects.collect())
    }

    /// Adds the guards of a struct to its differences, which start at this index.
    pub(super) fn guard(&mut self, start: usize, guards: &Guards) {
        let at = self.at.join(": ");
        for (guard, effect) in &guards.0 {
            let found = self.found.iter_mut().skip(start);
            for found in found.filter(|found| found.guard.is_none()) {
                let is_own = found.at == at;
                if effect.covers(found.kind, is_own) {
                    found.guard = Some(guard.words.clone());
                } else if let (Effect::None(why), Kind::Size, true) = (effect, found.kind, is_own) {
                    found.what += &format!(" ({why})");
                }
            }
        }
    }
}

/// Effect of a guard on a struct of two versions. `None`: it is no guard of this function or struct.
fn effect(guard: &Guard, old: (&Declared, TypeId), new: (&Declared, TypeId)) -> Option<Effect> {
    let both =
        |holds: &dyn Fn(&Declared, TypeId) -> bool| holds(old.0, old.1) && holds(new.0, new.1);
    match &guard.by {
        By::Version(field, _) => {
            if !both(&|declared, id| is_first(&declared.types, id, field)) {
                return None;
            }
            Some(match macros(guard, old, new)? {
                Ok(()) => Effect::All,
                Err(why) => Effect::None(why),
            })
        }
        By::Size(field, by_macro) => {
            if !both(&|declared, id| is_first(&declared.types, id, field)) {
                return None;
            }
            Some(match by_macro {
                None => Effect::Size,
                Some(_) => match macros(guard, old, new)? {
                    Ok(()) => Effect::SizeAndPadding,
                    Err(why) => Effect::None(why),
                },
            })
        }
        By::Argument(function, at) => both(&|declared, _| {
            let size = parts(declared)
                .get(at + 1)
                .map(|id| declared.types.get(*id));
            declared.name == *function && matches!(size, Some(Type::Integer(64)))
        })
        .then_some(Effect::SizeAndPadding),
        By::Creator(function) => both(&|declared, id| {
            let types = &declared.types;
            let creator = types.queried(function).map(|function| types.get(function));
            let Some(Type::Function(parts)) = creator else {
                return false;
            };
            parts
                .iter()
                .skip(1)
                .any(|part| points_to_pointer(types, *part, id))
        })
        .then_some(Effect::All),
        By::Reader(function) => both(&|declared, _| declared.types.queried(function).is_some())
            .then_some(Effect::SizeAndPadding),
    }
}

/// Checks that the values of a guard's macro differ. `None`: one of the headers does not define it.
fn macros(
    guard: &Guard,
    old: (&Declared, TypeId),
    new: (&Declared, TypeId),
) -> Option<Result<(), String>> {
    let value = |(declared, id): (&Declared, TypeId)| {
        let types = &declared.types;
        types.names(id).find_map(|name| {
            let name = guard.macro_name(name)?;
            types.macro_value(&name).map(|value| (name, value))
        })
    };
    let ((_, old), (name, new)) = (value(old)?, value(new)?);
    Some(if old == new {
        Err(format!("{name} is {old} in both"))
    } else {
        Ok(())
    })
}

/// Whether the first field of a struct is this integer.
fn is_first(types: &Types, id: TypeId, field: &str) -> bool {
    let Type::Record {
        members: Some(members),
        ..
    } = types.get(id)
    else {
        return false;
    };
    members.first().is_some_and(|member| {
        member.name == field && matches!(types.get(member.of), Type::Integer(_))
    })
}

/// Whether a type is a pointer to a pointer to another one.
fn points_to_pointer(types: &Types, id: TypeId, to: TypeId) -> bool {
    let Type::Pointer(id) = types.get(id) else {
        return false;
    };
    matches!(types.get(*id), Type::Pointer(of) if std::ptr::eq(types.get(*of), types.get(to)))
}

#[cfg(test)]
mod tests;
