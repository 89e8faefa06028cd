//! What exported functions mean, by version: `manifests/<id>.gates`.
//!
//! ```text
//! @gpustub-gates 1
//! @untold __cudaRegisterVar
//! @headers 11.8 12.0 12.9 13.0
//!
//! cudaGetDeviceProperties 11.8=1 13.0=3
//! cudaGetDeviceProperties_v2 12.0=2 13.0=-
//!
//! @null 1 2 3
//! cudaGraphAddDependencies 11.8=1 13.0=2
//! ```
//!
//! From 13.0 on, the library's `cudaGetDeviceProperties` has another meaning than before (another
//! struct behind its pointer); `_v2` came with 12.0 and went with 13.0. Names of one group (no
//! empty line between them) with the same number can be bound in place of each other. `@null` says
//! of its group that a call which means 1 is one which means 2 with a null pointer as argument 3,
//! counted from 0, and the caller's arguments from there on behind it. A function that is not in the
//! file means the same in all versions. Of untold exports, the versions that have them do not tell
//! which headers do: none declares them, or one whose library lacks them.

use crate::by_name::ByName;
use crate::diag::{Diagnostic, MALFORMED_SYMBOL_LIST};
use crate::version::{HeaderVersion, Version};

/// What a name means from a version on; `None`: it is not exported.
type Meaning = Option<u16>;

/// A name, with its meanings from the lowest version to the highest.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    name: String,
    group: usize,
    meanings: Vec<(Version, Meaning)>,
}

/// The most arguments that a translated call may have: what every machine passes in registers
/// (x86-64 psABI 3.2.3: six integers; AArch64 has eight), so that none moves to the stack.
pub const MOST_ARGUMENTS: u8 = 6;

/// One meaning as another with one argument more, which is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Translation {
    group: usize,
    old: u16,
    new: u16,
    /// Which argument is null, counted from 0.
    argument: u8,
}

/// The gates of a library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gates {
    /// The versions whose headers were read, ascending.
    headers: Vec<Version>,
    untold: ByName<()>,
    /// In the order of the file, which keeps groups together.
    names: Vec<Name>,
    /// Indexes into `names`.
    by_name: ByName<usize>,
    /// At most one for a meaning of a group.
    translations: Vec<Translation>,
}

/// What is bound where the library's version lies in `from..below` (as [`Version::code`] has it),
/// in place of a function's own name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gate {
    /// The lowest version.
    pub from: i32,
    /// The first version that is not meant.
    pub below: i32,
    /// The name that means there what the headers mean; `None`: there is none, refuse.
    pub name: Option<String>,
    /// Which argument (from 0, below [`MOST_ARGUMENTS`]) is null there that the headers do not have;
    /// the same in all gates of a function.
    pub null: Option<u8>,
}

impl Gates {
    /// Reads a file; `file` names it in diagnostics.
    pub fn parse(file: &str, text: &str) -> (Self, Vec<Diagnostic>) {
        let mut gates = Self::default();
        let mut wrong = Vec::new();
        let mut group = 0;
        for (index, line) in text.lines().enumerate() {
            let mut words = line.split_ascii_whitespace();
            let understood = match words.next() {
                None => {
                    group += 1;
                    true
                }
                Some(word) if word.starts_with('#') => true,
                Some("@gpustub-gates") => index == 0 && words.eq(["1"]),
                Some("@untold") => {
                    for word in words {
                        gates.untold.insert(word, ());
                    }
                    true
                }
                Some("@headers") => {
                    gates.headers = words.map_while(Version::parse).collect();
                    !gates.headers.is_empty() && gates.headers.is_sorted()
                }
                Some("@null") => match translation(group, words) {
                    Some(found) => {
                        let same = |t: &Translation| (t.group, t.old) == (group, found.old);
                        let is_first = !gates.translations.iter().any(same);
                        gates.translations.push(found);
                        is_first
                    }
                    None => false,
                },
                Some(name) => match meanings(words) {
                    Some(meanings) => {
                        let name = name.to_owned();
                        gates.names.push(Name {
                            name,
                            group,
                            meanings,
                        });
                        true
                    }
                    None => false,
                },
            };
            if !understood {
                let message = format!("line {} of {file} is not understood: {line}", index + 1);
                let mut error = Diagnostic::error(&MALFORMED_SYMBOL_LIST, message);
                if line.starts_with("@null") {
                    error = error.help(format!(
                        "`@null OLD NEW ARGUMENT`: two meanings of the group, the first of them in \
                         no other such line, and which argument of the new one is null: 0 to {}",
                        MOST_ARGUMENTS - 1
                    ));
                }
                wrong.push(error);
            }
        }
        let names = &gates.names;
        for t in &gates.translations {
            let is_meant = |meaning: u16| {
                let mut group = names.iter().filter(|name| name.group == t.group);
                group.any(|name| name.meanings.iter().any(|(_, m)| *m == Some(meaning)))
            };
            if let Some(missing) = [t.old, t.new].into_iter().find(|m| !is_meant(*m)) {
                let Translation {
                    old, new, argument, ..
                } = t;
                let message = format!(
                    "`@null {old} {new} {argument}` of {file}: no name of its group means {missing}"
                );
                wrong.push(Diagnostic::error(&MALFORMED_SYMBOL_LIST, message));
            }
        }
        for (index, Name { name, .. }) in names.iter().enumerate() {
            if gates.by_name.insert(name, index).is_some() {
                let message = format!("{file} has {name} twice");
                wrong.push(Diagnostic::error(&MALFORMED_SYMBOL_LIST, message));
            }
        }
        (gates, wrong)
    }

