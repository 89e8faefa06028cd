//! The form of `manifests/*.gates`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use gpustub_core::version::Version;

/// What a name means from a version on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    Absent,
    Number(usize),
}

/// Names of which one may stand for another.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub names: BTreeMap<String, Vec<(Version, Meaning)>>,
    /// Why a name changed.
    pub reasons: BTreeMap<(String, Version), String>,
    /// Numbers of meanings of which the first is the second with null as this argument.
    pub translations: Vec<(usize, usize, u8)>,
    /// Whether anything changes in it.
    pub is_listed: bool,
}

#[cfg(test)]
type Names<'a> = BTreeSet<(Version, &'a str)>;
#[cfg(test)]
pub type Translated<'a> = (Names<'a>, Names<'a>, u8);

#[cfg(test)]
impl Group {
    /// What a name means in a version.
    pub fn at(&self, name: &str, version: Version) -> Meaning {
        let line = self.names.get(name).map_or(&[][..], Vec::as_slice);
        let until = line.iter().take_while(|(since, _)| *since <= version);
        until
            .last()
            .map_or(Meaning::Absent, |(_, meaning)| *meaning)
    }

    /// The names and versions with a meaning that can be had by null, those with what it is had from, and
    /// which argument that is.
    pub fn translated(&self, versions: &[Version]) -> BTreeSet<Translated<'_>> {
        let meaning = |number: usize| {
            let names = self.names.keys();
            let all = names.flat_map(|name| versions.iter().map(move |v| (*v, name.as_str())));
            all.filter(|(v, name)| self.at(name, *v) == Meaning::Number(number))
                .collect()
        };
        let translations = self.translations.iter();
        translations
            .map(|(old, new, argument)| (meaning(*old), meaning(*new), *argument))
            .collect()
    }

    /// For each version the names by meaning: which mean the same as which others, in which
    /// version. The numbers themselves say nothing.
    pub fn partition(&self, versions: &[Version]) -> BTreeSet<BTreeSet<(Version, &str)>> {
        let mut parts: BTreeMap<Meaning, BTreeSet<(Version, &str)>> = BTreeMap::new();
        for name in self.names.keys() {
            for version in versions {
                let part = parts.entry(self.at(name, *version)).or_default();
                part.insert((*version, name));
            }
        }
        parts.remove(&Meaning::Absent);
        parts.into_values().collect()
    }
}

/// The file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gates {
    pub headers: Vec<Version>,
    pub groups: Vec<Group>,
}

const FORMAT: &str = "@gpustub-gates 1";

/// Of a line of names.
const LONGEST_LINE: usize = 86;

impl Gates {
    /// The groups in which something changes, below comments and the untold exports.
    pub fn to_text(&self, comments: &str, untold: &BTreeSet<String>) -> String {
        let mut text = format!("{FORMAT}\n");
        for comment in comments.lines() {
            text += format!("# {comment}").trim_end();
            text.push('\n');
        }
        let mut line = String::new();
        for name in untold {
            if !line.is_empty() && line.len() + name.len() > LONGEST_LINE {
                let _ = writeln!(text, "@untold{line}");
                line.clear();
            }
            let _ = write!(line, " {name}");
        }
        if !line.is_empty() {
            let _ = writeln!(text, "@untold{line}");
        }
        text += "@headers";
        for version in &self.headers {
            let _ = write!(text, " {version}");
        }
        text.push('\n');
        for group in self.groups.iter().filter(|group| group.is_listed) {
            text.push('\n');
            for (old, new, argument) in &group.translations {
                let _ = writeln!(text, "@null {old} {new} {argument}");
            }
            for (name, line) in &group.names {
                for ((of, version), reason) in &group.reasons {
                    if of == name {
                        let _ = writeln!(text, "# {name} {version}: {reason}");
                    }
                }
                text += name;
                for (version, meaning) in line {
                    let _ = match meaning {
                        Meaning::Absent => write!(text, " {version}=-"),
                        Meaning::Number(number) => write!(text, " {version}={number}"),
                    };
                }
                text.push('\n');
            }
        }
        text
    }
}

