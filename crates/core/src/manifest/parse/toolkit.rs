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

pub(super) fn toolkit(decoder: &mut Decoder<'_>, value: &Value<'_>) -> Option<Toolkit> {
    let table = decoder.table(value, &fields::keys("toolkit"))?;
    // A release has a major and a minor number: build scripts compare both.
    let release = |text: &str| Version::parse(text).filter(|_| text.contains('.'));
    let takes = "a release such as \"12.8\"";
    let path = table
        .get("path")
        .and_then(|value| path_below(decoder, &value, TOOLKIT_HELP));
    let path = path.as_ref().map_or(TOOLKIT_PATH, |path| &path.value);
    let force = table.get("force").and_then(|value| decoder.boolean(&value));
    Some(Toolkit {
        path: path.trim_end_matches('/').to_owned(),
        cuda: version(decoder, &table, "cuda", takes, release),
        hip: version(decoder, &table, "hip", takes, release),
        force: force.unwrap_or(false),
        override_build_scripts: checked_strings(decoder, &table, "override-build-scripts", |_| {
            None
        }),
    })
}