    /// Whether every function means the same in all versions.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn find(&self, name: &str) -> Option<&Name> {
        self.by_name.get(name).map(|&index| &self.names[index])
    }

    /// Whether the function means something else in other versions.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether the function is there in this version.
    pub fn is_in(&self, name: &str, version: Version) -> bool {
        self.find(name)
            .is_some_and(|name| at(name, version).is_some())
    }

    /// Whether the versions that export it do not tell those whose headers declare it.
    pub fn is_untold(&self, name: &str) -> bool {
        self.untold.contains_key(name)
    }

    /// The versions whose headers were read, ascending.
    pub fn headers(&self) -> &[Version] {
        &self.headers
    }

    /// The names in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| name.name.as_str())
    }

    /// What is bound for `name` by a program that was compiled against `header-version`, ascending and
    /// without overlap; between the gates its own name. Empty: its own name always.
    pub fn of(&self, name: &str, header: Option<HeaderVersion>) -> Vec<Gate> {
        let (Some(own), Some(&oldest), Some(&newest)) =
            (self.find(name), self.headers.first(), self.headers.last())
        else {
            return Vec::new();
        };
        let always = only(own);
        let meant = always.or_else(|| meant(own, header?, oldest));
        let Some(wanted) = meant else {
            return vec![Gate {
                from: 0,
                below: i32::MAX,
                name: None,
                null: None,
            }];
        };
        let group: Vec<&Name> = self.names.iter().filter(|n| n.group == own.group).collect();
        let is_ours = |t: &&Translation| (t.group, t.old) == (own.group, wanted);
        let translation = self.translations.iter().find(is_ours);
        // A version before the first header is taken to be as that one, of its major only; one
        // after the last, as the last, of its major only.
        let start = Version::new(oldest.major, 0);
        let end = Version::new(newest.major + 1, 0);
        let mut starts: Vec<Version> = vec![start];
        for (version, _) in group.iter().flat_map(|n| &n.meanings) {
            let place = starts.partition_point(|other| other < version);
            if *version > start && starts.get(place) != Some(version) {
                starts.insert(place, *version);
            }
        }
        let mut gates = Vec::new();
        let mut gate = |from: i32, below: i32, bound: Option<(&Name, Option<u8>)>| {
            // A name that only ever meant this one thing is looked for under it, if nothing else.
            if always.is_none() || bound.is_some() {
                gates.push(Gate {
                    from,
                    below,
                    name: bound.map(|(name, _)| name.name.clone()),
                    null: bound.and_then(|(_, null)| null),
                });
            }
        };
        gate(0, code(start), None);
        for (index, &from) in starts.iter().enumerate() {
            let below = starts.get(index + 1).copied().unwrap_or(end);
            let meaning = |name: &Name| at(name, from.max(oldest));
            let with = |meant: u16| {
                let mut names = group.iter().copied();
                names.find(|name| meaning(name) == Some(meant))
            };
            if meaning(own) != Some(wanted) {
                let same = with(wanted).map(|name| (name, None));
                let translated = || {
                    let Translation { new, argument, .. } = *translation?;
                    Some((with(new)?, Some(argument)))
                };
                gate(code(from), code(below), same.or_else(translated));
            }
        }
        gate(code(end), i32::MAX, None);
        gates.dedup_by(|next, last| {
            let binds = |gate: &Gate| (gate.name.clone(), gate.null);
            let joins = last.below == next.from && binds(last) == binds(next);
            if joins {
                last.below = next.below;
            }
            joins
        });
        gates
    }
}

