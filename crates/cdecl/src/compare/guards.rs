//! Differences that a library handles.

use super::{Comparison, DifferenceKind, signature};
use crate::rules::{Guard, Mechanism};
use crate::types::{DeclaredFunction, Type, TypeId, Types};

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
    fn covers(&self, kind: DifferenceKind, is_own: bool) -> bool {
        match self {
            Self::All => kind != DifferenceKind::Limit,
            Self::Size => is_own && kind == DifferenceKind::Size,
            Self::SizeAndPadding => {
                is_own && [DifferenceKind::Size, DifferenceKind::Padding].contains(&kind)
            }
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

impl<'a> Comparison<'a> {
    /// Guards of a struct behind a pointer.
    pub(super) fn guards(&self, a: TypeId, b: TypeId) -> Guards<'a> {
        let Some([older, newer]) = self.declared else {
            return Guards(Vec::new());
        };
        let (argument_guards, struct_guards): (Vec<_>, Vec<_>) = newer
            .rules
            .guards
            .iter()
            .filter(|guard| is_guard_of(guard, self.older, a) && is_guard_of(guard, self.newer, b))
            .partition(|guard| match &guard.mechanism {
                Mechanism::Argument(function, _) => *function == newer.name,
                _ => false,
            });
        // A caller that passes the size has the struct's memory.
        let guards = if argument_guards.is_empty() {
            struct_guards
        } else {
            argument_guards
        };
        let mut effects = Vec::new();
        for guard in guards {
            if let Some(effect) = effect(guard, (older, a), (newer, b)) {
                effects.push((guard, effect));
            }
        }
        Guards(effects)
    }

    /// Adds the guards of a struct to its differences, which start at this index.
    pub(super) fn guard(&mut self, start: usize, guards: &Guards) {
        let position = self.position.join(": ");
        for (guard, effect) in &guards.0 {
            for difference in self.differences.iter_mut().skip(start) {
                if difference.guard.is_some() {
                    continue;
                }
                let is_own = difference.position == position;
                if effect.covers(difference.kind, is_own) {
                    difference.guard = Some(guard.words.clone());
                    continue;
                }
                match effect {
                    Effect::None(reason) if is_own && difference.kind == DifferenceKind::Size => {
                        difference.description += &format!(" ({reason})");
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Whether a guard is one of structs of this name.
fn is_guard_of(guard: &Guard, types: &Types, id: TypeId) -> bool {
    types
        .names(id)
        .any(|name| guard.structs.part(name).is_some())
}

/// Effect of a guard on a struct of two versions. `None`: it is no guard of this function or struct.
fn effect(
    guard: &Guard,
    old: (&DeclaredFunction, TypeId),
    new: (&DeclaredFunction, TypeId),
) -> Option<Effect> {
    match &guard.mechanism {
        Mechanism::Version(field, _) => {
            if !has_first_field(old, field) || !has_first_field(new, field) {
                return None;
            }
            Some(match compare_macro(guard, old, new)? {
                Ok(()) => Effect::All,
                Err(reason) => Effect::None(reason),
            })
        }
        Mechanism::Size(field, size_macro) => {
            if !has_first_field(old, field) || !has_first_field(new, field) {
                return None;
            }
            Some(match size_macro {
                None => Effect::Size,
                Some(_) => match compare_macro(guard, old, new)? {
                    Ok(()) => Effect::SizeAndPadding,
                    Err(reason) => Effect::None(reason),
                },
            })
        }
        Mechanism::Argument(function, argument) => (takes_size(old.0, function, *argument)
            && takes_size(new.0, function, *argument))
        .then_some(Effect::SizeAndPadding),
        Mechanism::Creator(function) => {
            (creates(old, function) && creates(new, function)).then_some(Effect::All)
        }
        Mechanism::Reader(function) => (old.0.types.queried(function).is_some()
            && new.0.types.queried(function).is_some())
        .then_some(Effect::SizeAndPadding),
    }
}

/// Checks that the values of a guard's macro differ. `None`: one of the headers does not define it.
fn compare_macro(
    guard: &Guard,
    old: (&DeclaredFunction, TypeId),
    new: (&DeclaredFunction, TypeId),
) -> Option<Result<(), String>> {
    let (_, old_value) = macro_of(guard, old)?;
    let (name, new_value) = macro_of(guard, new)?;
    Some(if old_value == new_value {
        Err(format!("{name} is {old_value} in both"))
    } else {
        Ok(())
    })
}

/// Name and value of the macro that a guard requires for a struct.
fn macro_of(guard: &Guard, (declared, id): (&DeclaredFunction, TypeId)) -> Option<(String, u64)> {
    let types = &declared.types;
    types.names(id).find_map(|name| {
        let macro_name = guard.macro_name(name)?;
        let value = types.macro_value(&macro_name)?;
        Some((macro_name, value))
    })
}

/// Whether the first field of a struct is this integer.
fn has_first_field((declared, id): (&DeclaredFunction, TypeId), field: &str) -> bool {
    let types = &declared.types;
    let Type::Record {
        members: Some(members),
        ..
    } = types.get(id)
    else {
        return false;
    };
    members.first().is_some_and(|member| {
        member.name == field && matches!(types.get(member.type_id), Type::Integer(_))
    })
}

/// Whether the declaration is that of the function, with a size as this argument.
fn takes_size(declared: &DeclaredFunction, function: &str, argument: usize) -> bool {
    declared.name == function
        && signature(declared)
            .get(argument + 1)
            .is_some_and(|id| *declared.types.get(*id) == Type::Integer(64))
}

/// Whether the function returns pointers to a struct through an argument.
fn creates((declared, id): (&DeclaredFunction, TypeId), function: &str) -> bool {
    let types = &declared.types;
    let Some(Type::Function(signature)) = types.queried(function).map(|id| types.get(id)) else {
        return false;
    };
    signature
        .iter()
        .skip(1)
        .any(|argument| points_to_pointer(types, *argument, id))
}

/// Whether a type is a pointer to a pointer to another one.
fn points_to_pointer(types: &Types, id: TypeId, target: TypeId) -> bool {
    let Type::Pointer(pointer) = types.get(id) else {
        return false;
    };
    match types.get(*pointer) {
        Type::Pointer(pointee) => std::ptr::eq(types.get(*pointee), types.get(target)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
