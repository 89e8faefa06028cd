//! Checks whether a function as one version declares it can be called as another declares it.
//!
//! The rule: no memory is written beyond, and no argument misread by, the types of the caller's
//! header. So these are differences: another count, class or size of arguments; behind a pointer,
//! at any depth, a struct of another size, a field that moved, was removed or took up padding
//! (which a caller leaves as it is); an enumerator that has another number. These are none: other
//! names of types, qualifiers, signs; an integer for a pointer of the same size; a field renamed in
//! place; a new field in a union of the same size, or in bytes that the older header names as reserved,
//! which callers set to zero; new enumerators, and enumerators that count others. Reserved bytes that
//! the function may write are different: a caller of the newer one reads there what the older one leaves.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::fields::{DEPTH, Held, Leaf, is_handle, leaves};
use crate::types::{Declared, Type, TypeId, Types};

/// Checks that a caller of the older declaration can call the newer one.
///
/// # Errors
///
/// The first difference: `4 -> 5 arguments`, `argument 1: cudaDeviceProp: 728 -> 1032 bytes`.
/// Arguments are counted from 0; offsets and sizes are in bytes. Types that are too large or too
/// deep to be compared count as different.
pub fn same(older: &Declared, newer: &Declared) -> Result<(), String> {
    same_parts(
        Reserved::Written,
        (&older.types, &parts(older)),
        (&newer.types, &parts(newer)),
    )
}

/// As [`same`], for functions in whose structs reserved bytes are zero, even if it may write these.
///
/// # Errors
///
/// The first difference.
pub fn same_with_zeroed_reserved(older: &Declared, newer: &Declared) -> Result<(), String> {
    same_parts(
        Reserved::Zero,
        (&older.types, &parts(older)),
        (&newer.types, &parts(newer)),
    )
}

/// Contents of reserved bytes in memory that a function may write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reserved {
    Zero,
    Written,
}

/// Checks that a value of the older type can be read as one of the newer type, as [`same`] does for
/// arguments.
///
/// # Errors
///
/// The first difference.
pub fn same_values(
    (older, a): (&Types, TypeId),
    (newer, b): (&Types, TypeId),
) -> Result<(), String> {
    Pair::new(Reserved::Zero, older, newer).types(a, b)
}

/// Checks that a call of the older declaration equals a call of the newer one with one more
/// argument, null, at this index from 0, and all of at most `most` arguments in integer registers.
///
/// # Errors
///
/// The reason.
pub fn takes_null(
    older: &Declared,
    newer: &Declared,
    argument: u8,
    most: u8,
) -> Result<(), String> {
    let mut with = parts(newer);
    let fits = |id: &TypeId| in_register(newer.types.get(*id)).is_some_and(|size| size <= 64);
    if with.len() > usize::from(most) + 1 || !with.iter().all(fits) {
        return Err(format!("not {most} integers and pointers"));
    }
    let at = usize::from(argument) + 1;
    if !with
        .get(at)
        .is_some_and(|id| matches!(newer.types.get(*id), Type::Pointer(_)))
    {
        return Err(format!("argument {argument} is no pointer"));
    }
    with.remove(at);
    same_parts(
        Reserved::Written,
        (&older.types, &parts(older)),
        (&newer.types, &with),
    )
}

/// Types of the result and the arguments.
fn parts(declared: &Declared) -> Vec<TypeId> {
    match declared.types.get(declared.function) {
        Type::Function(parts) => parts.clone(),
        _ => Vec::new(),
    }
}

fn same_parts(
    reserved: Reserved,
    (older, a): (&Types, &[TypeId]),
    (newer, b): (&Types, &[TypeId]),
) -> Result<(), String> {
    let mut pair = Pair::new(reserved, older, newer);
    if a.len() != b.len() {
        let count = |parts: &[TypeId]| parts.len().saturating_sub(1);
        return Err(format!("{} -> {} arguments", count(a), count(b)));
    }
    for (index, (&a, &b)) in a.iter().zip(b).enumerate() {
        pair.types(a, b).map_err(|e| match index {
            0 => format!("result: {e}"),
            _ => format!("argument {}: {e}", index - 1),
        })?;
    }
    Ok(())
}

struct Pair<'a> {
    older: &'a Types,
    newer: &'a Types,
    /// Pairs behind pointers that are compared, or being compared.
    seen: HashSet<(TypeId, TypeId)>,
    depth: usize,
    reserved: Reserved,
    /// Whether the types compared now are behind a pointer that is not to a constant: memory that the function may
    /// write.
    is_result: bool,
}

impl<'a> Pair<'a> {
    fn new(reserved: Reserved, older: &'a Types, newer: &'a Types) -> Self {
        Self {
            reserved,
            older,
            newer,
            seen: HashSet::new(),
            depth: 0,
            is_result: false,
        }
    }

    fn types(&mut self, a: TypeId, b: TypeId) -> Result<(), String> {
        if self.depth == DEPTH {
            return Err(format!("more than {DEPTH} types deep"));
        }
        self.depth += 1;
        let found = self.layers(a, b);
        self.depth -= 1;
        found
    }

