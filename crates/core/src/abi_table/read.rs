//! Parses a table.

use super::{AbiTable, AbiVariant, Adapter, MAX_ARGUMENTS, Name};
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
