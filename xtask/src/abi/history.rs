//! ABI variant of each name, from version to version.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_cdecl::{self as headers, DeclaredFunction, check_takes_null};
use gpustub_core::abi_table::MAX_ARGUMENTS;
use gpustub_core::version::Version;

use super::numbers::{Enumeration, numbered};
use super::reviewed::Reviewed;
use super::table::{AbiTable, AbiVariant, Group, NullAdapter};

/// Evidence about one version.
pub struct Evidence {
    pub version: Version,
    /// The library's own number, if that is another one.
    pub own_version: Option<String>,
    pub headers: headers::Declarations,
    /// Exports of the library, if installed; else declarations of the headers.
    pub exports: Option<BTreeSet<String>>,
}

/// All names of a library, in groups.
pub struct History {
    pub table: AbiTable,
    /// Exported names that do not identify headers: no header declares them, or the library of a header
    /// that declares them lacks them.
    pub undeclared: BTreeSet<String>,
}

/// Computes all groups from ascending versions. `Err` names a review that the headers contradict.
pub fn history(
    evidence: &[Evidence],
    reviewed: &Reviewed,
    enumerations: &[Enumeration],
) -> Result<History, String> {
    let mut names = BTreeSet::new();
    for version in evidence {
        names.extend(exported(version));
    }
    let mut undeclared = BTreeSet::new();
    for version in evidence {
        let Some(exports) = &version.exports else {
            continue;
        };
        for name in version.headers.functions.keys() {
            if !exports.contains(name) && names.contains(name) {
                undeclared.insert(name.clone());
            }
        }
    }
    let mut names_by_group: BTreeMap<(String, String), Vec<Name>> = BTreeMap::new();
    for name in names {
        match declarations(&name, evidence) {
            Some(declarations) => {
                let names = names_by_group.entry(reviewed.group(&name)).or_default();
                names.push(Name { name, declarations });
            }
            None => drop(undeclared.insert(name)),
        }
    }
    for (nullable, _) in reviewed.nullable {
        if !names_by_group.keys().any(|(stem, _)| stem == nullable) {
            return Err(format!("nullable: no version has {nullable}"));
        }
    }
    let mut groups = Vec::new();
    for ((stem, _), names) in &names_by_group {
        let (mut group, variants) = group(names, evidence, reviewed, reviewed.nullable(stem))
            .map_err(|e| format!("nullable: {stem}: {e}"))?;
        group.numbered = numbered(enumerations, &variants);
        groups.push(group);
    }
    Ok(History {
        table: AbiTable {
            renamed: renamed(&groups, reviewed)?,
            headers: evidence.iter().map(|e| e.version).collect(),
            own_versions: evidence
                .iter()
                .filter_map(|e| e.own_version.clone())
                .collect(),
            drivers: Vec::new(),
            groups,
        },
        undeclared,
    })
}

/// The versions with marked names, which the table does not list one by one. `Err`: a name that has another ABI than the
/// one without the mark, or is in other versions.
fn renamed(
    groups: &[Group],
    reviewed: &Reviewed,
) -> Result<Option<(&'static str, Version, Version)>, String> {
    let Some(mark) = reviewed.mark else {
        return Ok(None);
    };
    let mut renamed = None;
    for group in groups.iter().filter(|group| !group.is_listed) {
        for (name, line) in &group.names {
            let Some(plain) = reviewed.unmarked(name) else {
                continue;
            };
            let (&[(from, variant), (below, AbiVariant::Missing)], Some([(_, plain_variant), ..])) =
                (&line[..], group.names.get(&plain).map(Vec::as_slice))
            else {
                return Err(format!("{name} has no end, or no plain name: {line:?}"));
            };
            if variant != *plain_variant {
                return Err(format!("{name} is not {plain}"));
            }
            let (_, common_from, common_below) = *renamed.get_or_insert((mark, from, below));
            if (common_from, common_below) != (from, below) {
                return Err(format!(
                    "{name}: {from} to {below}, others {common_from} to {common_below}"
                ));
            }
        }
    }
    Ok(renamed)
}

/// A name, and its declaration in each version that exports it.
struct Name {
    name: String,
    declarations: Vec<Option<DeclaredFunction>>,
}

/// Names that a version is known to export.
fn exported(version: &Evidence) -> BTreeSet<String> {
    match &version.exports {
        Some(exports) => exports.clone(),
        None => version.headers.functions.keys().cloned().collect(),
    }
}

