//! `xtask/data/layouts.toml`: structs whose layouts are generated.

use std::collections::BTreeMap;

use gpustub_core::version::Version;
use serde::Deserialize;

/// A struct of `layouts.toml`, which describes the keys.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Struct {
    pub library: String,
    pub name: String,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub since: BTreeMap<String, String>,
    #[serde(default)]
    pub marks: BTreeMap<String, String>,
    #[serde(default)]
    pub renamed: BTreeMap<String, String>,
    #[serde(default)]
    pub expected: Vec<String>,
}

impl Struct {
    pub fn tags(&self) -> Vec<&str> {
        match &self.tags[..] {
            [] => vec![&self.name],
            tags => tags.iter().map(String::as_str).collect(),
        }
    }

    /// Whether a tag is this struct in the headers of a version.
    pub fn has(&self, tag: &str, version: Version) -> Result<bool, String> {
        let Some(since) = self.since.get(tag) else {
            return Ok(true);
        };
        let since = Version::parse(since)
            .ok_or_else(|| format!("`since` of {tag}: `{since}` is no version"))?;
        Ok(version >= since)
    }
}

/// Contents of `layouts.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    #[serde(rename = "struct")]
    structs: Vec<Struct>,
}

/// The structs of each library.
pub fn read() -> Result<BTreeMap<String, Vec<Struct>>, String> {
    parse(include_str!("../../../data/layouts.toml")).map_err(|e| format!("layouts.toml: {e}"))
}

fn parse(text: &str) -> Result<BTreeMap<String, Vec<Struct>>, String> {
    let data: Data = toml::from_str(text).map_err(|e| e.to_string())?;
    let mut libraries: BTreeMap<String, Vec<Struct>> = BTreeMap::new();
    for row in data.structs {
        let tags = row.tags();
        for tag in row.since.keys().chain(row.marks.keys()) {
            if !tags.contains(&tag.as_str()) {
                return Err(format!("{}: `{tag}` is not in `tags`", row.name));
            }
        }
        libraries.entry(row.library.clone()).or_default().push(row);
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_data_is_rejected() {
        for (keys, expected) in [
            ("marks = { t = 'v1' }", "s: `t` is not in `tags`"),
            (
                "tags = ['t']\nsince = { s = '1.0' }",
                "s: `s` is not in `tags`",
            ),
            ("tag = 't'", "unknown field `tag`"),
        ] {
            let text = format!("[[struct]]\nlibrary = 'gpu'\nname = 's'\n{keys}");
            let error = parse(&text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
