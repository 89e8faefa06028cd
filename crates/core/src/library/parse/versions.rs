//! Keys about versions of a library and of its toolkit.

use crate::decode::{Decoder, Table, Value};
use crate::diag::INVALID_VALUE;
use crate::library::VersionProbe;
use crate::version::Version;

/// Maximum length of a prefix that the run time searches for in a file (`MAX_PREFIX_LENGTH` of
/// `runtime/shared.h`).
pub(crate) const MAX_PREFIX_LENGTH: usize = 64;

/// Reads `{ 13 = "0.8" }`.
pub(super) fn oldest_headers(decoder: &mut Decoder<'_>, top: &Table<'_>) -> Vec<(u32, Version)> {
    let table = (top.get("oldest-headers")).and_then(|value| decoder.map(&value));
    let mut versions = Vec::new();
    for (major, value) in table.iter().flat_map(Table::entries) {
        let Some(text) = decoder.string(&value) else {
            continue;
        };
        if let (Ok(major), Some(version)) = (major.parse(), Version::parse(&text.value)) {
            versions.push((major, version));
        } else {
            let message = format!("`{}` takes a version: `13 = \"0.8\"`", value.name);
            decoder.error(&INVALID_VALUE, text.span, message);
        }
    }
    versions
}

/// Reads the probes: a string, `{ prefix = "+cuda" }` or
/// `{ prefix = "…", sibling = "libcudnn_adv" }` each.
pub(super) fn toolkit_version_from(
    decoder: &mut Decoder<'_>,
    top: &Table<'_>,
) -> Vec<VersionProbe> {
    let Some(value) = top.get("toolkit-version-from") else {
        return Vec::new();
    };
    let probes = decoder.list(&value, "a list of strings and tables");
    probes
        .iter()
        .filter_map(|probe| version_probe(decoder, probe))
        .collect()
}

fn version_probe(decoder: &mut Decoder<'_>, value: &Value<'_>) -> Option<VersionProbe> {
    if value.is_string() {
        return prefix(decoder, value).map(VersionProbe::Needed);
    }
    let table = decoder.table(value, &["prefix", "sibling"])?;
    let text = decoder.required(&table, "prefix", &value.span)?;
    Some(VersionProbe::Constant {
        prefix: prefix(decoder, &text)?,
        sibling: match table.get("sibling") {
            Some(value) => Some(decoder.file_name(&value)?),
            None => None,
        },
    })
}

/// Reads the string that precedes a number.
fn prefix(decoder: &mut Decoder<'_>, value: &Value<'_>) -> Option<String> {
    let text = decoder.string(value)?;
    if (1..=MAX_PREFIX_LENGTH).contains(&text.value.len()) {
        return Some(text.value);
    }
    let message = format!("`{}` takes 1 to {MAX_PREFIX_LENGTH} bytes", value.name);
    decoder.error(&INVALID_VALUE, text.span, message);
    None
}
