//! Values that several tables have in common.

use crate::by_name::ByName;
use crate::decode::{Decoder, Table, Value};
use crate::diag::INVALID_VALUE;
use crate::manifest::RequiredFeatures;
use crate::spanned::Spanned;

/// A list of different strings; `validate` returns the problem of an element.
pub fn checked_strings(
    decoder: &mut Decoder<'_>,
    table: &Table<'_>,
    key: &str,
    validate: fn(&str) -> Option<&'static str>,
) -> Vec<Spanned<String>> {
    let Some(value) = table.get(key) else {
        return Vec::new();
    };
    let mut strings: Vec<Spanned<String>> = Vec::new();
    let mut previous = ByName::new();
    for string in decoder.strings(&value) {
        let problem = if previous.insert(&string.value, ()).is_some() {
            Some("names it twice")
        } else {
            validate(&string.value)
        };
        match problem {
            None => strings.push(string),
            Some(problem) => {
                let message = format!("`{}` {problem}: {:?}", value.name, shorten(&string.value));
                decoder.error(&INVALID_VALUE, string.span, message);
            }
        }
    }
    strings
}

pub fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}

pub fn version<T>(
    decoder: &mut Decoder<'_>,
    table: &Table<'_>,
    key: &str,
    takes: &str,
    parse: fn(&str) -> Option<T>,
) -> Option<Spanned<T>> {
    let value = table.get(key)?;
    let text = decoder.string(&value)?;
    let version = parse(&text.value);
    if version.is_none() {
        let message = format!(
            "`{}` takes {takes}, not {:?}",
            value.name,
            shorten(&text.value)
        );
        let error = decoder.error(&INVALID_VALUE, text.span.clone(), message);
        let meant = release(&text.value);
        if parse(&meant).is_some() {
            error.help = Some(format!("did you mean \"{meant}\"?"));
        }
    }
    Some(Spanned {
        value: version?,
        span: text.span,
    })
}

/// Major and minor of a version in another notation: `v12.8`, `12,8`, `12.8.93`.
fn release(text: &str) -> String {
    let text = text.trim().trim_start_matches('v').replace(',', ".");
    let mut parts = text.split('.');
    match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) => format!("{major}.{minor}"),
        _ => text,
    }
}

pub fn required_features(decoder: &mut Decoder<'_>, table: &Table<'_>) -> RequiredFeatures {
    let features = checked_strings(decoder, table, "required-features", |feature| {
        feature
            .trim()
            .is_empty()
            .then_some("takes names of cargo features")
    });
    RequiredFeatures(features)
}

/// A path below the directory of `GpuStub.toml`, whose files are packaged or committed with it.
pub fn path_below(
    decoder: &mut Decoder<'_>,
    value: &Value<'_>,
    help: &str,
) -> Option<Spanned<String>> {
    let path = decoder.string(value)?;
    if !is_below(&path.value) {
        decoder.error_with_help(
            &INVALID_VALUE,
            path.span,
            format!(
                "`{}` takes a path below this file's directory, with /",
                value.name
            ),
            help,
        );
        return None;
    }
    Some(path)
}

#[cfg(any(feature = "archive", feature = "device-link"))]
pub fn is_path(path: &str) -> bool {
    !path.is_empty() && path.len() <= 4095 && !path.contains(char::is_control)
}

/// Whether a path with / leads below its base directory.
pub fn is_below(path: &str) -> bool {
    path.split('/').any(|part| !part.is_empty() && part != ".")
        && !path.starts_with('/')
        && !path.contains(|c: char| c == '\\' || c.is_control())
        && path.split('/').all(|part| part != "..")
}
