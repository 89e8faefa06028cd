//! Files that a library opens later, and the search on Windows.

use crate::decode::{Decoder, Table, Value};
use crate::library::{Preload, WindowsSearch};
use crate::spanned::values;

const WINDOWS: [&str; 3] = ["wheel-dirs", "root-subdirs", "preload"];

/// Reads `[search]`'s `windows`; empty without one.
pub(super) fn windows(decoder: &mut Decoder<'_>, value: Option<Value<'_>>) -> WindowsSearch {
    let Some(table) = value.and_then(|value| decoder.table(&value, &WINDOWS)) else {
        return WindowsSearch::default();
    };
    WindowsSearch {
        wheel_dirs: strings(decoder, table.get("wheel-dirs")),
        root_subdirs: strings(decoder, table.get("root-subdirs")),
        preload: preload(decoder, &table),
    }
}

/// Reads a list of strings; empty without one.
pub(super) fn strings(decoder: &mut Decoder<'_>, value: Option<Value<'_>>) -> Vec<String> {
    match value {
        Some(value) => values(&decoder.strings(&value)),
        None => Vec::new(),
    }
}

/// Reads the files of `preload`: a string, or `{ file = "…", functions = "…" }` each.
pub(super) fn preload(decoder: &mut Decoder<'_>, table: &Table<'_>) -> Vec<Preload> {
    let Some(value) = table.get("preload") else {
        return Vec::new();
    };
    let files = decoder.list(&value, "a list of strings and tables");
    files
        .iter()
        .filter_map(|file| preload_file(decoder, file))
        .collect()
}

fn preload_file(decoder: &mut Decoder<'_>, value: &Value<'_>) -> Option<Preload> {
    let (file, functions) = if value.is_string() {
        (decoder.string(value)?.value, None)
    } else {
        let table = decoder.table(value, &["file", "functions"])?;
        let file = decoder.required(&table, "file", &value.span)?;
        let functions = decoder.required(&table, "functions", &value.span)?;
        let functions = decoder.string(&functions)?.value;
        (decoder.string(&file)?.value, Some(functions))
    };
    Some(Preload { file, functions })
}
