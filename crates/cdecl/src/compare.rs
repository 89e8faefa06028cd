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

use crate::fields::{MAX_DEPTH, is_handle};
use crate::types::{DeclaredFunction, Type, TypeId, Types};

/// Maximum number of differences that are listed. Structs of GPU libraries have less than 200 fields.
const MAX_DIFFERENCES: usize = 256;

/// A difference between two declarations of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Class of the difference.
    pub kind: DifferenceKind,
    /// Position in the function: `argument 1`, counted from 0. Empty for the function itself.
    pub position: String,
    /// The difference, with offsets and sizes in bytes: `cudaDeviceProp: 728 -> 1032 bytes`.
    pub description: String,
    /// Reason why the library handles the difference, with the words of its header.
    pub guard: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.position.is_empty() {
            write!(f, "{}: ", self.position)?;
        }
        f.write_str(&self.description)
    }
}

/// Class of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceKind {
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

impl DifferenceKind {
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
pub fn differences(
    older: &DeclaredFunction,
    newer: &DeclaredFunction,
    reserved: Reserved,
) -> Vec<Difference> {
    let mut comparison = Comparison::new(reserved, &older.types, &newer.types);
    comparison.declared = Some([older, newer]);
    comparison.compare_signatures(&signature(older), &signature(newer));
    for (name, a) in &older.untyped_pointees {
        if let Some(b) = newer.untyped_pointees.get(name) {
            comparison.nested("`void *`", |comparison| {
                comparison.compare_untyped_pointees(*a, *b);
            });
        }
    }
    comparison.differences
}

/// Checks that a caller of the older declaration can call the newer one.
///
/// # Errors
///
/// The first of [`differences`] without a guard: `4 -> 5 arguments`, `argument 1: cudaDeviceProp: 728 -> 1032 bytes`.
pub fn check_call(older: &DeclaredFunction, newer: &DeclaredFunction) -> Result<(), String> {
    first_unguarded(&differences(older, newer, Reserved::Written))
}

/// As [`check_call`], for functions in whose structs reserved bytes are zero, even if it may write these.
///
/// # Errors
///
/// The first difference.
pub fn check_call_with_zeroed_reserved(
    older: &DeclaredFunction,
    newer: &DeclaredFunction,
) -> Result<(), String> {
    first_unguarded(&differences(older, newer, Reserved::Zero))
}

fn first_unguarded(differences: &[Difference]) -> Result<(), String> {
    differences
        .iter()
        .find(|difference| difference.guard.is_none())
        .map_or(Ok(()), |difference| Err(difference.to_string()))
}

/// Checks that a value of the older type can be read as one of the newer type, as [`check_call`] does for
/// arguments.
///
/// # Errors
///
/// The first difference.
pub fn check_value(
    (older, a): (&Types, TypeId),
    (newer, b): (&Types, TypeId),
) -> Result<(), String> {
    let mut comparison = Comparison::new(Reserved::Zero, older, newer);
    comparison.compare_types(a, b);
    first_unguarded(&comparison.differences)
}

/// Checks that a call of the older declaration equals a call of the newer one with one more
/// argument, null, at this index from 0, and all of at most `max_arguments` arguments in integer
/// registers.
///
/// # Errors
///
/// The reason.
pub fn check_takes_null(
    older: &DeclaredFunction,
    newer: &DeclaredFunction,
    argument: u8,
    max_arguments: u8,
) -> Result<(), String> {
    let mut types = signature(newer);
    let are_in_registers = types
        .iter()
        .all(|id| in_register(newer.types.get(*id)).is_some_and(|size| size <= 64));
    if types.len() > usize::from(max_arguments) + 1 || !are_in_registers {
        return Err(format!("not {max_arguments} integers and pointers"));
    }
    let index = usize::from(argument) + 1;
    if !types
        .get(index)
        .is_some_and(|id| matches!(newer.types.get(*id), Type::Pointer(_)))
    {
        return Err(format!("argument {argument} is no pointer"));
    }
    types.remove(index);
    let mut comparison = Comparison::new(Reserved::Written, &older.types, &newer.types);
    comparison.compare_signatures(&signature(older), &types);
    first_unguarded(&comparison.differences)
}

/// Types of the result and the arguments.
fn signature(declared: &DeclaredFunction) -> Vec<TypeId> {
    match declared.types.get(declared.function) {
        Type::Function(signature) => signature.clone(),
        _ => Vec::new(),
    }
}

/// Comparison of types of two versions.
struct Comparison<'a> {
    older: &'a Types,
    newer: &'a Types,
    /// The functions, if the types are those of two functions.
    declared: Option<[&'a DeclaredFunction; 2]>,
    /// Pairs behind pointers and in arrays that are compared, or being compared, each with `is_result` and
    /// `is_guarded`.
    compared: HashSet<(TypeId, TypeId, bool, bool)>,
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
    position: Vec<String>,
    differences: Vec<Difference>,
}

impl<'a> Comparison<'a> {
    fn new(reserved: Reserved, older: &'a Types, newer: &'a Types) -> Self {
        Self {
            reserved,
            older,
            newer,
            declared: None,
            compared: HashSet::new(),
            depth: 0,
            follows: true,
            is_result: false,
            is_guarded: false,
            position: Vec::new(),
            differences: Vec::new(),
        }
    }