/// Whether a version exports a name. Where the exports are unknown, the names of the version before stay: a
/// library removes none within a major, whether or not its headers declare them.
fn has(evidence: &[Evidence], index: usize, name: &str) -> bool {
    let Evidence {
        version,
        headers,
        exports,
        ..
    } = &evidence[index];
    match exports {
        Some(exports) => exports.contains(name),
        None if headers.functions.contains_key(name) => true,
        None => {
            index > 0
                && evidence[index - 1].version.major == version.major
                && has(evidence, index - 1, name)
        }
    }
}

/// Whether the headers of a version declare a name as it is in the library.
fn is_current(version: &Evidence, name: &str) -> bool {
    version.headers.functions.contains_key(name) && !version.headers.superseded.contains(name)
}

/// Declarations of a name in the versions that export it: in that version, or the last before it, since a
/// library keeps an entry point that its header no longer declares; or the first after it.
///
/// Superseded declarations count only before all others, and then the newest one: the headers of 12 map
/// cudaGetDeviceProperties to cudaGetDeviceProperties_v2, and with the macro undefined they declare it with the struct
/// of 12, but the symbol keeps that of 11 (in 12.9 it copies 728 bytes, the other 780). NVML's 11.2 declares old
/// names with new structs, 11.7 with theirs.
pub fn declarations(name: &str, evidence: &[Evidence]) -> Option<Vec<Option<DeclaredFunction>>> {
    let first_current = evidence.iter().position(|e| is_current(e, name));
    let superseded = evidence[..first_current.unwrap_or(evidence.len())]
        .iter()
        .rfind(|version| version.headers.functions.contains_key(name));
    let first = superseded.or_else(|| Some(&evidence[first_current?]))?;
    let mut declared = first.headers.functions.get(name)?;
    let mut declarations = Vec::new();
    for (index, version) in evidence.iter().enumerate() {
        if is_current(version, name) {
            declared = &version.headers.functions[name];
        }
        declarations.push(has(evidence, index, name).then(|| declared.clone()));
    }
    Some(declarations)
}

/// Variants numbered so far: number `n` is at `n - 1`.
#[derive(Default)]
struct Numbers(Vec<DeclaredFunction>);

impl Numbers {
    fn add(&mut self, declared: &DeclaredFunction) -> usize {
        self.0.push(declared.clone());
        self.0.len()
    }

    /// The unique pair of variants of which one is the other with this argument null. `Err`: the reason why
    /// there is no such pair, or more than one.
    fn adapter(&self, argument: u8) -> Result<NullAdapter, String> {
        let mut adapters = Vec::new();
        let mut reasons = BTreeSet::new();
        for (old, without) in (1..).zip(&self.0) {
            for (new, with) in (1..).zip(&self.0) {
                if old == new {
                    continue;
                }
                match check_takes_null(without, with, argument, MAX_ARGUMENTS) {
                    Ok(()) => adapters.push(NullAdapter { old, new, argument }),
                    Err(reason) => drop(reasons.insert(reason)),
                }
            }
        }
        match adapters[..] {
            [adapter] => Ok(adapter),
            _ => {
                let reasons: Vec<_> = reasons.into_iter().collect();
                Err(format!(
                    "{} pairs of variants fit: {}",
                    adapters.len(),
                    reasons.join("; ")
                ))
            }
        }
    }
}

/// Variant of a name in a version: its number, and the declaration.
#[derive(Clone, Copy)]
struct Current<'a> {
    number: usize,
    declared: &'a DeclaredFunction,
    version: Version,
}

/// The lines of a group, written version by version.
struct GroupLines<'a> {
    reviewed: &'a Reviewed,
    numbers: Numbers,
    /// Variant of each name in the previous version.
    current: BTreeMap<&'a str, Current<'a>>,
    lines: BTreeMap<String, Vec<(Version, AbiVariant)>>,
    reasons: BTreeMap<(String, Version), String>,
}

