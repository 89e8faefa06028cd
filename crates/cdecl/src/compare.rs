//! Checks whether a function as one version declares it can be called as another declares it.
//!
//! The rule: no memory is written beyond, and no argument misread by, the types of the caller's
//! header. So these are differences: another count, class or size of arguments; behind a pointer,
//! at any depth, a struct of another size, a field that moved, was removed or took up padding
//! (which a caller leaves as it is); an enumerator that has another number, also in an enumeration that
//! replaces another one. These are none: other
//! names of types, qualifiers, signs; an integer for a pointer of the same size; a field renamed in
//! place; a new field in a union of the same size, or in bytes that the older header names as reserved,
//! which callers set to zero; new enumerators, and enumerators that count others. Reserved bytes that
//! the function may write are different: a caller of the newer one reads there what the older one leaves.
//!
//! A library handles some differences itself: see [`crate::Guard`].

pub mod enums;
mod guards;
mod records;

use std::collections::HashSet;
use std::fmt;

use crate::fields::{DEPTH, is_handle};
use crate::types::{Declared, Type, TypeId, Types};

/// Maximum number of differences that are listed. Structs of GPU libraries have less than 200 fields.
const LIMIT: usize = 256;

/// A difference between two declarations of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Class of the difference.
    pub kind: Kind,
    /// Position in the function: `argument 1`, counted from 0. Empty for the function itself.
    pub at: String,
    /// The difference, with offsets and sizes in bytes: `cudaDeviceProp: 728 -> 1032 bytes`.
    pub what: String,
    /// Reason why the library handles the difference, with the words of its header.
    pub guard: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.at.is_empty() {
            write!(f, "{}: ", self.at)?;
        }
        f.write_str(&self.what)
    }
}

/// Class of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Another number of arguments.
    Arguments,
    /// A type of another class or size.
    Type,
    /// A struct of another size.
    Size,
    /// A field that moved or was removed.
    Field,
    /// A field that one of the structs has in padding or reserved bytes of the other.
    Padding,
    /// An enumerator with another number.
    Enumerator,
    /// Types too large or too deep to be compared, or more differences than are listed.
    Limit,
}

impl Kind {
    /// Name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arguments => "arguments",
            Self::Type => "type",
            Self::Size => "size",
            Self::Field => "field",
            Self::Padding => "padding",
            Self::Enumerator => "enumerator",
            Self::Limit => "limit",
        }
    }
}

/// Contents of reserved bytes in memory that a function may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// Zero: programs fill the struct.
    Zero,
    /// The function may write them.
    Written,
}

/// Differences for a caller of the older declaration that calls the newer one, in the order of the arguments;
/// of a type, only at the first argument that has it.
pub fn differences(older: &Declared, newer: &Declared, reserved: Reserved) -> Vec<Difference> {
    let mut pair = Pair::new(reserved, &older.types, &newer.types);
    pair.declared = Some([older, newer]);
    pair.parts(&parts(older), &parts(newer));
    for (name, a) in &older.behind {
        if let Some(b) = newer.behind.get(name) {
            pair.nested("`void *`", |pair| pair.untyped(*a, *b));
        }
    }
    pair.found
}

/// Checks that a caller of the older declaration can call the newer one.
///
/// # Errors
///
/// The first of [`differences`] without a guard: `4 -> 5 arguments`, `argument 1: cudaDeviceProp: 728 -> 1032 bytes`.
pub fn same(older: &Declared, newer: &Declared) -> Result<(), String> {
    first(differences(older, newer, Reserved::Written))
}

/// As [`same`], for functions in whose structs reserved bytes are zero, even if it may write these.
///
/// # Errors
///
/// The first difference.
pub fn same_with_zeroed_reserved(older: &Declared, newer: &Declared) -> Result<(), String> {
    first(differences(older, newer, Reserved::Zero))
}

fn first(found: Vec<Difference>) -> Result<(), String> {
    let mut changes = found.iter().filter(|found| found.guard.is_none());
    changes
        .next()
        .map_or(Ok(()), |change| Err(change.to_string()))
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
    let mut pair = Pair::new(Reserved::Zero, older, newer);
    pair.types(a, b);
    first(pair.found)
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
    let mut pair = Pair::new(Reserved::Written, &older.types, &newer.types);
    pair.parts(&parts(older), &with);
    first(pair.found)
}

/// Types of the result and the arguments.
fn parts(declared: &Declared) -> Vec<TypeId> {
    match declared.types.get(declared.function) {
        Type::Function(parts) => parts.clone(),
        _ => Vec::new(),
    }
}

/// Types of two versions, compared.
struct Pair<'a> {
    older: &'a Types,
    newer: &'a Types,
    /// The functions, if the types are those of two functions.
    declared: Option<[&'a Declared; 2]>,
    /// Pairs behind pointers and in arrays that are compared, or being compared, each with `is_result` and
    /// `is_guarded`.
    seen: HashSet<(TypeId, TypeId, bool, bool)>,
    depth: usize,
    reserved: Reserved,
    /// Whether to compare what pointers point to.
    follows: bool,
    /// Whether the types compared now are behind a pointer that is not to a constant: memory that the function may
    /// write.
    is_result: bool,
    /// Whether a guard covers all differences of the types compared now.
    is_guarded: bool,
    /// Position of the types compared now.
    at: Vec<String>,
    found: Vec<Difference>,
}

