//! Text form of `manifests/*.abi`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use gpustub_core::version::Version;

use super::numbers::Numbered;

/// ABI variant of a name from a version on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AbiVariant {
    Missing,
    /// Exported with another ABI than the headers declare.
    Avoided,
    Number(usize),
}

/// A variant that is another one with a null argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NullAdapter {
    /// Number of the variant without the argument.
    pub old: usize,
    /// Number of the variant with the argument.
    pub new: usize,
    /// Position of the argument that is null.
    pub argument: u8,
}

/// Names of which one may be bound instead of another.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub names: BTreeMap<String, Vec<(Version, AbiVariant)>>,
    /// Reasons why names changed.
    pub reasons: BTreeMap<(String, Version), String>,
    /// Variants that another one serves with a null argument.
    pub adapters: Vec<NullAdapter>,
    /// Variants whose calls differ in numbers of enumerations only.
    pub numbered: Vec<Numbered>,
    /// Whether any name of the group changes.
    pub is_listed: bool,
}

#[cfg(test)]
type Names<'a> = BTreeSet<(Version, &'a str)>;
#[cfg(test)]
pub type Adapted<'a> = (Names<'a>, Names<'a>, u8);

impl Group {
    /// ABI variant of a name in a version.
    pub fn variant(&self, name: &str, version: Version) -> AbiVariant {
        let line = self.names.get(name).map_or(&[][..], Vec::as_slice);
        line.iter()
            .take_while(|(since, _)| *since <= version)
            .last()
            .map_or(AbiVariant::Missing, |(_, variant)| *variant)
    }
}

#[cfg(test)]
impl Group {
    /// Names and versions with a variant that a null argument adapts, those with the adapted variant, and
    /// the index of the argument.
    pub fn adapted(&self, versions: &[Version]) -> BTreeSet<Adapted<'_>> {
        self.adapters
            .iter()
            .map(|adapter| {
                (
                    self.names_with_variant(adapter.old, versions),
                    self.names_with_variant(adapter.new, versions),
                    adapter.argument,
                )
            })
            .collect()
    }

    fn names_with_variant(&self, number: usize, versions: &[Version]) -> Names<'_> {
        let mut names = Names::new();
        for name in self.names.keys() {
            for version in versions {
                if self.variant(name, *version) == AbiVariant::Number(number) {
                    names.insert((*version, name.as_str()));
                }
            }
        }
        names
    }

    /// Sets of names and versions with the same variant. The numbers of variants are arbitrary.
    pub fn partition(&self, versions: &[Version]) -> BTreeSet<BTreeSet<(Version, &str)>> {
        let mut parts: BTreeMap<AbiVariant, BTreeSet<(Version, &str)>> = BTreeMap::new();
        for name in self.names.keys() {
            for version in versions {
                let part = parts.entry(self.variant(name, *version)).or_default();
                part.insert((*version, name));
            }
        }
        parts.remove(&AbiVariant::Missing);
        parts.into_values().collect()
    }
}

impl Group {
    /// Whether a version has a function of variant `to`, and none of variant `from`, which another has.
    fn is_needed(&self, versions: &[Version], from: usize, to: usize) -> bool {
        versions.iter().any(|v| self.has_number(*v, from))
            && versions
                .iter()
                .any(|v| self.has_number(*v, to) && !self.has_number(*v, from))
    }

    /// Whether a version has a function of a variant.
    fn has_number(&self, version: Version, number: usize) -> bool {
        self.names
            .keys()
            .any(|name| self.variant(name, version) == AbiVariant::Number(number))
    }

    /// Adapters for numbers, as the variant of the caller, that of the library, the name of the adapter and the kinds.
    pub fn numbered(&self, versions: &[Version]) -> Vec<(usize, usize, String, &str)> {
        let mut adapters = Vec::new();
        for Numbered {
            old,
            new,
            since,
            kinds,
        } in &self.numbered
        {
            for (from, to, word) in [(*old, *new, "by"), (*new, *old, "of")] {
                if self.is_needed(versions, from, to) {
                    let code = format!("numbers_{word}_{since}");
                    adapters.push((from, to, code, kinds.as_str()));
                }
            }
        }
        adapters
    }

