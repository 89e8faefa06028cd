//! Parses a table.

use super::{
    AbiTable, AbiVariant, Adapter, MAX_ARGUMENTS, Relation, RelationKind, Renamed, VersionedName,
    own_code,
};
use crate::diag::{Diagnostic, MALFORMED_SYMBOL_LIST};
use crate::version::Version;

impl AbiTable {
    /// Reads a file; `file` names it in diagnostics.
    pub fn parse(file: &str, text: &str) -> (Self, Vec<Diagnostic>) {
        let mut table = Self::default();
        let mut diagnostics = Vec::new();
        let mut group = 0;
        for (index, line) in text.lines().enumerate() {
            if line.trim_ascii().is_empty() {
                group += 1;
            } else if !table.read_line(index, line, group) {
                diagnostics.push(malformed(file, index, line));
            }
        }
        for relation in &table.relations {
            diagnostics.extend(table.unrelated(file, relation));
        }
        for (index, VersionedName { name, .. }) in table.names.iter().enumerate() {
            if table.by_name.insert(name, index).is_some() {
                let message = format!("{file} has {name} twice");
                diagnostics.push(Diagnostic::error(&MALFORMED_SYMBOL_LIST, message));
            }
        }
        (table, diagnostics)
    }

    /// Reads a line that is not empty. Returns whether it is well-formed.
    fn read_line(&mut self, index: usize, line: &str, group: usize) -> bool {
        let mut words = line.split_ascii_whitespace();
        match words.next().unwrap_or_default() {
            comment if comment.starts_with('#') => true,
            "@gpustub-abi" => index == 0 && words.next() == Some("1") && words.next().is_none(),
            "@undeclared" => {
                for word in words {
                    self.undeclared.insert(word, ());
                }
                true
            }
            "@headers" => {
                self.headers.clear();
                let mut is_ascending = true;
                for version in words.map_while(Version::parse) {
                    is_ascending &= self.headers.last().is_none_or(|last| *last <= version);
                    self.headers.push(version);
                }
                is_ascending && !self.headers.is_empty()
            }
            "@renamed" => {
                self.renamed = renamed(words);
                self.renamed.is_some()
            }
            "@own-versions" => {
                self.own_versions = words.map_while(own_code).collect();
                self.own_versions.len() == self.headers.len()
                    && self.own_versions.is_sorted_by(|a, b| a < b)
            }
            "@drivers" => {
                self.drivers = words.map_while(driver).collect();
                self.drivers.len() == line.split_ascii_whitespace().count() - 1
                    && self.drivers.is_sorted_by(|a, b| a.0 < b.0)
            }
            keyword if keyword.starts_with('@') => match relation(group, keyword, &mut words) {
                Some(relation) => {
                    self.relations.push(relation);
                    words.next().is_none()
                }
                None => false,
            },
            name => match variants(name, group, words) {
                Some(name) => {
                    self.names.push(name);
                    true
                }
                None => false,
            },
        }
    }

    /// Error about a relation, if no name of its group has one of the variants.
    fn unrelated(&self, file: &str, relation: &Relation) -> Option<Diagnostic> {
        let Relation { old, new, .. } = relation;
        for variant in std::iter::once(*old).chain(*new) {
            let is_known = self.names.iter().any(|name| {
                name.group == relation.group
                    && name.variants.iter().any(|(_, v)| *v == Some(variant))
            });
            if !is_known {
                let message = format!(
                    "{file} relates variant {old} to another: no name of their group has variant {variant}"
                );
                return Some(Diagnostic::error(&MALFORMED_SYMBOL_LIST, message));
            }
        }
        None
    }
}

/// Error about a malformed line.
fn malformed(file: &str, index: usize, line: &str) -> Diagnostic {
    let message = format!("line {} of {file} is malformed: {line}", index + 1);
    let error = Diagnostic::error(&MALFORMED_SYMBOL_LIST, message);
    match form(line) {
        Some(form) => error.help(format!(
            "`{form}`: OLD and NEW are variants of the group, of `@adapter` also the same one twice, ARGUMENT is the \
             index of the new one's null argument: 0 to {}",
            MAX_ARGUMENTS - 1
        )),
        None => error,
    }
}

