//! Classes of functions' results: what a caller receives if the function cannot be called.

use std::collections::BTreeMap;

use crate::fields::{MAX_DEPTH, leaves};
use crate::headers::Declarations;
use crate::types::{DeclaredFunction, Type, TypeId, Types};

/// Class of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultClass {
    /// No result.
    Void,
    /// Code that reports success or an error.
    Status,
    /// Constant C string.
    String,
    /// Another pointer, number or union, in registers: NULL or zero.
    Null,
    /// Struct of this size in bytes: in memory of the caller, or in registers.
    Struct(u64),
    /// Struct of this size of up to four equal floating-point members (AAPCS64 6.9).
    Hfa(u64),
}

/// Classes of the functions of one library.
#[derive(Debug, Default)]
pub struct Results {
    /// Classes by function, without those that are unknown.
    pub classes: BTreeMap<String, ResultClass>,
    /// Name and value of the status that reports a library as not available.
    pub unavailable: Option<(String, i32)>,
}

/// Largest struct that is returned in registers, in bits, unless all members are floating-point numbers (x86-64
/// psABI 3.2.3; AAPCS64 6.9).
const MAX_BITS_IN_REGISTERS: u64 = 128;

/// Words in names of status codes that mean a missing library, the best first.
const UNAVAILABLE: [&str; 5] = [
    "NOTINITIALIZED",
    "UNINITIALIZED",
    "NOTAVAILABLE",
    "UNAVAILABLE",
    "NODEVICE",
];

impl Results {
    /// Classes of the declared functions. Statuses are enumerations whose value 0 is named a success; if no
    /// function returns one, `int`.
    pub fn new(version: &Declarations) -> Self {
        let mut enums: Vec<(&BTreeMap<String, i128>, usize)> = Vec::new();
        for declared in version.functions.values() {
            let Some(values) = status_enum(declared) else {
                continue;
            };
            match enums.iter_mut().find(|(known, _)| *known == values) {
                Some((_, count)) => *count += 1,
                None => enums.push((values, 1)),
            }
        }
        let most_common = enums.iter().max_by_key(|(_, count)| *count);
        let mut classes = BTreeMap::new();
        for (name, declared) in &version.functions {
            let is_status = match most_common {
                Some(_) => status_enum(declared).is_some(),
                None => is_int(declared),
            };
            let class = if is_status {
                Some(ResultClass::Status)
            } else {
                result(declared).and_then(|result| class(&declared.types, result))
            };
            if let Some(class) = class {
                classes.insert(name.clone(), class);
            }
        }
        Self {
            classes,
            unavailable: most_common.and_then(|(values, _)| unavailable(values)),
        }
    }
}

/// Type of a function's result.
fn result(declared: &DeclaredFunction) -> Option<TypeId> {
    match declared.types.get(declared.function) {
        Type::Function(signature) => signature.first().copied(),
        _ => None,
    }
}

/// Enumerators of the status that a function returns, also as the first member of a struct in one register.
fn status_enum(declared: &DeclaredFunction) -> Option<&BTreeMap<String, i128>> {
    let types = &declared.types;
    let mut status = types.get(result(declared)?);
    if let Type::Record {
        size: ..=64,
        members: Some(members),
        ..
    } = status
    {
        let first = members.first().filter(|member| member.size == 32)?;
        status = types.get(first.type_id);
    }
    let Type::Enum {
        size: 32, values, ..
    } = status
    else {
        return None;
    };
    values
        .iter()
        .any(|(name, value)| *value == 0 && is_success(name))
        .then_some(values)
}

fn is_success(enumerator: &str) -> bool {
    let name = normalized(enumerator);
    ["SUCCESS", "OK", "NOERROR"]
        .iter()
        .any(|word| name.ends_with(word))
}

/// Name of an enumerator without case and underscores.
fn normalized(name: &str) -> String {
    name.to_ascii_uppercase().replace('_', "")
}

fn unavailable(values: &BTreeMap<String, i128>) -> Option<(String, i32)> {
    UNAVAILABLE.iter().find_map(|word| {
        let (name, value) = values
            .iter()
            .find(|(name, value)| **value != 0 && normalized(name).ends_with(word))?;
        Some((name.clone(), i32::try_from(*value).ok()?))
    })
}

fn is_int(declared: &DeclaredFunction) -> bool {
    result(declared).is_some_and(|result| declared.types.basic_name(result) == Some("int"))
}

/// Class of a result that is no status; `None`: the class depends on more than these rules know.
fn class(types: &Types, result: TypeId) -> Option<ResultClass> {
    Some(match types.get(result) {
        Type::Void => ResultClass::Void,
        Type::Pointer(pointee)
            if types.is_constant(*pointee) && types.basic_name(*pointee) == Some("char") =>
        {
            ResultClass::String
        }
        // On the x87 stack of x86-64: class X87 or COMPLEX_X87 (psABI 3.2.3).
        Type::Float(65..) | Type::Integer(129..) => return None,
        record @ Type::Record { size: 128, .. } if has_long_double(types, record) => return None,
        record @ Type::Record { size, .. } => match struct_class(types, record, *size) {
            None if *size <= MAX_BITS_IN_REGISTERS => ResultClass::Null,
            class => class?,
        },
        _ => ResultClass::Null,
    })
}

fn has_long_double(types: &Types, record: &Type) -> bool {
    leaves(types, record).is_ok_and(|leaves| {
        leaves
            .iter()
            .any(|leaf| matches!(element(types, leaf.type_id), Type::Float(65..)))
    })
}

/// Class of a struct with any members.
fn struct_class(types: &Types, record: &Type, size: u64) -> Option<ResultClass> {
    let mut floats = Vec::new();
    for leaf in leaves(types, record).ok()? {
        match element(types, leaf.type_id) {
            Type::Float(bits) => floats.push(*bits),
            // Wider ones may be vectors or complex numbers.
            Type::Integer(..=64) | Type::Pointer(_) | Type::Enum { .. } => {
                return Some(ResultClass::Struct(size / 8));
            }
            _ => return None,
        }
    }
    let first = *floats.first()?;
    let is_hfa = floats.iter().all(|bits| *bits == first) && size <= first.saturating_mul(4);
    Some(if is_hfa {
        ResultClass::Hfa(size / 8)
    } else {
        ResultClass::Struct(size / 8)
    })
}

/// Type of the elements of an array, or the type itself.
fn element(types: &Types, id: TypeId) -> &Type {
    let mut element = types.get(id);
    // A damaged module may have arrays of themselves.
    for _ in 0..MAX_DEPTH {
        let Type::Array { element: inner, .. } = element else {
            break;
        };
        element = types.get(*inner);
    }
    element
}