/// Only tests read: the planner has a reader of its own.
#[cfg(test)]
impl Gates {
    /// Reads a file; the comments are lost.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut gates = Gates::default();
        let mut lines = text.lines();
        if lines.next() != Some(FORMAT) {
            return Err(format!("the first line is not `{FORMAT}`"));
        }
        let mut open = false;
        for line in lines {
            let mut words = line.split_whitespace();
            match words.next() {
                None => open = false,
                Some("#" | "@untold") => {}
                Some("@headers") => {
                    gates.headers = words
                        .map(|word| version(word, line))
                        .collect::<Result<_, _>>()?;
                }
                Some(name) => {
                    if !open {
                        gates.groups.push(Group {
                            is_listed: true,
                            ..Group::default()
                        });
                        open = true;
                    }
                    let Some(group) = gates.groups.last_mut() else {
                        continue;
                    };
                    if name == "@null" {
                        group.translations.push(translation(words, line)?);
                        continue;
                    }
                    let meanings = words
                        .map(|word| meaning(word, line))
                        .collect::<Result<_, _>>()?;
                    group.names.insert(name.to_owned(), meanings);
                }
            }
        }
        Ok(gates)
    }
}

#[cfg(test)]
fn version(word: &str, line: &str) -> Result<Version, String> {
    Version::parse(word).ok_or_else(|| format!("`{word}` is no version: {line}"))
}

#[cfg(test)]
fn translation<'t>(
    words: impl Iterator<Item = &'t str>,
    line: &str,
) -> Result<(usize, usize, u8), String> {
    let wrong = || format!("no two meanings and an argument: {line}");
    let numbers: Option<Vec<u8>> = words.map(|word| word.parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[old, new, argument]) => Ok((old.into(), new.into(), argument)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
fn meaning(word: &str, line: &str) -> Result<(Version, Meaning), String> {
    let wrong = || format!("`{word}` is no meaning: {line}");
    let (since, meaning) = word.split_once('=').ok_or_else(wrong)?;
    let meaning = match meaning {
        "-" => Meaning::Absent,
        number => Meaning::Number(number.parse().map_err(|_| wrong())?),
    };
    Ok((version(since, line)?, meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_it_was_written() {
        let text = "@gpustub-gates 1\n# Of a test.\n@headers 11.8 12.9\n\n@null 2 1 0\na 11.8=1 12.9=2\nb 11.8=2 12.9=-\n\nc 12.9=1\n";
        let gates = Gates::parse(text).unwrap();
        assert_eq!(gates.to_text("Of a test.", &BTreeSet::new()), text);
        let names = ["a".repeat(80), "b".to_owned(), "c".repeat(5)];
        let head: Vec<_> = gates
            .to_text("", &names.iter().cloned().collect())
            .lines()
            .map(str::to_owned)
            .collect();
        let lines = [
            format!("@untold {} b", names[0]),
            format!("@untold {}", names[2]),
        ];
        assert_eq!(head[1..3], lines);
        assert_eq!(gates.groups.len(), 2);
        let versions = gates.headers.as_slice();
        assert_eq!(gates.groups[0].at("a", versions[0]), Meaning::Number(1));
        assert_eq!(gates.groups[0].at("b", versions[1]), Meaning::Absent);
        let renumbered = "@gpustub-gates 1\n@headers 11.8 12.9\n\n@null 3 7 0\na 11.8=7 12.9=3\nb 11.8=3 12.9=-\n";
        let [one, other] = [text, renumbered].map(|text| Gates::parse(text).unwrap());
        let [one, other] = [&one.groups[0], &other.groups[0]];
        assert_eq!(one.partition(versions), other.partition(versions));
        assert_eq!(one.translated(versions), other.translated(versions));
        assert_eq!(one.translated(versions).len(), 1);
        assert!(Gates::parse("a 1=1").is_err());
        assert!(Gates::parse("@gpustub-gates 1\na 1:1").is_err());
        assert!(Gates::parse("@gpustub-gates 1\n@null 1 2").is_err());
    }
}