/// The one thing that a name means wherever it is exported.
fn only(name: &Name) -> Meaning {
    let mut meanings = name.meanings.iter().filter_map(|(_, meaning)| *meaning);
    let first = meanings.next()?;
    meanings.all(|other| other == first).then_some(first)
}

fn code(version: Version) -> i32 {
    i32::try_from(version.code()).unwrap_or(i32::MAX)
}

/// What the name means in a version.
fn at(name: &Name, version: Version) -> Meaning {
    let later = name.meanings.partition_point(|(from, _)| *from <= version);
    name.meanings[..later]
        .last()
        .and_then(|(_, meaning)| *meaning)
}

/// What the name means in those of the headers that have it; `None` if there are none, or if they
/// differ.
fn meant(name: &Name, header: HeaderVersion, oldest: Version) -> Meaning {
    let start = match header.from.major == oldest.major {
        true => header.from.max(oldest),
        false => header.from,
    };
    let later = name.meanings.iter();
    let later = later.filter(|(from, _)| *from > start && *from < header.below);
    let all = [at(name, start)];
    let mut all = all.into_iter().chain(later.map(|(_, m)| *m)).flatten();
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// `OLD NEW ARGUMENT`.
fn translation<'t>(group: usize, mut words: impl Iterator<Item = &'t str>) -> Option<Translation> {
    let old = words.next()?.parse().ok()?;
    let new = words.next()?.parse().ok()?;
    let argument = words.next()?.parse().ok()?;
    let is_sound = words.next().is_none() && old != new && argument < MOST_ARGUMENTS;
    is_sound.then_some(Translation {
        group,
        old,
        new,
        argument,
    })
}