impl<'a> Pair<'a> {
    fn new(reserved: Reserved, older: &'a Types, newer: &'a Types) -> Self {
        Self {
            reserved,
            older,
            newer,
            declared: None,
            seen: HashSet::new(),
            depth: 0,
            follows: true,
            is_result: false,
            is_guarded: false,
            at: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Adds a difference at the current position.
    fn add(&mut self, kind: Kind, what: String) {
        let (kind, what) = match self.found.len() {
            ..LIMIT => (kind, what),
            LIMIT => (Kind::Limit, format!("more than {LIMIT} differences")),
            _ => return,
        };
        let at = self.at.join(": ");
        self.found.push(Difference {
            kind,
            at,
            what,
            guard: None,
        });
    }

    /// Compares at a position within the current one.
    fn nested(&mut self, position: impl Into<String>, compare: impl FnOnce(&mut Self)) {
        self.at.push(position.into());
        compare(self);
        self.at.pop();
    }

    /// Compares results and arguments.
    fn parts(&mut self, a: &[TypeId], b: &[TypeId]) {
        if a.len() != b.len() {
            let count = |parts: &[TypeId]| parts.len().saturating_sub(1);
            let what = format!("{} -> {} arguments", count(a), count(b));
            return self.add(Kind::Arguments, what);
        }
        for (index, (&a, &b)) in a.iter().zip(b).enumerate() {
            let position = match index {
                0 => "result".to_owned(),
                _ => format!("argument {}", index - 1),
            };
            self.nested(position, |pair| pair.types(a, b));
        }
    }

    fn types(&mut self, a: TypeId, b: TypeId) {
        if self.depth == DEPTH {
            return self.add(Kind::Limit, format!("more than {DEPTH} types deep"));
        }
        self.depth += 1;
        self.layers(a, b);
        self.depth -= 1;
    }

    fn layers(&mut self, a: TypeId, b: TypeId) {
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
            ) if m == n => {
                let key = (*a, *b, self.is_result, self.is_guarded);
                if self.seen.insert(key) {
                    self.types(*a, *b);
                }
            }
            (Type::Record { .. }, Type::Record { .. }) => self.records(a, b),
            (
                Type::Enum {
                    values: x, size: m, ..
                },
                Type::Enum {
                    values: y, size: n, ..
                },
            ) if m == n => self.enums((a, x), (b, y)),
            (Type::Void, Type::Void) => {}
            (Type::Float(m), Type::Float(n)) if m == n => {}
            _ => match (in_register(old), in_register(new)) {
                (Some(m), Some(n)) if m == n => {}
                _ => {
                    let (old, new) = (describe(older, a), describe(newer, b));
                    self.add(Kind::Type, format!("{old} -> {new}"));
                }
            },
        }
    }

    fn pointees(&mut self, a: TypeId, b: TypeId) {
        let is_opaque = |of: &Type| {
            matches!(
                of,
                Type::Void | Type::Function(_) | Type::Record { members: None, .. }
            ) || is_handle(of)
        };
        let is_result = !self.newer.is_constant(b);
        if !self.follows
            || is_opaque(self.older.get(a))
            || is_opaque(self.newer.get(b))
            || !self.seen.insert((a, b, is_result, self.is_guarded))
        {
            return;
        }
        self.pointee(a, b, is_result);
    }

    /// Compares types behind an untyped pointer: the library's own, without what they point to, which may be another
    /// library's.
    fn untyped(&mut self, a: TypeId, b: TypeId) {
        self.follows = false;
        self.pointee(a, b, true);
        self.follows = true;
    }

    fn pointee(&mut self, a: TypeId, b: TypeId, is_result: bool) {
        let was = (self.is_result, self.is_guarded);
        let guards = self.guards(a, b);
        self.is_result = is_result;
        self.is_guarded |= guards.cover_all();
        let start = self.found.len();
        self.types(a, b);
        self.guard(start, &guards);
        (self.is_result, self.is_guarded) = was;
    }
}

/// Name of a type that the headers may leave without one.
fn name(types: &Types, id: TypeId, unnamed: &str) -> String {
    types.names(id).last().unwrap_or(unnamed).to_owned()
}

/// Size of a value that fits into an integer register.
fn in_register(of: &Type) -> Option<u64> {
    match of {
        Type::Integer(size) | Type::Enum { size, .. } => Some(*size),
        Type::Pointer(_) => Some(64),
        _ => None,
    }
}

fn describe(types: &Types, id: TypeId) -> String {
    match types.get(id) {
        Type::Void => "nothing".into(),
        Type::Integer(size) | Type::Enum { size, .. } => format!("{} bytes", size / 8),
        Type::Float(size) => format!("{} bytes of a float", size / 8),
        Type::Pointer(_) => "a pointer".into(),
        Type::Function(_) => "a function".into(),
        Type::Array { size, .. } => format!("an array of {} bytes", size / 8),
        Type::Record { size, .. } => {
            let name = name(types, id, "a struct");
            format!("{name} of {} bytes", size / 8)
        }
    }
}

#[cfg(test)]
mod tests;
