//! ABI variants of exported functions, by version: `manifests/<id>.abi`.
//!
//! ```text
//! @gpustub-abi 1
//! @undeclared __cudaRegisterVar
//! @headers 11.8 12.0 12.9 13.0
//!
//! cudaGetDeviceProperties 11.8=1 13.0=3
//! cudaGetDeviceProperties_v2 12.0=2 13.0=-
//!
//! @null-argument 1 2 3
//! cudaGraphAddDependencies 11.8=1 13.0=2
//! ```
//!
//! From 13.0 on, the library's `cudaGetDeviceProperties` has another ABI variant than before (its
//! pointer refers to another struct); 12.0 added `_v2` and 13.0 removed it. Names of one group (no
//! empty line between them) with the same variant can be bound in place of each other.
//! `@null-argument` declares for its group that a call of variant 1 is a call of variant 2 with a null
//! pointer as argument 3, counted from 0, and the caller's remaining arguments after it. A
//! function that is not in the file has one ABI in all versions. The versions that export an
//! undeclared function do not say which headers have it: no header declares the function, or one
//! whose library lacks it.

use crate::by_name::ByName;
use crate::diag::{Diagnostic, MALFORMED_SYMBOL_LIST};
use crate::version::{HeaderVersion, Version};

/// ABI variant of a name from a version on; `None`: the name is not exported.
type AbiVariant = Option<u32>;

/// A name, with its variants from the lowest version to the highest.
#[derive(Clone)]
#[cfg_attr(feature = "tools", derive(Debug, PartialEq, Eq))]
struct Name {
    name: String,
    group: usize,
    variants: Vec<(Version, AbiVariant)>,
}

/// Maximum number of arguments of an adapted call: those that every machine passes in registers
/// (x86-64 psABI 3.2.3: six integers; AArch64 has eight), so that none moves to the stack.
pub const MAX_ARGUMENTS: u8 = 6;

/// Null-argument adapter: one variant as another that has one more argument, which is null.
#[derive(Clone, Copy)]
#[cfg_attr(feature = "tools", derive(Debug, PartialEq, Eq))]
struct Adapter {
    group: usize,
    old: u32,
    new: u32,
    /// Index of the null argument, from 0.
    argument: u8,
}

/// ABI table of a library.
#[derive(Clone, Default)]
#[cfg_attr(feature = "tools", derive(Debug, PartialEq, Eq))]
pub struct AbiTable {
    /// Versions whose headers were read, ascending.
    headers: Vec<Version>,
    undeclared: ByName<()>,
    /// Names in the order of the file, which keeps groups together.
    names: Vec<Name>,
    /// Indexes into `names`.
    by_name: ByName<usize>,
    /// Adapters, at most one for a variant of a group.
    adapters: Vec<Adapter>,
}

/// Replacement for a function's own name in the library versions `from..below` (as
/// [`Version::code`] encodes them).
#[cfg_attr(
    feature = "tools",
    derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)
)]
pub struct AbiEntry {
    /// Lowest version.
    pub from: i32,
    /// First version after the range.
    pub below: i32,
    /// Name that has there the variant of the headers; `None`: no name has it, refuse the call.
    pub name: Option<String>,
    /// Index (from 0, below [`MAX_ARGUMENTS`]) of the argument that is null there and that the headers
    /// do not have; the same in all entries of a function.
    pub null_argument: Option<u8>,
}

