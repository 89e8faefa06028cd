//! Output of differences.

use std::fmt::Write as _;

use gpustub_cdecl::Difference;
use gpustub_core::abi_table::{AbiEntry, Adapter};
use gpustub_workspace::report::json::FORMAT_VERSION;
use serde_json::{Value, json};

use super::change::{Change, Differences, recorded};
use super::headers::HeaderComparison;
use super::input::LibraryVersion;

/// Human-readable.
pub fn text(
    old: &LibraryVersion,
    new: &LibraryVersion,
    changes: &[Change],
    comparison: Option<&HeaderComparison>,
) -> String {
    let mut text = if changes.is_empty() {
        format!("{} and {} have the same functions\n", old.name, new.name)
    } else {
        changes_text(old, new, changes)
    };
    if let Some(comparison) = comparison {
        for (name, differences) in &comparison.guarded {
            for line in lines("=", name, differences) {
                let _ = writeln!(text, "{line}");
            }
        }
        let _ = write!(
            text,
            "headers: {} functions compared, {} of both libraries not declared",
            comparison.functions,
            comparison.undeclared.len()
        );
        if !comparison.guarded.is_empty() {
            let _ = write!(
                text,
                ", {} with guarded differences only",
                comparison.guarded.len()
            );
        }
        text.push('\n');
    }
    text
}

/// Maximum number of differences in a line. JSON has all.
const MAX_DIFFERENCES: usize = 4;

/// A line for each position that differs, after `mark` and the name, or `=` for what the library handles. Arguments
/// that differ alike share a line.
fn lines(mark: &str, name: &str, differences: &[Difference]) -> Vec<String> {
    // Mark, position and differences of each line.
    let mut rows: Vec<(&str, String, String)> = Vec::new();
    for group in differences.chunk_by(|a, b| a.position == b.position && a.guard == b.guard) {
        let Some((first, rest)) = group.split_first() else {
            continue;
        };
        let (position, mut text) = match first.position.split_once(": ") {
            Some((position, inner)) => (position, format!("{inner}: {}", first.description)),
            None => (first.position.as_str(), first.description.clone()),
        };
        for difference in rest.iter().take(MAX_DIFFERENCES - 1) {
            let _ = write!(text, ", {}", difference.description);
        }
        if group.len() > MAX_DIFFERENCES {
            let _ = write!(text, " and {} more", group.len() - MAX_DIFFERENCES);
        }
        if let Some(words) = &first.guard {
            let _ = write!(text, "; guarded: \"{words}\"");
        }
        let mark = if first.guard.is_some() { "=" } else { mark };
        let equal_row = rows.iter_mut().find(|(_, _, row_text)| *row_text == text);
        match (equal_row, position.strip_prefix("argument ")) {
            (Some((_, positions, _)), Some(index)) if positions.starts_with("argument") => {
                *positions = positions.replacen("argument ", "arguments ", 1);
                let _ = write!(positions, ", {index}");
            }
            _ => rows.push((mark, position.to_owned(), text)),
        }
    }
    rows.into_iter()
        .map(|(mark, position, text)| {
            let colon = if position.is_empty() { "" } else { ": " };
            format!("{mark}{name}: {position}{colon}{text}")
        })
        .collect()
}

/// The function of the new library for calls of the old ABI.
fn replacement(entry: Option<&AbiEntry>) -> String {
    let Some(entry) = entry else {
        return String::new();
    };
    match (&entry.name, &entry.adapter, &entry.reason) {
        (Some(name), None, _) => format!("; the old ABI is {name}"),
        (Some(name), Some(Adapter::NullArgument(index)), _) => {
            format!("; the old ABI is {name} with NULL as argument {index}")
        }
        (Some(name), Some(Adapter::Code(_)), _) => {
            format!("; calls of the old ABI are adapted to {name}")
        }
        (None, _, Some(reason)) => format!("; calls of the old ABI are refused: {reason}"),
        (None, _, None) => String::new(),
    }
}

