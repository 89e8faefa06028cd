//! Reads `[toolkit]`.

use super::values::{checked_strings, path_below, version};
use crate::decode::{Decoder, Value};
use crate::fields;
use crate::manifest::Toolkit;
use crate::version::Version;

const TOOLKIT_HELP: &str =
    "the directory is a part of the workspace, such as \"third-party/toolkit\"";

/// Default path.
const TOOLKIT_PATH: &str = "gpustub-toolkit";

/// What `cuda` and `hip` take, for messages.
const RELEASE_TAKES: &str = "a release such as \"12.8\"";

/// A release has a major and a minor number: build scripts compare both.
fn release(text: &str) -> Option<Version> {
    Version::parse(text).filter(|_| text.contains('.'))
}

pub(super) fn toolkit(decoder: &mut Decoder<'_>, value: &Value<'_>) -> Option<Toolkit> {
    let table = decoder.table(value, &fields::keys("toolkit"))?;
    let declared_path = table
        .get("path")
        .and_then(|value| path_below(decoder, &value, TOOLKIT_HELP));
    let path = declared_path
        .as_ref()
        .map_or(TOOLKIT_PATH, |path| &path.value);
    let force = table.get("force").and_then(|value| decoder.boolean(&value));
    Some(Toolkit {
        path: path.trim_end_matches('/').to_owned(),
        cuda: version(decoder, &table, "cuda", RELEASE_TAKES, release),
        hip: version(decoder, &table, "hip", RELEASE_TAKES, release),
        force: force.unwrap_or(false),
        override_build_scripts: checked_strings(decoder, &table, "override-build-scripts", |_| {
            None
        }),
    })
}