impl AbiTable {
    /// Reads a file; `file` names it in diagnostics.
    pub fn parse(file: &str, text: &str) -> (Self, Vec<Diagnostic>) {
        let mut table = Self::default();
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
                Some("@gpustub-abi") => {
                    index == 0 && words.next() == Some("1") && words.next().is_none()
                }
                Some("@undeclared") => {
                    for word in words {
                        table.undeclared.insert(word, ());
                    }
                    true
                }
                Some("@headers") => {
                    table.headers.clear();
                    let mut ascending = true;
                    for version in words.map_while(Version::parse) {
                        ascending &= table.headers.last().is_none_or(|last| *last <= version);
                        table.headers.push(version);
                    }
                    ascending && !table.headers.is_empty()
                }
                Some("@null-argument") => match adapter(group, words) {
                    Some(found) => {
                        let same = |a: &Adapter| (a.group, a.old) == (group, found.old);
                        let is_first = !table.adapters.iter().any(same);
                        table.adapters.push(found);
                        is_first
                    }
                    None => false,
                },
                Some(name) => match variants(words) {
                    Some(variants) => {
                        let name = name.to_owned();
                        table.names.push(Name {
                            name,
                            group,
                            variants,
                        });
                        true
                    }
                    None => false,
                },
            };
            if !understood {
                let message = format!("line {} of {file} is malformed: {line}", index + 1);
                let mut error = Diagnostic::error(&MALFORMED_SYMBOL_LIST, message);
                if line.starts_with("@null-argument") {
                    error = error.help(format!(
                        "`@null-argument OLD NEW ARGUMENT`: two variants of the group, the first of \
                         them in no other such line, and the index of the new one's null argument: \
                         0 to {}",
                        MAX_ARGUMENTS - 1
                    ));
                }
                wrong.push(error);
            }
        }
        let names = &table.names;
        for a in &table.adapters {
            let is_known = |variant: u32| {
                let mut group = names.iter().filter(|name| name.group == a.group);
                group.any(|name| name.variants.iter().any(|(_, v)| *v == Some(variant)))
            };
            if let Some(missing) = [a.old, a.new].into_iter().find(|v| !is_known(*v)) {
                let Adapter {
                    old, new, argument, ..
                } = a;
                let message = format!(
                    "`@null-argument {old} {new} {argument}` of {file}: no name of its group has variant {missing}"
                );
                wrong.push(Diagnostic::error(&MALFORMED_SYMBOL_LIST, message));
            }
        }
        for (index, Name { name, .. }) in names.iter().enumerate() {
            if table.by_name.insert(name, index).is_some() {
                let message = format!("{file} has {name} twice");
                wrong.push(Diagnostic::error(&MALFORMED_SYMBOL_LIST, message));
            }
        }
        (table, wrong)
    }

    /// Whether every function has one ABI in all versions.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn find(&self, name: &str) -> Option<&Name> {
        self.by_name.get(name).map(|&index| &self.names[index])
    }

    /// Whether the function has another ABI in other versions.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether the function has several ABI variants, so that it is refused where the version of the
    /// headers is unknown.
    pub fn depends_on_headers(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|name| only_variant(name).is_none())
    }

    /// Whether the function is exported in this version.
    pub fn is_exported_in(&self, name: &str, version: Version) -> bool {
        self.find(name)
            .is_some_and(|name| variant_in(name, version).is_some())
    }

    /// Whether the versions that export the function do not say which headers declare it.
    pub fn is_undeclared(&self, name: &str) -> bool {
        self.undeclared.contains_key(name)
    }

    /// Versions whose headers were read, ascending.
    pub fn headers(&self) -> &[Version] {
        &self.headers
    }

    /// Names in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| name.name.as_str())
    }

    /// Names bound for `name` in a program that was compiled against `header-version`, ascending and without
    /// overlap; between the entries the name itself. Empty: always the name itself.
    pub fn entries(&self, name: &str, header: Option<HeaderVersion>) -> Vec<AbiEntry> {
        let (Some(own), Some(&oldest), Some(&newest)) =
            (self.find(name), self.headers.first(), self.headers.last())
        else {
            return Vec::new();
        };
        let always = only_variant(own);
        let declared = always.or_else(|| declared_variant(own, header?, oldest));
        let Some(wanted) = declared else {
            return vec![AbiEntry {
                from: 0,
                below: i32::MAX,
                name: None,
                null_argument: None,
            }];
        };
        let mut group = Vec::new();
        for name in &self.names {
            if name.group == own.group {
                group.push(name);
            }
        }
        let applies = |a: &&Adapter| (a.group, a.old) == (own.group, wanted);
        let adapter = self.adapters.iter().find(applies);
        // A version before the first header is treated as that one, within its major only; one after
        // the last, as the last, within its major only.
        let start = Version::new(oldest.major, 0);
        let end = Version::new(newest.major + 1, 0);
        let mut starts: Vec<Version> = vec![start];
        for name in &group {
            for (version, _) in &name.variants {
                let place = starts.partition_point(|other| other < version);
                if *version > start && starts.get(place) != Some(version) {
                    starts.insert(place, *version);
                }
            }
        }
        let mut entries = Vec::new();
        let mut add = |from: i32, below: i32, bound: Option<(&Name, Option<u8>)>| {
            // A name with a single variant is searched under itself, if no other name fits.
            if always.is_some() && bound.is_none() {
                return;
            }
            let name = bound.map(|(name, _)| name.name.clone());
            let null_argument = bound.and_then(|(_, argument)| argument);
            match entries.last_mut() {
                Some(AbiEntry {
                    below: end,
                    name: last,
                    null_argument: argument,
                    ..
                }) if *end == from && *last == name && *argument == null_argument => *end = below,
                _ => entries.push(AbiEntry {
                    from,
                    below,
                    name,
                    null_argument,
                }),
            }
        };
        add(0, code(start), None);
        for (index, &from) in starts.iter().enumerate() {
            let below = starts.get(index + 1).copied().unwrap_or(end);
            let variant = |name: &Name| variant_in(name, from.max(oldest));
            let with = |wanted: u32| {
                let mut names = group.iter().copied();
                names.find(|name| variant(name) == Some(wanted))
            };
            if variant(own) != Some(wanted) {
                let same = with(wanted).map(|name| (name, None));
                let adapted = || {
                    let Adapter { new, argument, .. } = *adapter?;
                    Some((with(new)?, Some(argument)))
                };
                add(code(from), code(below), same.or_else(adapted));
            }
        }
        add(code(end), i32::MAX, None);
        entries
    }
}