    fn layers(&mut self, a: TypeId, b: TypeId) -> Result<(), String> {
        let (older, newer) = (self.older, self.newer);
        let (old, new) = (older.get(a), newer.get(b));
        match (old, new) {
            (Type::Pointer(a), Type::Pointer(b)) => self.pointees(*a, *b),
            (
                Type::Array {
                    element: a,
                    size: m,
                },
                Type::Array {
                    element: b,
                    size: n,
                },
            ) if m == n => self.types(*a, *b),
            (Type::Record { .. }, Type::Record { .. }) => self.records(old, new),
            (
                Type::Enum {
                    values: x,
                    size: m,
                    name,
                },
                Type::Enum {
                    values: y, size: n, ..
                },
            ) if m == n => {
                for (enumerator, was) in x {
                    if let Some(is) = y.get(enumerator) {
                        if was != is
                            && !counts_others(enumerator)
                            && !keeps_number(x, y, enumerator)
                        {
                            let name = if name.is_empty() { "an enum" } else { name };
                            return Err(format!("{name}: {enumerator} {was} -> {is}"));
                        }
                    }
                }
                Ok(())
            }
            (Type::Void, Type::Void) => Ok(()),
            (Type::Float(m), Type::Float(n)) if m == n => Ok(()),
            _ => match (in_register(old), in_register(new)) {
                (Some(m), Some(n)) if m == n => Ok(()),
                _ => Err(format!("{} -> {}", describe(old), describe(new))),
            },
        }
    }

    fn pointees(&mut self, a: TypeId, b: TypeId) -> Result<(), String> {
        let is_opaque = |of: &Type| {
            matches!(
                of,
                Type::Void | Type::Function(_) | Type::Record { members: None, .. }
            ) || is_handle(of)
        };
        if is_opaque(self.older.get(a)) || is_opaque(self.newer.get(b)) || !self.seen.insert((a, b))
        {
            return Ok(());
        }
        let was = self.is_result;
        self.is_result = !self.newer.is_constant(b);
        let found = self.types(a, b);
        self.is_result = was;
        found
    }

    fn records(&mut self, old: &Type, new: &Type) -> Result<(), String> {
        let (Type::Record { name, size: m, .. }, Type::Record { size: n, .. }) = (old, new) else {
            return Ok(());
        };
        let name = if name.is_empty() {
            "a struct"
        } else {
            name.as_str()
        };
        if m != n {
            return Err(format!("{name}: {} -> {} bytes", m / 8, n / 8));
        }
        if is_handle(old) {
            return Ok(());
        }
        let a = leaves(self.older, old).map_err(|e| format!("{name}: {e}"))?;
        let b = leaves(self.newer, new).map_err(|e| format!("{name}: {e}"))?;
        let (mut by_path, mut by_place) = (HashMap::new(), HashMap::new());
        for leaf in &b {
            by_path.entry(leaf.path.as_str()).or_insert(leaf);
            if !leaf.is_reserved() {
                by_place.entry(leaf.place()).or_insert(leaf);
            }
        }
        for leaf in a.iter().filter(|leaf| !leaf.is_reserved()) {
            let named = by_path.get(leaf.path.as_str());
            let what = || format!("{name}.{}", leaf.path);
            let Some(other) = named.or_else(|| by_place.get(&leaf.place())) else {
                return Err(format!("{} is gone", what()));
            };
            if other.place() != leaf.place() {
                return Err(format!(
                    "{}: byte {} -> {}",
                    what(),
                    leaf.offset / 8,
                    other.offset / 8
                ));
            }
            self.types(leaf.of, other.of)
                .map_err(|e| format!("{}: {e}", what()))?;
        }
        if self.is_result && self.reserved == Reserved::Written {
            let result = b.iter().find(|leaf| takes_reserved(&a, leaf));
            if let Some(leaf) = result {
                return Err(format!("{name}.{} takes reserved bytes", leaf.path));
            }
        }
        let held = Held::new(&a);
        let taken = b.iter().find(|leaf| !leaf.is_reserved() && !held.has(leaf));
        match taken {
            Some(leaf) => Err(format!("{name}.{} takes padding", leaf.path)),
            None => Ok(()),
        }
    }
}

/// Whether a field of the newer struct is in bytes of the older one that have no meaning but reserved: in a union,
/// they are part of other members.
fn takes_reserved(older: &[Leaf], leaf: &Leaf) -> bool {
    let named = |other: &Leaf| {
        let mut named = older.iter().filter(|leaf| !leaf.is_reserved());
        named.any(|leaf| leaf.overlaps(other))
    };
    let mut reserved = older.iter().filter(|other| other.is_reserved());
    !leaf.is_reserved()
        && !named(leaf)
        && reserved.any(|other| other.overlaps(leaf) && !named(other))
}

/// Whether the enumerator only counts the others.
pub fn counts_others(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let ends = [
        "MAX",
        "COUNT",
        "LAST",
        "NUM_OPTIONS",
        "NUMOPTIONS",
        "FLAGS_MASK",
        "LIMITRANGE",
    ];
    ends.iter().any(|end| name.ends_with(end))
}

/// Whether only the name moved, while both numbers keep their meaning, the old one under the name
/// with `_V1`: callers pass numbers, so none is misread.
fn keeps_number(old: &BTreeMap<String, i128>, new: &BTreeMap<String, i128>, name: &str) -> bool {
    let number = new.get(name);
    new.get(&format!("{name}_V1")) == old.get(name)
        && (old.get(&format!("{name}_V2")) == number || !old.values().any(|n| Some(n) == number))
}

/// Size of a value that fits into an integer register.
fn in_register(of: &Type) -> Option<u64> {
    match of {
        Type::Integer(size) | Type::Enum { size, .. } => Some(*size),
        Type::Pointer(_) => Some(64),
        _ => None,
    }
}

fn describe(of: &Type) -> String {
    match of {
        Type::Void => "nothing".into(),
        Type::Integer(size) | Type::Enum { size, .. } => format!("{} bytes", size / 8),
        Type::Float(size) => format!("{} bytes of a float", size / 8),
        Type::Pointer(_) => "a pointer".into(),
        Type::Function(_) => "a function".into(),
        Type::Array { size, .. } => format!("an array of {} bytes", size / 8),
        Type::Record { name, size, .. } => format!("{name} of {} bytes", size / 8),
    }
}

#[cfg(test)]
mod tests;