/// A line for each change, and their numbers.
fn changes_text(old: &LibraryVersion, new: &LibraryVersion, changes: &[Change]) -> String {
    let mut text = format!("--- {}\n+++ {}\n", old.name, new.name);
    for change in changes {
        text += &match change {
            Change::Removed(name, entry) => format!("-{name}{}", replacement(entry.as_ref())),
            Change::Added(name) => format!("+{name}"),
            Change::SymbolVersion(name, from, to) => format!("~{name}: {from} -> {to}"),
            Change::Abi(name, entry, differences) => {
                let mut lines = lines("!", name, differences);
                if lines.is_empty() {
                    let changes: Vec<String> = recorded(name, old, new)
                        .iter()
                        .map(|(since, difference)| format!(" in {since}: {difference}"))
                        .collect();
                    lines.push(format!("!{name}: ABI changed{}", changes.join(",")));
                }
                lines[0] += &replacement(entry.as_ref());
                lines.join("\n")
            }
            Change::Macro(name, from, to, differences) => {
                let name = format!("{name}: macro for {from}, now {to}");
                match lines(">", &name, differences) {
                    lines if lines.is_empty() => format!(">{name}"),
                    lines => lines.join("\n"),
                }
            }
            Change::Declared(name, true) => format!("?{name}: not declared by the new headers"),
            Change::Declared(name, false) => format!("?{name}: not declared by the old headers"),
        };
        text.push('\n');
    }
    let _ = write!(
        text,
        "{} removed, {} added, {} with another symbol version, {} with another ABI",
        count(changes, |change| matches!(change, Change::Removed(..))),
        count(changes, |change| matches!(change, Change::Added(_))),
        count(changes, |change| matches!(
            change,
            Change::SymbolVersion(..)
        )),
        count(changes, |change| matches!(change, Change::Abi(..))),
    );
    let renamed = count(changes, |change| matches!(change, Change::Macro(..)));
    if renamed > 0 {
        let _ = write!(text, ", {renamed} renamed by a macro");
    }
    let declared = count(changes, |change| matches!(change, Change::Declared(..)));
    if declared > 0 {
        let _ = write!(text, ", {declared} declared by one of the headers only");
    }
    text.push('\n');
    text
}

fn count(changes: &[Change], is_counted: fn(&Change) -> bool) -> usize {
    changes.iter().filter(|change| is_counted(change)).count()
}

/// Machine-readable.
pub fn json(
    old: &LibraryVersion,
    new: &LibraryVersion,
    changes: &[Change],
    comparison: Option<&HeaderComparison>,
) -> String {
    let rows: Vec<_> = changes
        .iter()
        .map(|change| match change {
            Change::Removed(name, entry) => {
                let mut row = replacement_row(entry.as_ref());
                row["change"] = "removed".into();
                row["name"] = name.as_str().into();
                row
            }
            Change::Added(name) => json!({ "change": "added", "name": name }),
            Change::SymbolVersion(name, from, to) => {
                json!({ "change": "symbol-version", "name": name, "old": from, "new": to })
            }
            Change::Abi(name, entry, differences) => {
                let mut row = replacement_row(entry.as_ref());
                row["change"] = "abi".into();
                row["name"] = name.as_str().into();
                row["differences"] = difference_rows(differences);
                row["recorded"] = recorded(name, old, new)
                    .iter()
                    .map(|(since, difference)| {
                        json!({ "since": since.to_string(), "difference": difference })
                    })
                    .collect();
                row
            }
            Change::Macro(name, from, to, differences) => {
                let differences = difference_rows(differences);
                json!({ "change": "macro", "name": name, "old": from, "new": to, "differences": differences })
            }
            Change::Declared(name, in_old) => {
                let declared_by = if *in_old { "old" } else { "new" };
                json!({ "change": "declared", "name": name, "declared_by": declared_by })
            }
        })
        .collect();
    let headers = comparison.map(|comparison| {
        json!({
            "compared": comparison.functions,
            "guarded": guarded_rows(&comparison.guarded),
            "undeclared": comparison.undeclared,
        })
    });
    let document = json!({
        "format_version": FORMAT_VERSION,
        "old": old.name,
        "new": new.name,
        "changes": rows,
        "headers": headers,
    });
    format!("{document}\n")
}

fn difference_rows(differences: &[Difference]) -> Value {
    differences
        .iter()
        .map(|difference| {
            json!({
                "kind": difference.kind.name(),
                "at": difference.position,
                "what": difference.description,
                "guard": difference.guard,
            })
        })
        .collect()
}

fn guarded_rows(guarded: &Differences) -> Value {
    guarded
        .iter()
        .map(|(name, differences)| {
            json!({ "name": name, "differences": difference_rows(differences) })
        })
        .collect()
}

/// As [`replacement`], machine-readable.
fn replacement_row(entry: Option<&AbiEntry>) -> Value {
    let adapter = entry.and_then(|entry| entry.adapter.as_ref());
    let argument = match adapter {
        Some(Adapter::NullArgument(argument)) => Some(argument),
        _ => None,
    };
    json!({
        "replacement": entry.and_then(|entry| entry.name.as_ref()),
        "null_argument": argument, "adapted": adapter.is_some(),
        "refused": entry.and_then(|entry| entry.reason.as_ref()),
    })
}
