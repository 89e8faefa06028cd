//! What each name means from version to version.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::version::Version;

use super::compare::same;
use super::headers::{self, Declared};
use super::reviewed::Reviewed;
use super::text::{Gates, Group, Meaning};

/// What is known of one version.
pub struct Evidence {
    pub version: Version,
    pub headers: headers::Version,
    /// What the library exports, where it is at hand; what the headers declare otherwise.
    pub exports: Option<BTreeSet<String>>,
}

/// All names of a library, in groups.
pub struct History {
    pub gates: Gates,
    /// Exported names that no header declares: nothing is known of them.
    pub unknown: BTreeSet<String>,
}

/// Ascending versions in, every group out.
pub fn history(evidence: &[Evidence], reviewed: &Reviewed) -> History {
    let mut names = BTreeSet::new();
    for version in evidence {
        names.extend(exported(version));
    }
    let mut unknown = BTreeSet::new();
    let mut groups: BTreeMap<(String, String), Vec<Name>> = BTreeMap::new();
    for name in names {
        match declarations(&name, evidence, reviewed) {
            Some(known) => {
                let key = reviewed.group(&name);
                groups.entry(key).or_default().push(Name { name, known });
            }
            None => drop(unknown.insert(name)),
        }
    }
    let groups = groups
        .values()
        .map(|names| group(names, evidence, reviewed))
        .collect();
    History {
        gates: Gates {
            headers: evidence.iter().map(|e| e.version).collect(),
            groups,
        },
        unknown,
    }
}

/// A name, and what it is declared as in each version that exports it.
struct Name {
    name: String,
    known: Vec<Option<Declared>>,
}

fn exported(version: &Evidence) -> BTreeSet<String> {
    match &version.exports {
        Some(exports) => exports.clone(),
        None => version.headers.functions.keys().cloned().collect(),
    }
}

/// For each version that exports the name: the declaration there, or the last before it, since a
/// library keeps an entry point that its header no longer shows; or the first after it.
fn declarations(
    name: &str,
    evidence: &[Evidence],
    reviewed: &Reviewed,
) -> Option<Vec<Option<Declared>>> {
    let in_headers = |e: &Evidence| {
        let declared = e.headers.functions.get(name).cloned();
        declared.filter(|_| !reviewed.is_misleading(name, e.version))
    };
    let mut last = evidence.iter().find_map(in_headers)?;
    let declared = evidence.iter().map(|version| {
        last = in_headers(version).unwrap_or(last.clone());
        exported(version).contains(name).then(|| last.clone())
    });
    Some(declared.collect())
}

/// The meanings that are numbered so far: number `n` is at `n - 1`.
#[derive(Default)]
struct Numbers(Vec<Declared>);

impl Numbers {
    fn add(&mut self, declared: &Declared) -> usize {
        self.0.push(declared.clone());
        self.0.len()
    }
}

fn group(names: &[Name], evidence: &[Evidence], reviewed: &Reviewed) -> Group {
    let mut numbers = Numbers::default();
    // What each name means in the version before.
    let mut now: BTreeMap<&str, (usize, &Declared, Version)> = BTreeMap::new();
    let mut lines: BTreeMap<String, Vec<(Version, Meaning)>> = BTreeMap::new();
    let mut reasons = BTreeMap::new();
    let mut names: Vec<&Name> = names.iter().collect();
    names.sort_by_key(|name| (name.name.len(), &name.name));
    for (index, Evidence { version, .. }) in evidence.iter().enumerate() {
        let mut changed = Vec::new();
        for Name { name, known } in names.iter().copied() {
            let before = now.get(name.as_str()).copied();
            match (&known[index], before) {
                (None, before) => {
                    if before.is_some() {
                        lines
                            .entry(name.clone())
                            .or_default()
                            .push((*version, Meaning::Absent));
                    }
                    now.remove(name.as_str());
                }
                (Some(declared), Some((number, last, then))) => {
                    match reviewed
                        .follows(name, then, *version)
                        .map_or(same(last, declared), Err)
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
                !splits && is_free(number) && same(&numbers.0[number - 1], declared).is_ok()
            });
            let number = found.unwrap_or_else(|| numbers.add(declared));
            let line = lines.entry(name.clone()).or_default();
            let at = reviewed.since(*version);
            if line
                .last()
                .is_none_or(|(_, last)| *last != Meaning::Number(number))
            {
                line.push((at, Meaning::Number(number)));
            }
            if let Some(reason) = reason {
                reasons.insert((name.clone(), at), reason);
            }
            now.insert(name, (number, declared, *version));
        }
    }
    let is_listed = reviewed.is_listed(&lines) || source_changes(&lines, evidence);
    Group {
        names: lines,
        reasons,
        is_listed,
    }
}

/// Whether a name in sources means one function of the group with one header and another with the
/// next.
fn source_changes(
    lines: &BTreeMap<String, Vec<(Version, Meaning)>>,
    evidence: &[Evidence],
) -> bool {
    let mut meant: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for version in evidence {
        let mut here: BTreeSet<&str> = BTreeSet::new();
        for (source, meanings) in &version.headers.meant {
            let mut meanings = meanings.iter().filter(|name| lines.contains_key(*name));
            if let Some(meaning) = meanings.next() {
                here.insert(source);
                meant.entry(source).or_default().insert(meaning);
            }
        }
        for name in lines.keys() {
            if !here.contains(name.as_str()) && version.headers.functions.contains_key(name) {
                meant.entry(name).or_default().insert(name);
            }
        }
    }
    meant.values().any(|meanings| meanings.len() > 1)
}
