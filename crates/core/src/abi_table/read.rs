//! Parses a table.

use super::{
    AbiTable, AbiVariant, Adapter, Kind, MAX_ARGUMENTS, Name, Relation, Renamed, own_code,
};
use crate::diag::{Diagnostic, MALFORMED_SYMBOL_LIST};
use crate::version::Version;

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
                Some("@renamed") => {
                    table.renamed = renamed(words);
                    table.renamed.is_some()
                }
                Some("@own-versions") => {
                    table.own = words.map_while(own_code).collect();
                    table.own.len() == table.headers.len() && table.own.is_sorted_by(|a, b| a < b)
                }
                Some("@drivers") => {
                    table.drivers = words.map_while(driver).collect();
                    table.drivers.len() == line.split_ascii_whitespace().count() - 1
                        && table.drivers.is_sorted_by(|a, b| a.0 < b.0)
                }
                Some(keyword) if keyword.starts_with('@') => {
                    match relation(group, keyword, &mut words) {
                        Some(found) => {
                            table.relations.push(found);
                            words.next().is_none()
                        }
                        None => false,
                    }
                }
                Some(name) => match variants(name, group, words) {
                    Some(name) => {
                        table.names.push(name);
                        true
                    }
                    None => false,
                },
            };
            if !understood {
                let message = format!("line {} of {file} is malformed: {line}", index + 1);
                let mut error = Diagnostic::error(&MALFORMED_SYMBOL_LIST, message);
                if let Some(form) = form(line) {
                    error = error.help(format!(
                        "`{form}`: OLD and NEW are two variants of the group, ARGUMENT is the \
                         index of the new one's null argument: 0 to {}",
                        MAX_ARGUMENTS - 1
                    ));
                }
                wrong.push(error);
            }
        }
        let names = &table.names;
        for Relation {
            group, old, new, ..
        } in &table.relations
        {
            let is_known = |variant: u32| {
                let mut group = names.iter().filter(|name| name.group == *group);
                group.any(|name| name.variants.iter().any(|(_, v)| *v == Some(variant)))
            };
            let mut related = std::iter::once(*old).chain(*new);
            if let Some(missing) = related.find(|variant| !is_known(*variant)) {
                let message = format!(
                    "{file} relates variant {old} to another: no name of their group has variant {missing}"
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
    let keyword = |text: &'static str| text.split(' ').next();
    let mut forms = FORMS.into_iter();
    forms.find(|form| keyword(form).is_some_and(|keyword| line.starts_with(keyword)))
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
            let argument = words.next()?.parse().ok().filter(|a| *a < MAX_ARGUMENTS)?;
            Kind::Adapted(Adapter::NullArgument(argument), Version::new(0, 0))
        }
        "@passes" => Kind::Passes,
        "@adapter" => {
            let code = words.next().filter(|code| is_identifier(code))?;
            let code = Adapter::Code(code.to_owned());
            let from = words
                .next()
                .map_or(Some(Version::new(0, 0)), Version::parse)?;
            Kind::Adapted(code, from)
        }
        "@refused" => {
            let mut reason = String::new();
            for word in words {
                if !reason.is_empty() {
                    reason.push(' ');
                }
                reason += word;
            }
            Kind::Refused(reason)
        }
        _ => return None,
    };
    let found = Relation {
        group,
        old,
        new,
        kind,
    };
    (Some(old) != new).then_some(found)
}

/// Reads `MARK FROM BELOW`.
fn renamed<'t>(mut words: impl Iterator<Item = &'t str>) -> Option<Renamed> {
    let mark = words.next().filter(|mark| is_identifier(mark))?;
    let (from, below) = (
        Version::parse(words.next()?)?,
        Version::parse(words.next()?)?,
    );
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
fn variants<'t>(name: &str, group: usize, words: impl Iterator<Item = &'t str>) -> Option<Name> {
    let mut variants: Vec<(Version, AbiVariant)> = Vec::new();
    let mut avoided = Vec::new();
    let mut start = None;
    let mut last = None;
    for word in words {
        let (version, variant) = word.split_once('=')?;
        let version = Version::parse(version)?;
        if last.replace(version).is_some_and(|last| last >= version) {
            return None;
        }
        if let Some(start) = start.take() {
            avoided.push(start..version);
        }
        match variant {
            "!" => start = Some(version),
            "-" => variants.push((version, None)),
            number => variants.push((version, Some(number.parse().ok()?))),
        }
    }
    let is_complete = !variants.is_empty() && start.is_none();
    is_complete.then(|| Name {
        name: name.to_owned(),
        group,
        variants,
        avoided,
    })
}