/// `VERSION=MEANING …`, ascending.
fn meanings<'t>(words: impl Iterator<Item = &'t str>) -> Option<Vec<(Version, Meaning)>> {
    let mut meanings: Vec<(Version, Meaning)> = Vec::new();
    for word in words {
        let (version, meaning) = word.split_once('=')?;
        let version = Version::parse(version)?;
        let meaning = match meaning {
            "-" => None,
            number => Some(number.parse().ok()?),
        };
        if meanings.last().is_some_and(|(last, _)| *last >= version) {
            return None;
        }
        meanings.push((version, meaning));
    }
    (!meanings.is_empty()).then_some(meanings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
@gpustub-gates 1
# Comments and empty lines may stand anywhere.
@headers 11.7 11.8 12.0 12.9 13.0

instantiate 11.7=1 12.0=2
instantiateWithFlags 11.7=2

properties 11.7=1 13.0=3
properties_v2 12.0=2 13.0=-

grown 11.7=1 11.8=2

stays 11.7=1
vanished 11.7=1 13.0=-

late 12.0=1 13.0=2

later 12.9=1 13.0=2

@null 1 2 3
add 11.7=1 13.0=2
add_v2 12.0=2 13.0=-

@null 1 2 0
moved 11.7=1 13.0=-
moved_v2 13.0=2
";

    /// `from..below=name`, or `!` for a refusal, with `+` and the argument that is null; between them
    /// the own name.
    fn of(name: &str, header: &str) -> String {
        let (gates, wrong) = Gates::parse("x.gates", FILE);
        assert_eq!(wrong, []);
        let show = |version: i32| match version {
            i32::MAX => String::new(),
            version => format!("{}.{}", version / 1000, version % 1000 / 10),
        };
        let shown: Vec<String> = gates
            .of(name, HeaderVersion::parse(header))
            .iter()
            .map(|g| {
                let name = g.name.as_deref().unwrap_or("!");
                let null = g.null.map_or(String::new(), |at| format!("+{at}"));
                format!("{}..{}={name}{null}", show(g.from), show(g.below))
            })
            .collect();
        shown.join(" ")
    }

    #[test]
    fn what_means_the_same_is_bound_and_nothing_else() {
        for (name, header, expected) in [
            ("stable", "12", ""),
            ("stable", "", ""),
            // The form of 11 has no other name; that of 12 has.
            ("instantiate", "11", "0.0..11.0=! 12.0..=!"),
            (
                "instantiate",
                "12.9",
                "0.0..11.0=! 11.0..12.0=instantiateWithFlags 14.0..=!",
            ),
            ("instantiate", "", "0.0..=!"),
            // What only ever meant one thing needs no header, and is not refused anywhere.
            ("instantiateWithFlags", "11.8", ""),
            ("instantiateWithFlags", "", ""),
            ("vanished", "", "13.0..14.0=stays"),
            ("vanished", "12", "13.0..14.0=stays"),
            ("stays", "13", ""),
            ("stays", "", ""),
            // The library of 12 keeps the old meaning under the plain name.
            ("properties", "11.8", "0.0..11.0=! 13.0..=!"),
            ("properties", "12", "0.0..11.0=! 13.0..=!"),
            ("properties", "13", "0.0..13.0=! 14.0..=!"),
            ("properties_v2", "12", ""),
            ("properties_v2", "13", ""),
            // Headers of 11 may be either.
            ("grown", "11", "0.0..=!"),
            ("grown", "11.8", "0.0..11.8=! 14.0..=!"),
            ("grown", "11.7", "0.0..11.0=! 11.8..=!"),
            ("grown", "12", "0.0..11.8=! 14.0..=!"),
            // Who calls it has headers of 12 that declare it, be they 12.0 or 12.9.
            ("late", "11", "0.0..=!"),
            ("late", "12", "0.0..12.0=! 13.0..=!"),
            ("later", "12", "0.0..12.9=! 13.0..=!"),
            // The form of 13 takes one argument more, which may be null; that of 11 cannot be had
            // from what it came of.
            ("add", "11", "0.0..11.0=! 13.0..14.0=add+3 14.0..=!"),
            ("add", "12", "0.0..11.0=! 13.0..14.0=add+3 14.0..=!"),
            ("add", "13", "0.0..12.0=! 12.0..13.0=add_v2 14.0..=!"),
            ("add_v2", "12", "13.0..14.0=add"),
            // Without a header it may be either.
            ("add", "", "0.0..=!"),
            ("moved", "", "13.0..14.0=moved_v2+0"),
            ("moved_v2", "", ""),
        ] {
            assert_eq!(of(name, header), expected, "{name} with headers {header}");
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (line, message) in [
            ("f", "line 3 of x.gates is not understood: f"),
            ("f 12.0", "line 3 of x.gates is not understood: f 12.0"),
            ("f 12.0=x", "line 3 of"),
            ("f 12.0=1 11.8=2", "line 3 of"),
            ("f 12.0=1 12.0=2", "line 3 of"),
            ("@headers", "line 3 of"),
            ("@headers 13.0 12.0", "line 3 of"),
            ("@other", "line 3 of"),
            ("@gpustub-gates 1", "line 3 of"),
            ("f 12.0=1\nf 12.0=1", "x.gates has f twice"),
            ("@null", "line 3 of"),
            ("@null 1", "line 3 of"),
            ("f 11.8=1 12.0=2\n@null 1 2", "line 4 of"),
            ("f 11.8=1 12.0=2\n@null 1 1 0", "line 4 of"),
            ("f 11.8=1 12.0=2\n@null 1 2 6", "line 4 of"),
            ("f 11.8=1 12.0=2\n@null 1 2 -1", "line 4 of"),
            ("f 11.8=1 12.0=2\n@null 1 2 3 4", "line 4 of"),
            ("f 11.8=1 12.0=2\n@null 1 2 3\n@null 1 2 4", "line 5 of"),
            (
                "f 11.8=1 12.0=2\n\n@null 1 2 3",
                "`@null 1 2 3` of x.gates: no name of its group means 1",
            ),
            (
                "f 11.8=1 12.0=2\n@null 1 3 0",
                "`@null 1 3 0` of x.gates: no name of its group means 3",
            ),
        ] {
            let text = format!("@gpustub-gates 1\n@headers 11.8 12.0\n{line}\n");
            let (_, wrong) = Gates::parse("x.gates", &text);
            assert_eq!(wrong.len(), 1, "{line:?}: {wrong:?}");
            assert!(wrong[0].message.starts_with(message), "{wrong:?}");
            let explained = wrong[0].help.iter().any(|h| h.contains("0 to 5"));
            let is_line = wrong[0].message.starts_with("line") && line.contains("@null");
            assert_eq!(explained, is_line, "{wrong:?}");
        }
        assert_eq!(Gates::parse("x.gates", "").1, []);
    }
}
