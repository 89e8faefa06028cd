//! Edits of `sync` in a package, text to text: no function here reads or writes a file.

pub mod build_rs;
pub mod cargo_toml;
pub mod gpustub_toml;
pub mod path_dependencies;
mod rust;
pub mod templates;
pub mod use_line;

use toml_edit::{DocumentMut, Item};

/// Result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// The text needs no change.
    Same,
    /// The new text.
    Changed(String),
    /// The edit is impossible, for this reason.
    Impossible(&'static str),
}

/// Line break of a text.
fn line_break(text: &str) -> &'static str {
    match text.find('\n') {
        Some(newline) if text[..newline].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// An edited TOML text with the byte-order mark and the line breaks of the old one: toml_edit
/// writes neither, and a diff of every line would hide the relevant one.
pub fn as_before(old: &str, new: &str) -> String {
    let mark = if old.starts_with('\u{feff}') {
        "\u{feff}"
    } else {
        ""
    };
    let new = new.trim_start_matches('\u{feff}');
    match line_break(old) {
        "\n" => format!("{mark}{new}"),
        newline => format!("{mark}{}", new.replace("\r\n", "\n").replace('\n', newline)),
    }
}

/// Puts an empty line, and the comments at the end of the file, before a new table.
pub fn separate(document: &mut DocumentMut, table: &str) {
    let trailing = document.trailing().as_str().unwrap_or_default();
    let comments = match trailing.trim() {
        "" => String::new(),
        _ => trailing.to_owned(),
    };
    if !comments.is_empty() {
        document.set_trailing("");
    }
    if let Some(table) = document.get_mut(table).and_then(Item::as_table_mut) {
        table.decor_mut().set_prefix(format!("{comments}\n"));
    }
}

/// Lists of what features enable.
fn feature_lists(document: &mut DocumentMut) -> impl Iterator<Item = &mut toml_edit::Array> {
    document
        .get_mut("features")
        .and_then(Item::as_table_like_mut)
        .into_iter()
        .flat_map(|features| features.iter_mut())
        .filter_map(|(_, item)| item.as_array_mut())
}
