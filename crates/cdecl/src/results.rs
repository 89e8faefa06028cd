//! Classes of functions' results: what a caller receives if the function cannot be called.

use std::collections::BTreeMap;

use crate::fields::leaves;
use crate::headers::Version;
use crate::types::{Declared, Type, TypeId, Types};

/// Class of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultClass {
    /// No result.
    Void,
    /// Code that reports success or an error.
    Status,
    /// Constant C string.
    String,
    /// Another pointer, number or struct, in registers: NULL or zero.
    Null,
    /// Struct of this size in bytes that the caller provides memory for.
    Struct(u64),
    /// Struct of this size of up to four equal floating-point members (AAPCS64 6.9), more than 16 bytes.
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
const IN_REGISTERS: u64 = 128;

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
    pub fn new(version: &Version) -> Self {
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
        let most = enums.iter().max_by_key(|(_, count)| *count);
        let functions = version.functions.iter();
        let classes = functions.filter_map(|(name, declared)| {
            let is_status = match most {
                Some(_) => status_enum(declared).is_some(),
                None => is_int(declared),
            };
            let class = if is_status {
                ResultClass::Status
            } else {
                class(&declared.types, result(declared)?)?
            };
            Some((name.clone(), class))
        });
        Self {
            classes: classes.collect(),
            unavailable: most.and_then(|(values, _)| unavailable(values)),
        }
    }
}

/// Type of a function's result.
fn result(declared: &Declared) -> Option<TypeId> {
    match declared.types.get(declared.function) {
        Type::Function(parts) => parts.first().copied(),
        _ => None,
    }
}

/// Enumerators of the status that a function returns, also as the first member of a struct in one register.
fn status_enum(declared: &Declared) -> Option<&BTreeMap<String, i128>> {
    let types = &declared.types;
    let mut found = types.get(result(declared)?);
    if let Type::Record {
        size: ..=64,
        members: Some(members),
        ..
    } = found
    {
        let first = members.first().filter(|member| member.size == 32)?;
        found = types.get(first.of);
    }
    let Type::Enum {
        size: 32, values, ..
    } = found
    else {
        return None;
    };
    let is_success = |(name, value): (&String, &i128)| {
        let words = plain(name);
        *value == 0
            && ["SUCCESS", "OK", "NOERROR"]
                .iter()
                .any(|word| words.ends_with(word))
    };
    values.iter().any(is_success).then_some(values)
}

/// Name of an enumerator without case and underscores.
fn plain(name: &str) -> String {
    name.to_ascii_uppercase().replace('_', "")
}

fn unavailable(values: &BTreeMap<String, i128>) -> Option<(String, i32)> {
    let mut words = UNAVAILABLE.iter();
    words.find_map(|word| {
        let mut errors = values.iter().filter(|(_, value)| **value != 0);
        let (name, value) = errors.find(|(name, _)| plain(name).ends_with(word))?;
        Some((name.clone(), i32::try_from(*value).ok()?))
    })
}

fn is_int(declared: &Declared) -> bool {
    result(declared).is_some_and(|result| declared.types.basic_name(result) == Some("int"))
}

/// Class of a result that is no status; `None`: the class depends on more than these rules know.
fn class(types: &Types, result: TypeId) -> Option<ResultClass> {
    Some(match types.get(result) {
        Type::Void => ResultClass::Void,
        Type::Pointer(of) if types.is_constant(*of) && types.basic_name(*of) == Some("char") => {
            ResultClass::String
        }
        record @ Type::Record { size, .. } if *size > IN_REGISTERS => {
            struct_class(types, record, *size)?
        }
        _ => ResultClass::Null,
    })
}

/// Class of a struct that is too large for two registers.
fn struct_class(types: &Types, record: &Type, size: u64) -> Option<ResultClass> {
    let mut floats = Vec::new();
    for leaf in leaves(types, record).ok()? {
        match element(types, leaf.of) {
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
    let mut found = types.get(id);
    // A damaged module may have arrays of themselves.
    for _ in 0..crate::fields::DEPTH {
        match found {
            Type::Array { element, .. } => found = types.get(*element),
            _ => break,
        }
    }
    found
}
