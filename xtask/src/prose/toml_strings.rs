//! String values of TOML keys that hold prose.

use toml::de::{DeTable, DeValue};

use super::text::{Kind, Text, line_of};

/// Strings below the keys `prose_keys`, at any depth. A test case of invalid TOML has none.
pub fn texts(source: &str, prose_keys: &[String]) -> Vec<Text> {
    let mut texts = Vec::new();
    if let Ok(document) = DeTable::parse(source) {
        add_table(source, document.get_ref(), prose_keys, false, &mut texts);
    }
    texts
}

/// Adds the strings of a table; `is_prose`: a key of its path is in `prose_keys`.
fn add_table(
    source: &str,
    table: &DeTable<'_>,
    prose_keys: &[String],
    is_prose: bool,
    texts: &mut Vec<Text>,
) {
    for (key, value) in table {
        let is_prose = is_prose || prose_keys.iter().any(|prose| prose == key.get_ref());
        let line = line_of(source, value.span().start);
        match value.get_ref() {
            DeValue::Table(table) => add_table(source, table, prose_keys, is_prose, texts),
            DeValue::String(text) if is_prose => texts.push(prose(line, text)),
            DeValue::Array(values) => {
                // Lines of one text, as `comment` of xtask/recipes.toml, or tables.
                let mut lines = Vec::new();
                for value in values {
                    match value.get_ref() {
                        DeValue::Table(table) => {
                            add_table(source, table, prose_keys, is_prose, texts);
                        }
                        DeValue::String(text) if is_prose => lines.push(text.as_ref()),
                        _ => {}
                    }
                }
                texts.push(prose(line, &lines.join("\n")));
            }
            _ => {}
        }
    }
}

fn prose(line: usize, text: &str) -> Text {
    Text {
        kind: Kind::Prose,
        line,
        text: text.to_owned(),
    }
}
