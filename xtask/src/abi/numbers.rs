//! Enumerations in arguments whose numbers adapters map: `xtask/data/numbers.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use gpustub_cdecl::{Declared, Type, TypeId, same_values};
use gpustub_core::version::Version;
use serde::Deserialize;

use super::history::Evidence;
use super::table::{AbiVariant, Group};

/// A row of the file, which describes the keys.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Enumeration {
    old: String,
    new: String,
    since: String,
    kind: char,
    #[serde(default)]
    names: [String; 2],
    #[serde(default)]
    renamed: BTreeMap<String, String>,
    #[serde(default)]
    none: BTreeSet<String>,
    preferred: Option<String>,
    #[serde(default)]
    by_hand: bool,
}

/// Two variants of a group whose calls differ in numbers only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered {
    pub old: usize,
    pub new: usize,
    /// Major that introduced the newer variant.
    since: u32,
    /// Kind of each argument, `.` for those that are passed as they are.
    kinds: String,
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

fn parse(text: &str) -> Result<BTreeMap<String, Vec<Enumeration>>, String> {
    let libraries: BTreeMap<String, Vec<Enumeration>> =
        toml::from_str(text).map_err(|e| e.to_string())?;
    for row in libraries.values().flatten() {
        row.since_version()?;
    }
    Ok(libraries)
}

/// Types of the result and the arguments.
fn parts(declared: &Declared) -> &[TypeId] {
    match declared.types.get(declared.function) {
        Type::Function(parts) => parts,
        _ => &[],
    }
}

/// The pairs of variants, numbered from 1, whose calls differ in these enumerations only.
pub fn numbered(enumerations: &[Enumeration], variants: &[Declared]) -> Vec<Numbered> {
    let mut found = Vec::new();
    for (old, older) in (1..).zip(variants) {
        for (new, newer) in (1..).zip(variants).skip(old) {
            if let Some((since, kinds)) = kinds(enumerations, older, newer) {
                found.push(Numbered {
                    old,
                    new,
                    since,
                    kinds,
                });
            }
        }
    }
    found
}

/// Major and kinds of the arguments, if the declarations differ in enumerations, and in nothing else.
fn kinds(
    enumerations: &[Enumeration],
    older: &Declared,
    newer: &Declared,
) -> Option<(u32, String)> {
    let ids = |declared| parts(declared).iter().copied();
    if parts(older).len() != parts(newer).len() {
        return None;
    }
    let (mut since, mut kinds) = (None, String::new());
    for (at, (a, b)) in ids(older).zip(ids(newer)).enumerate() {
        let is_word = |declared: &Declared, id| {
            let of = declared.types.get(id);
            matches!(of, Type::Integer(_) | Type::Enum { .. } | Type::Pointer(_))
        };
        let is_same = same_values((&older.types, a), (&newer.types, b)).is_ok();
        if at == 0 {
            if !is_same {
                return None;
            }
            continue;
        }
        if !is_word(older, a) || !is_word(newer, b) {
            return None;
        }
        let row = enumerations.iter().find_map(|row| {
            let is_output = row.fits((older, a), (newer, b))?;
            Some((row, is_output))
        });
        match row {
            _ if is_same => kinds.push('.'),
            None => return None,
            Some((row, is_output)) => {
                since = row.since_version().ok();
                kinds.push(if is_output {
                    row.kind.to_ascii_uppercase()
                } else {
                    row.kind
                });
            }
        }
    }
    Some((since?.major, kinds))
}

impl Enumeration {
    fn since_version(&self) -> Result<Version, String> {
        let since = Version::parse(&self.since);
        since.ok_or_else(|| format!("`{}` is no version", self.since))
    }

    /// Whether an argument points to the enumeration; `None`: it has another type.
    fn fits(&self, older: (&Declared, TypeId), newer: (&Declared, TypeId)) -> Option<bool> {
        let pointee = |(declared, id): (&Declared, TypeId)| match declared.types.get(id) {
            Type::Pointer(of) => Some(*of),
            _ => None,
        };
        let is_named = |(declared, id): (&Declared, TypeId), name: &str| {
            declared.types.names(id).any(|of| of == name)
        };
        let fits = |a, b| is_named((older.0, a), &self.old) && is_named((newer.0, b), &self.new);
        match (pointee(older), pointee(newer)) {
            (Some(a), Some(b)) => fits(a, b).then_some(true),
            (None, None) => fits(older.1, newer.1).then_some(false),
            _ => None,
        }
    }

    /// Name of the table in C.
    fn table(&self) -> String {
        if self.old == self.new {
            format!("{}_numbers", self.old)
        } else {
            format!("{}_to_{}", self.old, self.new)
        }
    }

    /// Numbers by name in the versions that `wanted` accepts.
    fn values(
        &self,
        evidence: &[Evidence],
        name: &str,
        wanted: impl Fn(Version) -> bool,
    ) -> Result<BTreeMap<String, i128>, String> {
        let mut found: BTreeMap<String, i128> = BTreeMap::new();
        for version in evidence.iter().filter(|of| wanted(of.version)) {
            for declared in version.headers.functions.values() {
                for id in parts(declared) {
                    let id = match declared.types.get(*id) {
                        Type::Pointer(of) => of,
                        _ => id,
                    };
                    if !declared.types.names(*id).any(|of| of == name) {
                        continue;
                    }
                    if let Type::Enum { values, .. } = declared.types.get(*id) {
                        for (enumerator, number) in values {
                            let other = found.insert(enumerator.clone(), *number);
                            if other.is_some_and(|other| other != *number) {
                                return Err(format!("{enumerator} has several numbers"));
                            }
                        }
                    }
                }
            }
        }
        if found.is_empty() {
            return Err(format!("no headers have {name}"));
        }
        Ok(found)
    }

