//! Edits of `GpuStub.toml`.

use gpustub_core::library::Library;
use serde_json::json;
use toml_edit::{DocumentMut, Item, Table};

use super::{as_before, templates};
use crate::codes::SCHEMA;
use crate::tables::FILE;

/// Text of a new file, which lists the libraries that gpustub knows.
pub fn new() -> String {
    let libraries: Vec<_> = Library::builtin_ids()
        .filter_map(Library::builtin)
        .collect();
    let width = libraries
        .iter()
        .map(|library| library.id.len())
        .max()
        .unwrap_or(0)
        + 2;
    let rows: Vec<_> = libraries
        .iter()
        .map(|library| {
            let padding = " ".repeat(width - library.id.len());
            json!({ "id": library.id, "space": padding, "title": library.title })
        })
        .collect();
    templates::render(FILE, &json!({ "libraries": rows, "schema": SCHEMA }))
}

/// Adds `[stub.<id>]` to the text, and sets its `header-version` if one is given.
///
/// # Errors
///
/// If the text is no TOML, or `stub` or `stub.<id>` is no table.
pub fn add_stub(text: &str, id: &str, header: Option<&str>) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|e| format!("{e}"))?;
    let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
    let empty = document.is_empty();
    let stubs = document.entry("stub").or_insert_with(|| {
        let mut stubs = Table::new();
        stubs.set_implicit(true);
        Item::Table(stubs)
    });
    let stubs = stubs.as_table_like_mut().ok_or("`stub` is not a table")?;
    let is_new = !stubs.contains_key(id);
    let stub = stubs.entry(id).or_insert_with(|| Item::Table(Table::new()));
    let table = stub
        .as_table_like_mut()
        .ok_or_else(|| format!("`stub.{id}` is not a table"))?;
    if let Some(header) = header {
        match table.get_mut("header-version").and_then(Item::as_value_mut) {
            Some(value) => {
                let decor = value.decor().clone();
                *value = header.into();
                *value.decor_mut() = decor;
            }
            None => drop(table.insert("header-version", toml_edit::value(header))),
        }
    }
    if let Some(table) = stub
        .as_table_mut()
        .filter(|table| is_new && !table.is_dotted())
    {
        // Comments at the end of the file stay above the new table.
        let comments = if trailing.trim().is_empty() {
            ""
        } else {
            trailing.as_str()
        };
        table
            .decor_mut()
            .set_prefix(format!("{comments}{}", if empty { "" } else { "\n" }));
        if !comments.is_empty() {
            document.set_trailing("");
        }
    }
    Ok(as_before(text, &document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::add_stub;

    #[test]
    fn add_stub_adds_tables_and_keeps_the_rest() {
        for (before, after) in [
            (
                "schema = 1\n",
                "schema = 1\n\n[stub.cudart]\nheader-version = \"12\"\n",
            ),
            (
                "schema = 1 # one\n# end\n",
                "schema = 1 # one\n# end\n\n[stub.cudart]\nheader-version = \"12\"\n",
            ),
            (
                "schema = 1\n\n[stub.nvrtc] # a\nmajors = [ \"12\" ]\n",
                "schema = 1\n\n[stub.nvrtc] # a\nmajors = [ \"12\" ]\n\n[stub.cudart]\nheader-version = \"12\"\n",
            ),
            (
                "schema = 1\n[stub.cudart]\n  header-version = \"11\" # old\n[stub.cuda]\n",
                "schema = 1\n[stub.cudart]\n  header-version = \"12\" # old\n[stub.cuda]\n",
            ),
            (
                "schema = 1\n[stub]\ncuda = {}\n",
                "schema = 1\n[stub]\ncuda = {}\n\n[stub.cudart]\nheader-version = \"12\"\n",
            ),
            (
                "schema = 1\nstub = { cuda = {} }\n",
                "schema = 1\nstub = { cuda = {} , cudart.header-version = \"12\" }\n",
            ),
        ] {
            assert_eq!(add_stub(before, "cudart", Some("12")).unwrap(), after);
        }
        assert_eq!(
            add_stub("schema = 1\n", "cuda", None).unwrap(),
            "schema = 1\n\n[stub.cuda]\n"
        );
        assert_eq!(
            add_stub("schema = 1\r\n", "cuda", None).unwrap(),
            "schema = 1\r\n\r\n[stub.cuda]\r\n"
        );
        assert!(add_stub("stub = 1", "cuda", None).is_err());
    }

    #[test]
    fn add_stub_appends_consecutive_tables() {
        let first = add_stub("schema = 1\n", "cudart", Some("12")).unwrap();
        let second = add_stub(&first, "cuda", None).unwrap();
        assert_eq!(
            second,
            "schema = 1\n\n[stub.cudart]\nheader-version = \"12\"\n\n[stub.cuda]\n"
        );
    }
}