    /// Lines of the ABI table for calls with other numbers.
    pub fn number_lines(&self, versions: &[Version]) -> Vec<String> {
        let mut lines = Vec::new();
        for (from, to, code, _) in self.numbered(versions) {
            lines.push(format!("@adapter {from} {to} {code}"));
        }
        let mut numbers = BTreeSet::new();
        for numbered in &self.numbered {
            numbers.extend([numbered.old, numbered.new]);
        }
        if versions.iter().any(|version| self.is_missing(*version)) {
            for number in numbers {
                lines.push(format!(
                    "@refused {number} - the library has no such function"
                ));
            }
        }
        lines
    }

    /// Whether a version has no function of the group.
    fn is_missing(&self, version: Version) -> bool {
        self.names
            .keys()
            .all(|name| self.variant(name, version) == AbiVariant::Missing)
    }
}

/// Contents of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AbiTable {
    pub headers: Vec<Version>,
    /// Mark of names that the versions from the first on, below the second, have beside the names without it.
    pub renamed: Option<(&'static str, Version, Version)>,
    /// The library's own number in each of these versions; empty: it is the same.
    pub own_versions: Vec<String>,
    /// Drivers of releases: `12.2=535`.
    pub drivers: Vec<String>,
    pub groups: Vec<Group>,
}

const FORMAT: &str = "@gpustub-abi 1";

/// Maximum length of a line of names.
const MAX_LINE_LENGTH: usize = 86;

impl AbiTable {
    /// Formats the groups with changes or relations, after comments and the undeclared exports. `relations` returns the
    /// lines of a group that relate its variants.
    pub fn to_text(
        &self,
        comments: &str,
        undeclared: &BTreeSet<String>,
        mut relations: impl FnMut(&Group) -> Vec<String>,
    ) -> String {
        let mut text = format!("{FORMAT}\n");
        for comment in comments.lines() {
            text += format!("# {comment}").trim_end();
            text.push('\n');
        }
        let mut line = String::new();
        for name in undeclared {
            if !line.is_empty() && line.len() + name.len() > MAX_LINE_LENGTH {
                let _ = writeln!(text, "@undeclared{line}");
                line.clear();
            }
            let _ = write!(line, " {name}");
        }
        if !line.is_empty() {
            let _ = writeln!(text, "@undeclared{line}");
        }
        text += "@headers";
        for version in &self.headers {
            let _ = write!(text, " {version}");
        }
        text.push('\n');
        if let Some((mark, from, below)) = self.renamed {
            let _ = writeln!(text, "@renamed {mark} {from} {below}");
        }
        if !self.own_versions.is_empty() {
            let _ = writeln!(text, "@own-versions {}", self.own_versions.join(" "));
        }
        if !self.drivers.is_empty() {
            let _ = writeln!(text, "@drivers {}", self.drivers.join(" "));
        }
        for group in &self.groups {
            let relations = relations(group);
            if !group.is_listed && relations.is_empty() {
                continue;
            }
            text.push('\n');
            for NullAdapter { old, new, argument } in &group.adapters {
                let _ = writeln!(text, "@null-argument {old} {new} {argument}");
            }
            for line in group.number_lines(&self.headers) {
                let _ = writeln!(text, "{line}");
            }
            for line in relations {
                let _ = writeln!(text, "{line}");
            }
            group.write_names(&mut text);
        }
        text
    }
}

impl Group {
    /// Writes the line of each name, after the reasons why it changed.
    fn write_names(&self, text: &mut String) {
        for (name, line) in &self.names {
            for ((changed, version), reason) in &self.reasons {
                if changed == name {
                    let _ = writeln!(text, "# {name} {version}: {reason}");
                }
            }
            text.push_str(name);
            for (version, variant) in line {
                let _ = match variant {
                    AbiVariant::Missing => write!(text, " {version}=-"),
                    AbiVariant::Avoided => write!(text, " {version}=!"),
                    AbiVariant::Number(number) => write!(text, " {version}={number}"),
                };
            }
            text.push('\n');
        }
    }
}

