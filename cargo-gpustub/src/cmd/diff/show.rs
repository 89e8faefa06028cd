//! Output of differences.

use std::fmt::Write as _;

use gpustub_cdecl::Difference;
use gpustub_core::abi_table::{AbiEntry, Adapter};
use gpustub_workspace::report::json::FORMAT_VERSION;
use serde_json::{Value, json};

use super::change::{Change, Differences};
use super::headers::Compared;
use super::side::Side;

/// Human-readable.
pub fn text(old: &Side, new: &Side, changes: &[Change], compared: Option<&Compared>) -> String {
    let mut text = if changes.is_empty() {
        format!("{} and {} have the same functions\n", old.name, new.name)
    } else {
        differences(old, new, changes)
    };
    if let Some(compared) = compared {
        for (name, differences) in &compared.guarded {
            for line in lines("=", name, differences) {
                let _ = writeln!(text, "{line}");
            }
        }
        let _ = write!(
            text,
            "headers: {} functions compared, {} of both libraries not declared",
            compared.functions,
            compared.undeclared.len()
        );
        if !compared.guarded.is_empty() {
            let _ = write!(
                text,
                ", {} with guarded differences only",
                compared.guarded.len()
            );
        }
        text.push('\n');
    }
    text
}

/// Maximum number of differences in a line. JSON has all.
const SHOWN: usize = 4;

/// A line for each position that differs, after `mark` and the name, or `=` for what the library handles. Arguments
/// that differ alike share a line.
fn lines(mark: &str, name: &str, differences: &[Difference]) -> Vec<String> {
    let same_place = |a: &Difference, b: &Difference| a.at == b.at && a.guard == b.guard;
    let mut places: Vec<(&str, String, String)> = Vec::new();
    for place in differences.chunk_by(same_place) {
        let Some((first, rest)) = place.split_first() else {
            continue;
        };
        let (at, mut what) = match first.at.split_once(": ") {
            Some((at, inner)) => (at, format!("{inner}: {}", first.what)),
            None => (first.at.as_str(), first.what.clone()),
        };
        for other in rest.iter().take(SHOWN - 1) {
            let _ = write!(what, ", {}", other.what);
        }
        if place.len() > SHOWN {
            let _ = write!(what, " and {} more", place.len() - SHOWN);
        }
        if let Some(words) = &first.guard {
            let _ = write!(what, "; guarded: \"{words}\"");
        }
        let mark = if first.guard.is_some() { "=" } else { mark };
        let same = places.iter_mut().find(|(_, _, other)| *other == what);
        match (same, at.strip_prefix("argument ")) {
            (Some((_, at, _)), Some(index)) if at.starts_with("argument") => {
                *at = at.replacen("argument ", "arguments ", 1);
                let _ = write!(at, ", {index}");
            }
            _ => places.push((mark, at.to_owned(), what)),
        }
    }
    let lines = places.into_iter().map(|(mark, at, what)| {
        let colon = if at.is_empty() { "" } else { ": " };
        format!("{mark}{name}: {at}{colon}{what}")
    });
    lines.collect()
}

/// The function of the new library for calls of the old ABI.
fn replacement(entry: Option<&AbiEntry>) -> String {
    let Some(entry) = entry else {
        return String::new();
    };
    match (&entry.name, &entry.adapter, &entry.reason) {
        (Some(name), None, _) => format!("; the old ABI is {name}"),
        (Some(name), Some(Adapter::NullArgument(at)), _) => {
            format!("; the old ABI is {name} with NULL as argument {at}")
        }
        (Some(name), Some(Adapter::Code(_)), _) => {
            format!("; calls of the old ABI are adapted to {name}")
        }
        (None, _, Some(reason)) => format!("; calls of the old ABI are refused: {reason}"),
        (None, _, None) => String::new(),
    }
}

fn differences(old: &Side, new: &Side, changes: &[Change]) -> String {
    let mut text = format!("--- {}\n+++ {}\n", old.name, new.name);
    for change in changes {
        text += &match change {
            Change::Removed(name, entry) => format!("-{name}{}", replacement(entry.as_ref())),
            Change::Added(name) => format!("+{name}"),
            Change::SymbolVersion(name, from, to) => format!("~{name}: {from} -> {to}"),
            Change::Abi(name, entry, differences) => {
                let mut lines = lines("!", name, differences);
                if lines.is_empty() {
                    lines.push(format!("!{name}: ABI changed"));
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
    let count = |wanted: fn(&Change) -> bool| changes.iter().filter(|c| wanted(c)).count();
    let _ = write!(
        text,
        "{} removed, {} added, {} with another symbol version, {} with another ABI",
        count(|c| matches!(c, Change::Removed(..))),
        count(|c| matches!(c, Change::Added(_))),
        count(|c| matches!(c, Change::SymbolVersion(..))),
        count(|c| matches!(c, Change::Abi(..))),
    );
    for (number, what) in [
        (
            count(|c| matches!(c, Change::Macro(..))),
            "renamed by a macro",
        ),
        (
            count(|c| matches!(c, Change::Declared(..))),
            "declared by one of the headers only",
        ),
    ] {
        if number > 0 {
            let _ = write!(text, ", {number} {what}");
        }
    }
    text.push('\n');
    text
}

/// Machine-readable.
pub fn json(old: &Side, new: &Side, changes: &[Change], compared: Option<&Compared>) -> String {
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
    let headers = compared.map(|compared| {
        json!({
            "compared": compared.functions,
            "guarded": guarded_rows(&compared.guarded),
            "undeclared": compared.undeclared,
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
    let rows = differences.iter().map(|difference| {
        json!({
            "kind": difference.kind.name(),
            "at": difference.at,
            "what": difference.what,
            "guard": difference.guard,
        })
    });
    rows.collect()
}

fn guarded_rows(guarded: &Differences) -> Value {
    let rows = guarded.iter();
    let rows =
        rows.map(|(name, found)| json!({ "name": name, "differences": difference_rows(found) }));
    rows.collect()
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
