//! Enumerations in arguments whose numbers adapters map: `xtask/data/numbers.toml`.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_cdecl::{DeclaredFunction, Type, TypeId, check_value};
use gpustub_core::version::Version;
use serde::Deserialize;

/// A row of the file, which describes the keys.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Enumeration {
    pub old: String,
    pub new: String,
    pub since: String,
    pub kind: char,
    #[serde(default)]
    pub names: [String; 2],
    #[serde(default)]
    pub renamed: BTreeMap<String, String>,
    #[serde(default)]
    pub none: BTreeSet<String>,
    pub preferred: Option<String>,
    #[serde(default)]
    pub by_hand: bool,
}

/// Two variants of a group whose calls differ in numbers only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered {
    pub old: usize,
    pub new: usize,
    /// Major that introduced the newer variant.
    pub since: u32,
    /// Kind of each argument, `.` for those that are passed as they are.
    pub kinds: String,
}

/// The rows of a library.
pub fn enumerations(id: &str) -> Result<Vec<Enumeration>, String> {
    let text = include_str!("../../data/numbers.toml");
    let mut libraries = parse(text).map_err(|e| format!("numbers.toml: {e}"))?;
    Ok(libraries.remove(id).unwrap_or_default())
}

/// Libraries with rows.
pub fn libraries() -> Result<BTreeSet<String>, String> {
    let text = include_str!("../../data/numbers.toml");
    let libraries = parse(text).map_err(|e| format!("numbers.toml: {e}"))?;
    Ok(libraries.into_keys().collect())
}

/// Reads the file.
pub fn parse(text: &str) -> Result<BTreeMap<String, Vec<Enumeration>>, String> {
    let libraries: BTreeMap<String, Vec<Enumeration>> =
        toml::from_str(text).map_err(|e| e.to_string())?;
    for row in libraries.values().flatten() {
        row.since_version()?;
    }
    Ok(libraries)
}

/// Types of the result and the arguments.
pub fn parts(declared: &DeclaredFunction) -> &[TypeId] {
    match declared.types.get(declared.function) {
        Type::Function(parts) => parts,
        _ => &[],
    }
}

/// The pairs of variants, numbered from 1, whose calls differ in these enumerations only.
pub fn numbered(enumerations: &[Enumeration], variants: &[DeclaredFunction]) -> Vec<Numbered> {
    let mut pairs = Vec::new();
    for (old, older) in (1..).zip(variants) {
        for (new, newer) in (1..).zip(variants).skip(old) {
            if let Some((since, kinds)) = kinds(enumerations, older, newer) {
                pairs.push(Numbered {
                    old,
                    new,
                    since,
                    kinds,
                });
            }
        }
    }
    pairs
}

/// Major and kinds of the arguments, if the declarations differ in enumerations, and in nothing else.
fn kinds(
    enumerations: &[Enumeration],
    older: &DeclaredFunction,
    newer: &DeclaredFunction,
) -> Option<(u32, String)> {
    if parts(older).len() != parts(newer).len() {
        return None;
    }
    let (mut since, mut kinds) = (None, String::new());
    for (index, (&a, &b)) in parts(older).iter().zip(parts(newer)).enumerate() {
        let is_same = check_value((&older.types, a), (&newer.types, b)).is_ok();
        // The first part is the result.
        if index == 0 {
            if !is_same {
                return None;
            }
            continue;
        }
        if !is_word(older, a) || !is_word(newer, b) {
            return None;
        }
        if is_same {
            kinds.push('.');
            continue;
        }
        let (row, is_output) = enumerations.iter().find_map(|row| {
            let is_output = row.fits((older, a), (newer, b))?;
            Some((row, is_output))
        })?;
        since = row.since_version().ok();
        kinds.push(if is_output {
            row.kind.to_ascii_uppercase()
        } else {
            row.kind
        });
    }
    Some((since?.major, kinds))
}

/// Whether an argument of this type is in one integer register.
fn is_word(declared: &DeclaredFunction, id: TypeId) -> bool {
    matches!(
        declared.types.get(id),
        Type::Integer(_) | Type::Enum { .. } | Type::Pointer(_)
    )
}

/// Whether a type has a name.
pub fn is_named(declared: &DeclaredFunction, id: TypeId, name: &str) -> bool {
    declared.types.names(id).any(|type_name| type_name == name)
}

impl Enumeration {
    /// The version that introduced the newer numbers.
    pub fn since_version(&self) -> Result<Version, String> {
        Version::parse(&self.since).ok_or_else(|| format!("`{}` is no version", self.since))
    }

    /// Whether an argument points to the enumeration; `None`: it has another type.
    fn fits(
        &self,
        older: (&DeclaredFunction, TypeId),
        newer: (&DeclaredFunction, TypeId),
    ) -> Option<bool> {
        let (a, b, is_output) = match (older.0.types.get(older.1), newer.0.types.get(newer.1)) {
            (Type::Pointer(a), Type::Pointer(b)) => (*a, *b, true),
            (Type::Pointer(_), _) | (_, Type::Pointer(_)) => return None,
            _ => (older.1, newer.1, false),
        };
        let fits = is_named(older.0, a, &self.old) && is_named(newer.0, b, &self.new);
        fits.then_some(is_output)
    }
}