/// Reader for tests: the planner has a separate one.
#[cfg(test)]
impl AbiTable {
    /// Reads a file without its comments.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut table = AbiTable::default();
        let mut lines = text.lines();
        if lines.next() != Some(FORMAT) {
            return Err(format!("the first line is not `{FORMAT}`"));
        }
        let mut in_group = false;
        for line in lines {
            let mut words = line.split_whitespace();
            match words.next() {
                None => in_group = false,
                Some("#" | "@undeclared" | "@renamed" | "@passes" | "@adapter" | "@refused") => {}
                Some("@headers") => {
                    table.headers = words
                        .map(|word| version(word, line))
                        .collect::<Result<_, _>>()?;
                }
                Some("@drivers") => table.drivers = words.map(str::to_owned).collect(),
                Some("@own-versions") => table.own_versions = words.map(str::to_owned).collect(),
                Some(name) => {
                    if !in_group {
                        table.groups.push(Group {
                            is_listed: true,
                            ..Group::default()
                        });
                        in_group = true;
                    }
                    let Some(group) = table.groups.last_mut() else {
                        continue;
                    };
                    if name == "@null-argument" {
                        group.adapters.push(adapter(words, line)?);
                        continue;
                    }
                    let variants = words
                        .map(|word| variant(word, line))
                        .collect::<Result<_, _>>()?;
                    group.names.insert(name.to_owned(), variants);
                }
            }
        }
        Ok(table)
    }
}

#[cfg(test)]
fn version(word: &str, line: &str) -> Result<Version, String> {
    Version::parse(word).ok_or_else(|| format!("`{word}` is no version: {line}"))
}

#[cfg(test)]
fn adapter<'t>(words: impl Iterator<Item = &'t str>, line: &str) -> Result<NullAdapter, String> {
    let numbers: Option<Vec<u8>> = words.map(|word| word.parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[old, new, argument]) => Ok(NullAdapter {
            old: old.into(),
            new: new.into(),
            argument,
        }),
        _ => Err(format!("no two variants and an argument: {line}")),
    }
}

#[cfg(test)]
fn variant(word: &str, line: &str) -> Result<(Version, AbiVariant), String> {
    let variant = match word.split_once('=') {
        Some((since, "-")) => Some((since, AbiVariant::Missing)),
        Some((since, "!")) => Some((since, AbiVariant::Avoided)),
        Some((since, number)) => match number.parse() {
            Ok(number) => Some((since, AbiVariant::Number(number))),
            Err(_) => None,
        },
        None => None,
    };
    let (since, variant) = variant.ok_or_else(|| format!("`{word}` is no variant: {line}"))?;
    Ok((version(since, line)?, variant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_it_was_written() {
        let text = "@gpustub-abi 1\n# Of a test.\n@headers 11.8 12.9\n@own-versions 1.0.0 2.0.0\n\n@null-argument 2 1 0\na 11.8=1 12.9=2\nb 11.8=2 12.9=-\n\nc 12.9=1\n";
        let table = AbiTable::parse(text).unwrap();
        assert_eq!(
            table.to_text("Of a test.", &BTreeSet::new(), |_| Vec::new()),
            text
        );
        let names = ["a".repeat(80), "b".to_owned(), "c".repeat(5)];
        let head: Vec<_> = table
            .to_text("", &names.iter().cloned().collect(), |_| Vec::new())
            .lines()
            .map(str::to_owned)
            .collect();
        let lines = [
            format!("@undeclared {} b", names[0]),
            format!("@undeclared {}", names[2]),
        ];
        assert_eq!(head[1..3], lines);
        assert_eq!(table.groups.len(), 2);
        let versions = table.headers.as_slice();
        assert_eq!(
            table.groups[0].variant("a", versions[0]),
            AbiVariant::Number(1)
        );
        assert_eq!(
            table.groups[0].variant("b", versions[1]),
            AbiVariant::Missing
        );
        let renumbered = "@gpustub-abi 1\n@headers 11.8 12.9\n\n@null-argument 3 7 0\na 11.8=7 12.9=3\nb 11.8=3 12.9=-\n";
        let renumbered = AbiTable::parse(renumbered).unwrap();
        let [group, renumbered] = [&table.groups[0], &renumbered.groups[0]];
        assert_eq!(group.partition(versions), renumbered.partition(versions));
        assert_eq!(group.adapted(versions), renumbered.adapted(versions));
        assert_eq!(group.adapted(versions).len(), 1);
        assert!(AbiTable::parse("a 1=1").is_err());
        assert!(AbiTable::parse("@gpustub-abi 1\na 1:1").is_err());
        assert!(AbiTable::parse("@gpustub-abi 1\n@null-argument 1 2").is_err());
    }
}
