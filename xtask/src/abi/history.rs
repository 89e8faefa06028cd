//! ABI variant of each name, from version to version.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_cdecl::{self as headers, Declared, takes_null};
use gpustub_core::abi_table::MAX_ARGUMENTS;
use gpustub_core::version::Version;

use super::numbers::{Enumeration, numbered};
use super::reviewed::Reviewed;
use super::table::{AbiTable, AbiVariant, Group, NullAdapter};

/// Evidence about one version.
pub struct Evidence {
    pub version: Version,
    /// The library's own number, if that is another one.
    pub own: Option<String>,
    pub headers: headers::Version,
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
        if let Some(exports) = &version.exports {
            let declared = version.headers.functions.keys();
            let lacking = declared.filter(|name| !exports.contains(*name) && names.contains(*name));
            undeclared.extend(lacking.cloned());
        }
    }
    let mut groups: BTreeMap<(String, String), Vec<Name>> = BTreeMap::new();
    for name in names {
        match declarations(&name, evidence) {
            Some(known) => {
                let key = reviewed.group(&name);
                groups.entry(key).or_default().push(Name { name, known });
            }
            None => drop(undeclared.insert(name)),
        }
    }
    for (stem, _) in reviewed.nullable {
        if !groups.keys().any(|(of, _)| of == stem) {
            return Err(format!("nullable: no version has {stem}"));
        }
    }
    let groups = groups
        .iter()
        .map(|((stem, _), names)| {
            let mut found = group(names, evidence, reviewed, reviewed.nullable(stem))
                .map_err(|e| format!("nullable: {stem}: {e}"))?;
            found.0.numbered = numbered(enumerations, &found.1);
            Ok(found.0)
        })
        .collect::<Result<Vec<Group>, String>>()?;
    Ok(History {
        table: AbiTable {
            renamed: renamed(&groups, reviewed)?,
            headers: evidence.iter().map(|e| e.version).collect(),
            own: evidence.iter().filter_map(|e| e.own.clone()).collect(),
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
    let mut found = None;
    for group in groups.iter().filter(|group| !group.is_listed) {
        for (name, line) in &group.names {
            let Some(plain) = reviewed.unmarked(name) else {
                continue;
            };
            let (&[(from, number), (below, AbiVariant::Missing)], Some([(_, other), ..])) =
                (&line[..], group.names.get(&plain).map(Vec::as_slice))
            else {
                return Err(format!("{name} has no end, or no plain name: {line:?}"));
            };
            if number != *other {
                return Err(format!("{name} is not {plain}"));
            }
            let (_, first, last) = *found.get_or_insert((mark, from, below));
            if (first, last) != (from, below) {
                return Err(format!(
                    "{name}: {from} to {below}, others {first} to {last}"
                ));
            }
        }
    }
    Ok(found)
}

/// A name, and its declaration in each version that exports it.
struct Name {
    name: String,
    known: Vec<Option<Declared>>,
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
    let stays = || {
        let before = index
            .checked_sub(1)
            .filter(|at| evidence[*at].version.major == version.major);
        before.is_some_and(|before| has(evidence, before, name))
    };
    match exports {
        Some(exports) => exports.contains(name),
        None => headers.functions.contains_key(name) || stays(),
    }
}

/// Declarations of a name in the versions that export it: in that version, or the last before it, since a
/// library keeps an entry point that its header no longer declares; or the first after it.
///
/// Superseded declarations count only before all others, and then the newest one: the headers of 12 map
/// cudaGetDeviceProperties to cudaGetDeviceProperties_v2, and with the macro undefined they declare it with the struct
/// of 12, but the symbol keeps that of 11 (in 12.9 it copies 728 bytes, the other 780). NVML's 11.2 declares old
/// names with new structs, 11.7 with theirs.
pub fn declarations(name: &str, evidence: &[Evidence]) -> Option<Vec<Option<Declared>>> {
    let any = |e: &&Evidence| e.headers.functions.contains_key(name);
    let current = |e: &&Evidence| any(e) && !e.headers.superseded.contains(name);
    let begin = evidence.iter().position(|e| current(&e));
    let before = &evidence[..begin.unwrap_or(evidence.len())];
    let superseded = before.iter().rev().find(any);
    let first = superseded.or_else(|| evidence.iter().find(current))?;
    let mut last = first.headers.functions.get(name)?;
    let declared = evidence.iter().enumerate().map(|(index, version)| {
        if current(&version) {
            last = version.headers.functions.get(name).unwrap_or(last);
        }
        has(evidence, index, name).then(|| last.clone())
    });
    Some(declared.collect())
}

/// Variants numbered so far: number `n` is at `n - 1`.
#[derive(Default)]
struct Numbers(Vec<Declared>);

impl Numbers {
    fn add(&mut self, declared: &Declared) -> usize {
        self.0.push(declared.clone());
        self.0.len()
    }

    /// The unique pair of variants of which one is the other with this argument null. `Err`: the reason why
    /// there is no such pair, or more than one.
    fn adapter(&self, argument: u8) -> Result<NullAdapter, String> {
        let pairs = (1..).zip(&self.0).flat_map(|(old, a)| {
            (1..)
                .zip(&self.0)
                .filter(move |(new, _)| old != *new)
                .map(move |(new, b)| {
                    takes_null(a, b, argument, MAX_ARGUMENTS).map(|()| NullAdapter {
                        old,
                        new,
                        argument,
                    })
                })
        });
        let (found, reasons): (Vec<_>, Vec<_>) = pairs.partition(Result::is_ok);
        match &found[..] {
            [Ok(one)] => Ok(*one),
            _ => {
                let reasons: BTreeSet<String> =
                    reasons.into_iter().filter_map(Result::err).collect();
                let reasons: Vec<_> = reasons.into_iter().collect();
                let count = found.len();
                Err(format!(
                    "{count} pairs of variants fit: {}",
                    reasons.join("; ")
                ))
            }
        }
    }
}

/// The group of some names, and its variants.
fn group(
    names: &[Name],
    evidence: &[Evidence],
    reviewed: &Reviewed,
    nullable: Option<u8>,
) -> Result<(Group, Vec<Declared>), String> {
    let mut numbers = Numbers::default();
    // Variant of each name in the previous version.
    let mut now: BTreeMap<&str, (usize, &Declared, Version)> = BTreeMap::new();
    let mut lines: BTreeMap<String, Vec<(Version, AbiVariant)>> = BTreeMap::new();
    let mut reasons = BTreeMap::new();
    let mut names: Vec<&Name> = names.iter().collect();
    names.sort_by_key(|name| (name.name.len(), &name.name));
    for (index, Evidence { version, .. }) in evidence.iter().enumerate() {
        let mut changed = Vec::new();
        for Name { name, known } in names.iter().copied() {
            let before = now.get(name.as_str()).copied();
            let avoided = reviewed.avoided.contains(&(name.as_str(), *version));
            match (known[index].as_ref().filter(|_| !avoided), before) {
                (None, before) => {
                    if before.is_some() {
                        let variant = if avoided {
                            AbiVariant::Avoided
                        } else {
                            AbiVariant::Missing
                        };
                        lines
                            .entry(name.clone())
                            .or_default()
                            .push((reviewed.introduced_in(*version), variant));
                    }
                    now.remove(name.as_str());
                }
                (Some(declared), Some((number, last, then))) => {
                    match reviewed
                        .follows(name, then, *version)
                        .map_or(reviewed.same(name, last, declared), Err)
                    {
                        Ok(()) => drop(now.insert(name, (number, declared, *version))),
                        Err(reason) => changed.push((name, declared, Some(reason))),
                    }
                }
                (Some(declared), None) => changed.push((name, declared, None)),
            }
        }
        for (name, _, _) in &changed {
            now.remove(name.as_str());
        }
        for (name, declared, reason) in changed {
            let is_free = |number: usize| {
                let mut holders = now.iter().filter(|(_, (n, _, _))| *n == number);
                holders.all(|(other, _)| reviewed.interchangeable(name, other))
            };
            let splits = reason.is_some() && reviewed.is_library_bound(name);
            let found = (1..=numbers.0.len()).rev().find(|&number| {
                !splits
                    && is_free(number)
                    && reviewed
                        .same(name, &numbers.0[number - 1], declared)
                        .is_ok()
            });
            let number = found.unwrap_or_else(|| numbers.add(declared));
            let line = lines.entry(name.clone()).or_default();
            let at = reviewed.introduced_in(*version);
            if line
                .last()
                .is_none_or(|(_, last)| *last != AbiVariant::Number(number))
            {
                line.push((at, AbiVariant::Number(number)));
            }
            if let Some(reason) = reason {
                reasons.insert((name.clone(), at), reason);
            }
            now.insert(name, (number, declared, *version));
        }
    }
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
    let mut meant: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for version in evidence {
        let mut here: BTreeSet<&str> = BTreeSet::new();
        for (source, functions) in &version.headers.meant {
            let mut functions = functions.iter().filter(|name| lines.contains_key(*name));
            if let Some(function) = functions.next() {
                here.insert(source);
                meant.entry(source).or_default().insert(function);
            }
        }
        for name in lines.keys() {
            if !here.contains(name.as_str()) && version.headers.functions.contains_key(name) {
                meant.entry(name).or_default().insert(name);
            }
        }
    }
    meant.values().any(|functions| functions.len() > 1)
}

#[cfg(test)]
pub(super) mod tests;