impl<'a> GroupLines<'a> {
    /// Adds the version with this index.
    fn add_version(&mut self, index: usize, version: Version, names: &[&'a Name]) {
        let mut changed = Vec::new();
        for Name { name, declarations } in names.iter().copied() {
            let is_avoided = self.reviewed.avoided.contains(&(name.as_str(), version));
            let declared = declarations[index].as_ref().filter(|_| !is_avoided);
            let previous = self.current.get(name.as_str()).copied();
            match (declared, previous) {
                (None, None) => {}
                (None, Some(_)) => {
                    let variant = if is_avoided {
                        AbiVariant::Avoided
                    } else {
                        AbiVariant::Missing
                    };
                    let since = self.reviewed.introduced_in(version);
                    let line = self.lines.entry(name.clone()).or_default();
                    line.push((since, variant));
                    self.current.remove(name.as_str());
                }
                (Some(declared), Some(previous)) => {
                    let reason = self
                        .reviewed
                        .follows(name, previous.version, version)
                        .or_else(|| {
                            let same = self.reviewed.same(name, previous.declared, declared);
                            same.err()
                        });
                    if reason.is_some() {
                        changed.push((name, declared, reason));
                    } else {
                        let number = previous.number;
                        self.set_current(name, number, declared, version);
                    }
                }
                (Some(declared), None) => changed.push((name, declared, None)),
            }
        }
        for (name, _, _) in &changed {
            self.current.remove(name.as_str());
        }
        for (name, declared, reason) in changed {
            self.add_variant(name, declared, version, reason);
        }
    }

    fn set_current(
        &mut self,
        name: &'a str,
        number: usize,
        declared: &'a DeclaredFunction,
        version: Version,
    ) {
        let current = Current {
            number,
            declared,
            version,
        };
        self.current.insert(name, current);
    }

    /// Adds the variant of a name that is new in a version, or changed for this reason: the latest that fits.
    fn add_variant(
        &mut self,
        name: &'a str,
        declared: &'a DeclaredFunction,
        version: Version,
        reason: Option<String>,
    ) {
        let must_differ = reason.is_some() && self.reviewed.is_library_bound(name);
        let existing = (1..=self.numbers.0.len()).rev().find(|number| {
            !must_differ
                && self.is_free(*number, name)
                && self
                    .reviewed
                    .same(name, &self.numbers.0[number - 1], declared)
                    .is_ok()
        });
        let number = existing.unwrap_or_else(|| self.numbers.add(declared));
        let variant = AbiVariant::Number(number);
        let since = self.reviewed.introduced_in(version);
        let line = self.lines.entry(name.to_owned()).or_default();
        if line.last().is_none_or(|(_, previous)| *previous != variant) {
            line.push((since, variant));
        }
        if let Some(reason) = reason {
            self.reasons.insert((name.to_owned(), since), reason);
        }
        self.set_current(name, number, declared, version);
    }

    /// Whether only interchangeable names have a variant now.
    fn is_free(&self, number: usize, name: &str) -> bool {
        self.current.iter().all(|(holder, current)| {
            current.number != number || self.reviewed.interchangeable(name, holder)
        })
    }
}

/// The group of some names, and its variants.
fn group(
    names: &[Name],
    evidence: &[Evidence],
    reviewed: &Reviewed,
    nullable: Option<u8>,
) -> Result<(Group, Vec<DeclaredFunction>), String> {
    let mut by_length: Vec<&Name> = names.iter().collect();
    by_length.sort_by_key(|name| (name.name.len(), &name.name));
    let mut group_lines = GroupLines {
        reviewed,
        numbers: Numbers::default(),
        current: BTreeMap::new(),
        lines: BTreeMap::new(),
        reasons: BTreeMap::new(),
    };
    for (index, version) in evidence.iter().enumerate() {
        group_lines.add_version(index, version.version, &by_length);
    }
    let GroupLines {
        numbers,
        lines,
        reasons,
        ..
    } = group_lines;
    let is_listed = reviewed.is_listed(&lines) || source_changes(&lines, evidence);
    let adapter = nullable
        .map(|argument| numbers.adapter(argument))
        .transpose()?;
    let group = Group {
        names: lines,
        reasons,
        adapters: adapter.into_iter().collect(),
        is_listed,
        ..Group::default()
    };
    Ok((group, numbers.0))
}

/// Whether a name in sources maps to different functions of the group in successive headers.
fn source_changes(
    lines: &BTreeMap<String, Vec<(Version, AbiVariant)>>,
    evidence: &[Evidence],
) -> bool {
    let mut functions_by_source: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for version in evidence {
        let mut mapped: BTreeSet<&str> = BTreeSet::new();
        for (source, functions) in &version.headers.meant {
            if let Some(function) = functions.iter().find(|name| lines.contains_key(*name)) {
                mapped.insert(source);
                let functions = functions_by_source.entry(source).or_default();
                functions.insert(function);
            }
        }
        for name in lines.keys() {
            if !mapped.contains(name.as_str()) && version.headers.functions.contains_key(name) {
                functions_by_source.entry(name).or_default().insert(name);
            }
        }
    }
    functions_by_source
        .values()
        .any(|functions| functions.len() > 1)
}

#[cfg(test)]
pub(super) mod tests;
