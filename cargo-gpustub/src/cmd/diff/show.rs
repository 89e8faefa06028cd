//! Output of differences.

use std::fmt::Write as _;

use gpustub_core::abi_table::{AbiEntry, Adapter};
use gpustub_report::report::json::FORMAT_VERSION;
use serde_json::{Value, json};

use super::headers::Compared;
use super::{Change, Side};

/// Human-readable.
pub fn text(old: &Side, new: &Side, changes: &[Change], compared: Option<&Compared>) -> String {
    let mut text = if changes.is_empty() {
        format!("{} and {} have the same functions\n", old.name, new.name)
    } else {
        differences(old, new, changes)
    };
    if let Some(compared) = compared {
        let _ = writeln!(
            text,
            "headers: {} functions compared, {} of both libraries not declared",
            compared.functions,
            compared.undeclared.len()
        );
    }
    text
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
            Change::Abi(name, entry, reason) => {
                let reason = reason.as_deref().unwrap_or("ABI changed");
                format!("!{name}: {reason}{}", replacement(entry.as_ref()))
            }
            Change::Macro(name, from, to, None) => {
                format!(">{name}: macro for {from}, now {to}")
            }
            Change::Macro(name, from, to, Some(reason)) => {
                format!(">{name}: macro for {from}, now {to}: {reason}")
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
            Change::Abi(name, entry, reason) => {
                let mut row = replacement_row(entry.as_ref());
                row["change"] = "abi".into();
                row["name"] = name.as_str().into();
                row["reason"] = json!(reason);
                row
            }
            Change::Macro(name, from, to, reason) => {
                json!({ "change": "macro", "name": name, "old": from, "new": to, "reason": reason })
            }
            Change::Declared(name, in_old) => {
                let declared_by = if *in_old { "old" } else { "new" };
                json!({ "change": "declared", "name": name, "declared_by": declared_by })
            }
        })
        .collect();
    let headers = compared.map(
        |compared| json!({ "compared": compared.functions, "undeclared": compared.undeclared }),
    );
    let document = json!({
        "format_version": FORMAT_VERSION,
        "old": old.name,
        "new": new.name,
        "changes": rows,
        "headers": headers,
    });
    format!("{document}\n")
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
