//! ABI variant of each name, from version to version.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_cdecl::{self as headers, Declared, takes_null};
use gpustub_core::abi_table::MAX_ARGUMENTS;
use gpustub_core::version::Version;

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
pub fn history(evidence: &[Evidence], reviewed: &Reviewed) -> Result<History, String> {
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
            group(names, evidence, reviewed, reviewed.nullable(stem))
                .map_err(|e| format!("nullable: {stem}: {e}"))
        })
        .collect::<Result<_, _>>()?;
    Ok(History {
        table: AbiTable {
            headers: evidence.iter().map(|e| e.version).collect(),
            own: evidence.iter().filter_map(|e| e.own.clone()).collect(),
            drivers: Vec::new(),
            groups,
        },
        undeclared,
    })
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

fn group(
    names: &[Name],
    evidence: &[Evidence],
    reviewed: &Reviewed,
    nullable: Option<u8>,
) -> Result<Group, String> {
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
    Ok(Group {
        names: lines,
        reasons,
        adapters: adapter.into_iter().collect(),
        is_listed,
    })
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
mod tests {
    use gpustub_cdecl::{Clang, functions};

    use super::super::reviewed::NONE;
    use super::*;

    /// Table of versions 1.0, 2.0, ..., each with declarations of the header and exports of the library.
    fn table_of(versions: &[(&str, &str)], reviewed: &Reviewed) -> String {
        let found = try_table_of(versions, reviewed);
        found.unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_table_of(versions: &[(&str, &str)], reviewed: &Reviewed) -> Result<String, String> {
        let evidence: Vec<_> = (1..)
            .zip(versions)
            .map(|(major, (header, exports))| evidence_of(major, header, exports))
            .collect();
        text_of(&evidence, reviewed)
    }

    fn evidence_of(major: u32, header: &str, exports: &str) -> Evidence {
        let functions = functions(&Clang::new("clang"), header, &[], &|_| true).unwrap();
        Evidence {
            version: Version::new(major, 0),
            own: None,
            headers: headers::Version {
                functions: functions.into_iter().collect(),
                ..headers::Version::default()
            },
            exports: Some(exports.split(' ').map(String::from).collect()),
        }
    }

    fn text_of(evidence: &[Evidence], reviewed: &Reviewed) -> Result<String, String> {
        let text = history(evidence, reviewed)?
            .table
            .to_text("", &Default::default(), |_| Vec::new());
        let lines = text.lines().skip(3);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    #[test]
    #[ignore = "needs clang (tests/run)"]
    fn names_replace_others() {
        let one = "int gpuA(int);";
        let both = "int gpuA(int); int gpuA_v2(long);";
        let two = "int gpuA(long); int gpuB(void);";
        assert_eq!(
            table_of(
                &[
                    (one, "gpuA gpuB"),
                    (both, "gpuA gpuA_v2 gpuB"),
                    (two, "gpuA gpuB")
                ],
                &NONE
            ),
            "gpuA 1.0=1 3.0=2\ngpuA_v2 2.0=2 3.0=-"
        );
        // The second header maps to the other name; the library keeps the first one unchanged.
        assert_eq!(
            table_of(
                &[
                    (one, "gpuA"),
                    ("int gpuA_v2(long);", "gpuA gpuA_v2"),
                    (two, "gpuA")
                ],
                &NONE
            ),
            "gpuA 1.0=1 3.0=2\ngpuA_v2 2.0=2 3.0=-"
        );
    }

    #[test]
    #[ignore = "needs clang (tests/run)"]
    fn names_side_by_side_are_equal_only_if_reviewed() {
        let both = "int gpuA(int); int gpuA_v2(int);";
        let one = "int gpuA(int);";
        let versions = [(both, "gpuA gpuA_v2"), (one, "gpuA")];
        assert_eq!(table_of(&versions, &NONE), "");
        let reviewed = Reviewed {
            interchangeable: &[("gpuA", "gpuA_v2")],
            ..NONE
        };
        assert_eq!(
            table_of(&versions, &reviewed),
            "gpuA 1.0=1\ngpuA_v2 1.0=1 2.0=-"
        );
    }

    #[test]
    #[ignore = "needs clang (tests/run)"]
    fn reviews_decide_where_headers_do_not() {
        let one = "int gpuA(int); int gpuA_ptsz(int);";
        let versions = [(one, "gpuA gpuA_ptsz"); 2];
        let bound = Reviewed {
            library_bound: &["gpuA"],
            ..NONE
        };
        assert_eq!(table_of(&versions, &NONE), "");
        assert_eq!(
            table_of(&versions, &bound),
            "gpuA 1.0=1 2.0=2\ngpuA_ptsz 1.0=1 2.0=2"
        );
    }

    #[test]
    #[ignore = "needs clang (tests/run)"]
    fn superseded_declarations_have_the_meaning_of_others() {
        let table = |headers: &[(&str, bool)]| {
            let mut evidence = Vec::new();
            for (major, (text, is_superseded)) in (1..).zip(headers) {
                let mut found = evidence_of(major, text, "gpuA");
                if *is_superseded {
                    found.headers.superseded.insert("gpuA".into());
                }
                evidence.push(found);
            }
            text_of(&evidence, &NONE).unwrap()
        };
        let (int, long) = ("int gpuA(int);", "int gpuA(long);");
        assert_eq!(table(&[(int, false), (long, false)]), "gpuA 1.0=1 2.0=2");
        assert_eq!(table(&[(int, false), (long, true)]), "");
        assert_eq!(table(&[(int, true), (long, true)]), "");
        let later = [(int, false), (long, true), (long, false)];
        assert_eq!(table(&later), "gpuA 1.0=1 3.0=2");
        let old = [(long, true), (int, true), (long, false)];
        assert_eq!(table(&old), "gpuA 1.0=1 3.0=2");
    }

    #[test]
    #[ignore = "needs clang (tests/run)"]
    fn null_arguments_are_reviewed_and_fit() {
        let reviewed = |argument| Reviewed {
            nullable: Box::leak(Box::new([("gpuA", argument)])),
            ..NONE
        };
        let old = "struct s { int a, b; }; int gpuA(int *, long); int gpuA_ptsz(int *, long);";
        let new = |arguments: &str| {
            format!("struct s {{ int a, b; }}; int gpuA({arguments}); int gpuA_ptsz({arguments});")
        };
        let of = |arguments: &str, reviewed| {
            let newer = new(arguments);
            let versions = [(old, "gpuA gpuA_ptsz"), (&newer, "gpuA gpuA_ptsz")];
            try_table_of(&versions, &reviewed)
        };
        let fits = "int *, struct s *, long";
        assert_eq!(
            of(fits, NONE).unwrap(),
            "gpuA 1.0=1 2.0=2\ngpuA_ptsz 1.0=1 2.0=2"
        );
        assert_eq!(
            of(fits, reviewed(1)).unwrap(),
            "@null-argument 1 2 1\ngpuA 1.0=1 2.0=2\n@null-argument 1 2 1\ngpuA_ptsz 1.0=1 2.0=2"
        );
        let six = "int *, struct s *, long, int, int, int, int";
        for (arguments, argument, reason) in [
            (fits, 0, "argument 0: 4 bytes -> s of 8 bytes"),
            (fits, 2, "argument 2 is no pointer"),
            (fits, 5, "argument 5 is no pointer"),
            ("int *, long, long", 1, "argument 1 is no pointer"),
            (
                "int *, struct s *, int",
                1,
                "argument 1: 8 bytes -> 4 bytes",
            ),
            (
                "int *, struct s *, double",
                1,
                "not 6 integers and pointers",
            ),
            ("int *, struct s *, long, int", 1, "2 -> 3 arguments"),
            (six, 1, "not 6 integers and pointers"),
            ("int *, long", 1, "0 pairs of variants fit: "),
        ] {
            let error = of(arguments, reviewed(argument)).unwrap_err();
            assert!(
                error.starts_with("nullable: gpuA: 0 pairs of variants fit"),
                "{error}"
            );
            assert!(error.contains(reason), "{arguments}: {error}");
        }
        let versions = [("int gpuB(int);", "gpuB")];
        let error = try_table_of(&versions, &reviewed(1)).unwrap_err();
        assert_eq!(error, "nullable: no version has gpuA");
    }
}