/// Forms of the lines that relate two variants.
const FORMS: [&str; 4] = [
    "@null-argument OLD NEW ARGUMENT",
    "@passes OLD NEW",
    "@adapter OLD NEW CODE [FROM-VERSION]",
    "@refused OLD NEW-OR-DASH REASON",
];

/// Form of a line that begins with one of these keywords.
fn form(line: &str) -> Option<&'static str> {
    for form in FORMS {
        let (keyword, _) = form.split_once(' ')?;
        if line.starts_with(keyword) {
            return Some(form);
        }
    }
    None
}

/// Reads the words after the keyword of such a line.
fn relation<'t>(
    group: usize,
    keyword: &str,
    words: &mut impl Iterator<Item = &'t str>,
) -> Option<Relation> {
    let old = words.next()?.parse().ok()?;
    let new = match words.next()? {
        "-" if keyword == "@refused" => None,
        word => Some(word.parse().ok()?),
    };
    let kind = match keyword {
        "@null-argument" => {
            let argument = words
                .next()?
                .parse()
                .ok()
                .filter(|argument| *argument < MAX_ARGUMENTS)?;
            RelationKind::Adapted(Adapter::NullArgument(argument), Version::new(0, 0))
        }
        "@passes" => RelationKind::Passes,
        "@adapter" => {
            let code = words.next().filter(|code| is_identifier(code))?;
            let from = words
                .next()
                .map_or(Some(Version::new(0, 0)), Version::parse)?;
            RelationKind::Adapted(Adapter::Code(code.to_owned()), from)
        }
        "@refused" => {
            let mut reason = String::new();
            for word in words {
                if !reason.is_empty() {
                    reason.push(' ');
                }
                reason += word;
            }
            RelationKind::Refused(reason)
        }
        _ => return None,
    };
    let may_be_same = keyword == "@adapter";
    (may_be_same || Some(old) != new).then_some(Relation {
        group,
        old,
        new,
        kind,
    })
}

/// Reads `MARK FROM BELOW`.
fn renamed<'t>(mut words: impl Iterator<Item = &'t str>) -> Option<Renamed> {
    let mark = words.next().filter(|mark| is_identifier(mark))?;
    let from = Version::parse(words.next()?)?;
    let below = Version::parse(words.next()?)?;
    (from < below && words.next().is_none()).then(|| Renamed {
        mark: mark.to_owned(),
        from,
        below,
    })
}

/// Reads `VERSION=BRANCH`, or `-=BRANCH` for unknown versions.
fn driver(word: &str) -> Option<(u32, u32)> {
    let (version, branch) = word.split_once('=')?;
    let version = match version {
        "-" => 0,
        version => Version::parse(version)?.code(),
    };
    Some((branch.parse().ok()?, version))
}

/// Whether a word can be a part of a name in C.
fn is_identifier(word: &str) -> bool {
    word.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
}

/// Reads `VERSION=VARIANT …`, ascending.
fn variants<'t>(
    name: &str,
    group: usize,
    words: impl Iterator<Item = &'t str>,
) -> Option<VersionedName> {
    let mut variants: Vec<(Version, AbiVariant)> = Vec::new();
    let mut avoided = Vec::new();
    let mut avoided_from = None;
    let mut previous = None;
    for word in words {
        let (version, variant) = word.split_once('=')?;
        let version = Version::parse(version)?;
        if previous
            .replace(version)
            .is_some_and(|previous| previous >= version)
        {
            return None;
        }
        if let Some(from) = avoided_from.take() {
            avoided.push(from..version);
        }
        match variant {
            "!" => avoided_from = Some(version),
            "-" => variants.push((version, None)),
            number => variants.push((version, Some(number.parse().ok()?))),
        }
    }
    let is_complete = !variants.is_empty() && avoided_from.is_none();
    is_complete.then(|| VersionedName {
        name: name.to_owned(),
        group,
        variants,
        avoided,
    })
}