    /// Pairs of numbers, with the names, in the order of preference.
    fn pairs(&self, evidence: &[Evidence]) -> Result<Vec<Pair>, String> {
        let since = self.since_version()?;
        let old = self.values(evidence, &self.old, |version| version < since)?;
        let new = self.values(evidence, &self.new, |version| version >= since)?;
        let mut pairs: BTreeMap<(bool, i128), Pair> = BTreeMap::new();
        let mut missing: BTreeMap<i128, &str> = BTreeMap::new();
        for (name, number) in &old {
            let common = name.strip_prefix(&self.names[0]).unwrap_or(name);
            let common = self.renamed.get(common).map_or(common, String::as_str);
            let other = format!("{}{common}", self.names[1]);
            let Some(newer) = new.get(&other) else {
                missing.insert(*number, name);
                continue;
            };
            let is_preferred = self
                .preferred
                .as_ref()
                .is_some_and(|of| name.starts_with(of));
            let pair = Pair {
                old: *number,
                new: *newer,
                names: [name.clone(), other],
            };
            if let Some(known) = pairs.insert((!is_preferred, *number), pair)
                && known.new != *newer
            {
                return Err(format!("{number} is {} and {name}", known.names[0]));
            }
        }
        missing.retain(|number, _| !pairs.keys().any(|(_, known)| known == number));
        let found: BTreeSet<String> = missing.values().map(|name| (*name).to_owned()).collect();
        if found != self.none {
            return Err(format!(
                "`none` is {:?}, but lacks a counterpart: {found:?}",
                self.none
            ));
        }
        Ok(pairs.into_values().collect())
    }
}

/// Numbers of an enumerator in both types.
struct Pair {
    old: i128,
    new: i128,
    names: [String; 2],
}

impl Group {
    /// Whether a version has a function of variant `to`, and none of variant `from`, which another has.
    fn is_needed(&self, versions: &[Version], from: usize, to: usize) -> bool {
        let has = |version: Version, number: usize| {
            let mut names = self.names.keys();
            names.any(|name| self.variant(name, version) == AbiVariant::Number(number))
        };
        versions.iter().any(|v| has(*v, from))
            && versions.iter().any(|v| has(*v, to) && !has(*v, from))
    }

    /// Adapters for numbers, as the variant of the caller, that of the library, the name of the adapter and the kinds.
    fn numbered(&self, versions: &[Version]) -> Vec<(usize, usize, String, &str)> {
        let mut found = Vec::new();
        for Numbered {
            old,
            new,
            since,
            kinds,
        } in &self.numbered
        {
            for (from, to, word) in [(*old, *new, "by"), (*new, *old, "of")] {
                if self.is_needed(versions, from, to) {
                    found.push((from, to, format!("numbers_{word}_{since}"), kinds.as_str()));
                }
            }
        }
        found
    }

    /// Lines of the ABI table for calls with other numbers.
    pub fn number_lines(&self, versions: &[Version]) -> Vec<String> {
        let adapters = self.numbered(versions).into_iter();
        let mut lines: Vec<String> = adapters
            .map(|(from, to, code, _)| format!("@adapter {from} {to} {code}"))
            .collect();
        let lacks = |version: &Version| {
            let mut names = self.names.keys();
            names.all(|name| self.variant(name, *version) == AbiVariant::Missing)
        };
        if !self.numbered.is_empty() && versions.iter().any(lacks) {
            let numbers = self.numbered.iter().flat_map(|of| [of.old, of.new]);
            let numbers: BTreeSet<usize> = numbers.collect();
            let refused = numbers.into_iter();
            lines.extend(
                refused.map(|n| format!("@refused {n} - the library has no such function")),
            );
        }
        lines
    }
}

/// The generated header of a library.
pub fn header(
    id: &str,
    enumerations: &[Enumeration],
    evidence: &[Evidence],
    groups: &[Group],
) -> Result<String, String> {
    let mut text = String::from(
        "/* Generated by `cargo xtask adapters` from xtask/data/numbers.toml and the headers; do not edit. Numbers of\n \
         * enumerations in older and newer headers, and the functions whose arguments have them. */\n",
    );
    for row in enumerations.iter().filter(|row| !row.by_hand) {
        let newer = if row.old == row.new {
            " and".to_owned()
        } else {
            format!(", {}", row.new)
        };
        let _ = write!(
            text,
            "\n/* {} before {}{newer} since then. */\nstatic const struct number {}[] = {{\n",
            row.old,
            row.since,
            row.table()
        );
        let pairs = row
            .pairs(evidence)
            .map_err(|e| format!("{id}: {}: {e}", row.old))?;
        for Pair { old, new, names } in pairs {
            let names = if names[0] == names[1] {
                names[0].clone()
            } else {
                names.join(", ")
            };
            let _ = writeln!(text, "    {{{old}, {new}}}, /* {names} */");
        }
        text += "};\n";
    }
    let versions: Vec<Version> = evidence.iter().map(|of| of.version).collect();
    let mut calls: BTreeMap<(String, &str), String> = BTreeMap::new();
    for group in groups {
        for (from, _, code, kinds) in group.numbered(&versions) {
            for (name, line) in &group.names {
                if line.iter().any(|(_, of)| *of == AbiVariant::Number(from)) {
                    let count = kinds.len();
                    let call = format!("NUMBERS({name}, {code}, {count}, \"{kinds}\")\n");
                    calls.insert((code.clone(), name), call);
                }
            }
        }
    }
    text.push('\n');
    text.extend(calls.into_values());
    Ok(text)
}

#[cfg(test)]
mod tests;