/// Variant of a name that has the same one wherever it is exported.
fn only_variant(name: &Name) -> AbiVariant {
    variant_within(name, Version::new(0, 0), Version::new(u32::MAX, 0))
}

fn code(version: Version) -> i32 {
    i32::try_from(version.code()).unwrap_or(i32::MAX)
}

/// Variant of the name in a version.
fn variant_in(name: &Name, version: Version) -> AbiVariant {
    let later = name.variants.partition_point(|(from, _)| *from <= version);
    name.variants[..later]
        .last()
        .and_then(|(_, variant)| *variant)
}

/// Variant of the name in those of the headers that declare it; `None` if there are none, or if
/// they differ.
fn declared_variant(name: &Name, header: HeaderVersion, oldest: Version) -> AbiVariant {
    let start = if header.from.major == oldest.major {
        header.from.max(oldest)
    } else {
        header.from
    };
    variant_within(name, start, header.below)
}

/// Variant of a name that has the same one in all versions of `start..below` that export it.
fn variant_within(name: &Name, start: Version, below: Version) -> AbiVariant {
    let mut found = variant_in(name, start);
    for (from, variant) in &name.variants {
        if variant.is_some() && (start..below).contains(from) {
            if found.is_some() && found != *variant {
                return None;
            }
            found = *variant;
        }
    }
    found
}

/// Reads `OLD NEW ARGUMENT`.
fn adapter<'t>(group: usize, mut words: impl Iterator<Item = &'t str>) -> Option<Adapter> {
    let old = words.next()?.parse().ok()?;
    let new = words.next()?.parse().ok()?;
    let argument: u32 = words.next()?.parse().ok()?;
    let argument = u8::try_from(argument).ok()?;
    let is_sound = words.next().is_none() && old != new && argument < MAX_ARGUMENTS;
    is_sound.then_some(Adapter {
        group,
        old,
        new,
        argument,
    })
}