    /// Adds a difference at the current position.
    fn add(&mut self, kind: DifferenceKind, description: String) {
        let (kind, description) = match self.differences.len() {
            ..MAX_DIFFERENCES => (kind, description),
            MAX_DIFFERENCES => (
                DifferenceKind::Limit,
                format!("more than {MAX_DIFFERENCES} differences"),
            ),
            _ => return,
        };
        self.differences.push(Difference {
            kind,
            position: self.position.join(": "),
            description,
            guard: None,
        });
    }

    /// Compares at a position within the current one.
    fn nested(&mut self, position: impl Into<String>, compare: impl FnOnce(&mut Self)) {
        self.position.push(position.into());
        compare(self);
        self.position.pop();
    }

    /// Compares results and arguments.
    fn compare_signatures(&mut self, a: &[TypeId], b: &[TypeId]) {
        if a.len() != b.len() {
            let [old_count, new_count] = [a, b].map(|types| types.len().saturating_sub(1));
            let description = format!("{old_count} -> {new_count} arguments");
            return self.add(DifferenceKind::Arguments, description);
        }
        for (index, (&a, &b)) in a.iter().zip(b).enumerate() {
            let position = match index {
                0 => "result".to_owned(),
                _ => format!("argument {}", index - 1),
            };
            self.nested(position, |comparison| comparison.compare_types(a, b));
        }
    }

    fn compare_types(&mut self, a: TypeId, b: TypeId) {
        if self.depth == MAX_DEPTH {
            return self.add(
                DifferenceKind::Limit,
                format!("more than {MAX_DEPTH} types deep"),
            );
        }
        self.depth += 1;
        self.compare_by_class(a, b);
        self.depth -= 1;
    }

    fn compare_by_class(&mut self, a: TypeId, b: TypeId) {
        let (older, newer) = (self.older, self.newer);
        let (old, new) = (older.get(a), newer.get(b));
        match (old, new) {
            (Type::Pointer(a), Type::Pointer(b)) => self.compare_pointees(*a, *b),
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
                if self.compared.insert(key) {
                    self.compare_types(*a, *b);
                }
            }
            (Type::Record { .. }, Type::Record { .. }) => self.compare_records(a, b),
            (
                Type::Enum {
                    values: old_values,
                    size: m,
                    ..
                },
                Type::Enum {
                    values: new_values,
                    size: n,
                    ..
                },
            ) if m == n => self.compare_enums((a, old_values), (b, new_values)),
            (Type::Void, Type::Void) => {}
            (Type::Float(m), Type::Float(n)) if m == n => {}
            _ => match (in_register(old), in_register(new)) {
                (Some(m), Some(n)) if m == n => {}
                _ => {
                    let (old, new) = (describe(older, a), describe(newer, b));
                    self.add(DifferenceKind::Type, format!("{old} -> {new}"));
                }
            },
        }
    }

    fn compare_pointees(&mut self, a: TypeId, b: TypeId) {
        let is_result = !self.newer.is_constant(b);
        if !self.follows
            || is_opaque(self.older.get(a))
            || is_opaque(self.newer.get(b))
            || !self.compared.insert((a, b, is_result, self.is_guarded))
        {
            return;
        }
        self.compare_guarded(a, b, is_result);
    }

    /// Compares types behind an untyped pointer: the library's own, without what they point to, which may be another
    /// library's.
    fn compare_untyped_pointees(&mut self, a: TypeId, b: TypeId) {
        self.follows = false;
        self.compare_guarded(a, b, true);
        self.follows = true;
    }

    fn compare_guarded(&mut self, a: TypeId, b: TypeId, is_result: bool) {
        let outer = (self.is_result, self.is_guarded);
        let guards = self.guards(a, b);
        self.is_result = is_result;
        self.is_guarded |= guards.cover_all();
        let start = self.differences.len();
        self.compare_types(a, b);
        self.guard(start, &guards);
        (self.is_result, self.is_guarded) = outer;
    }
}

/// Whether nothing behind a pointer to this type is compared.
fn is_opaque(pointee: &Type) -> bool {
    matches!(
        pointee,
        Type::Void | Type::Function(_) | Type::Record { members: None, .. }
    ) || is_handle(pointee)
}

/// Name of a type that the headers may leave without one.
fn name(types: &Types, id: TypeId, unnamed: &str) -> String {
    types.names(id).last().unwrap_or(unnamed).to_owned()
}

/// Size of a value that fits into an integer register.
fn in_register(value_type: &Type) -> Option<u64> {
    match value_type {
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