/// Reads `VERSION=VARIANT …`, ascending.
fn variants<'t>(words: impl Iterator<Item = &'t str>) -> Option<Vec<(Version, AbiVariant)>> {
    let mut variants: Vec<(Version, AbiVariant)> = Vec::new();
    for word in words {
        let (version, variant) = word.split_once('=')?;
        let version = Version::parse(version)?;
        let variant = match variant {
            "-" => None,
            number => Some(number.parse().ok()?),
        };
        if variants.last().is_some_and(|(last, _)| *last >= version) {
            return None;
        }
        variants.push((version, variant));
    }
    (!variants.is_empty()).then_some(variants)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
@gpustub-abi 1
# Comments and empty lines are allowed anywhere.
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

@null-argument 1 2 3
add 11.7=1 13.0=2
add_v2 12.0=2 13.0=-

@null-argument 1 2 0
moved 11.7=1 13.0=-
moved_v2 13.0=2
";

    /// `from..below=name`, or `!` for a refusal, with `+` and the argument that is null; between them
    /// the own name.
    fn entries(name: &str, header: &str) -> String {
        let (table, wrong) = AbiTable::parse("x.abi", FILE);
        assert_eq!(wrong, []);
        let show = |version: i32| match version {
            i32::MAX => String::new(),
            version => format!("{}.{}", version / 1000, version % 1000 / 10),
        };
        let shown: Vec<String> = table
            .entries(name, HeaderVersion::parse(header))
            .iter()
            .map(|e| {
                let name = e.name.as_deref().unwrap_or("!");
                let null = e.null_argument.map_or(String::new(), |at| format!("+{at}"));
                format!("{}..{}={name}{null}", show(e.from), show(e.below))
            })
            .collect();
        shown.join(" ")
    }

    #[test]
    fn only_names_of_the_same_variant_are_bound() {
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
            // A name with a single variant needs no header and is refused nowhere.
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
            // Headers of 11 have either variant.
            ("grown", "11", "0.0..=!"),
            ("grown", "11.8", "0.0..11.8=! 14.0..=!"),
            ("grown", "11.7", "0.0..11.0=! 11.8..=!"),
            ("grown", "12", "0.0..11.8=! 14.0..=!"),
            // A caller has headers of 12 that declare the function, either 12.0 or 12.9.
            ("late", "11", "0.0..=!"),
            ("late", "12", "0.0..12.0=! 13.0..=!"),
            ("later", "12", "0.0..12.9=! 13.0..=!"),
            // The form of 13 takes one more argument, which may be null; the form of 11 cannot be
            // derived from its predecessor.
            ("add", "11", "0.0..11.0=! 13.0..14.0=add+3 14.0..=!"),
            ("add", "12", "0.0..11.0=! 13.0..14.0=add+3 14.0..=!"),
            ("add", "13", "0.0..12.0=! 12.0..13.0=add_v2 14.0..=!"),
            ("add_v2", "12", "13.0..14.0=add"),
            // Without a header, either variant.
            ("add", "", "0.0..=!"),
            ("moved", "", "13.0..14.0=moved_v2+0"),
            ("moved_v2", "", ""),
        ] {
            assert_eq!(
                entries(name, header),
                expected,
                "{name} with headers {header}"
            );
        }
    }

    #[test]
    fn malformed_lines_are_reported() {
        for (line, message) in [
            ("f", "line 3 of x.abi is malformed: f"),
            ("f 12.0", "line 3 of x.abi is malformed: f 12.0"),
            ("f 12.0=x", "line 3 of"),
            ("f 12.0=1 11.8=2", "line 3 of"),
            ("f 12.0=1 12.0=2", "line 3 of"),
            ("@headers", "line 3 of"),
            ("@headers 13.0 12.0", "line 3 of"),
            ("@other", "line 3 of"),
            ("@gpustub-abi 1", "line 3 of"),
            ("f 12.0=1\nf 12.0=1", "x.abi has f twice"),
            ("@null-argument", "line 3 of"),
            ("@null-argument 1", "line 3 of"),
            ("f 11.8=1 12.0=2\n@null-argument 1 2", "line 4 of"),
            ("f 11.8=1 12.0=2\n@null-argument 1 1 0", "line 4 of"),
            ("f 11.8=1 12.0=2\n@null-argument 1 2 6", "line 4 of"),
            ("f 11.8=1 12.0=2\n@null-argument 1 2 -1", "line 4 of"),
            ("f 11.8=1 12.0=2\n@null-argument 1 2 3 4", "line 4 of"),
            (
                "f 11.8=1 12.0=2\n@null-argument 1 2 3\n@null-argument 1 2 4",
                "line 5 of",
            ),
            (
                "f 11.8=1 12.0=2\n\n@null-argument 1 2 3",
                "`@null-argument 1 2 3` of x.abi: no name of its group has variant 1",
            ),
            (
                "f 11.8=1 12.0=2\n@null-argument 1 3 0",
                "`@null-argument 1 3 0` of x.abi: no name of its group has variant 3",
            ),
        ] {
            let text = format!("@gpustub-abi 1\n@headers 11.8 12.0\n{line}\n");
            let (_, wrong) = AbiTable::parse("x.abi", &text);
            assert_eq!(wrong.len(), 1, "{line:?}: {wrong:?}");
            assert!(wrong[0].message.starts_with(message), "{wrong:?}");
            let explained = wrong[0].help.iter().any(|h| h.contains("0 to 5"));
            let is_line = wrong[0].message.starts_with("line") && line.contains("@null-argument");
            assert_eq!(explained, is_line, "{wrong:?}");
        }
        assert_eq!(AbiTable::parse("x.abi", "").1, []);
    }
}
