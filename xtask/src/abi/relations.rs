//! Relations between ABI variants that reviewers decided: `xtask/data/adapters.toml`.

use std::collections::BTreeMap;

use gpustub_core::version::Version;
use serde::Deserialize;

use super::reviewed::TWINS;
use super::table::{AbiVariant, Group};

/// A row of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    /// Name and version of the variant that programs call.
    pub call: String,
    /// Name and version of the variant that the library has; `None`: any.
    by: Option<String>,
    passes: Option<String>,
    adapter: Option<String>,
    from: Option<String>,
    refused: Option<String>,
}

/// The rows of a library.
pub fn relations(id: &str) -> Result<Vec<Relation>, String> {
    let text = include_str!("../../data/adapters.toml");
    let mut libraries: BTreeMap<String, Vec<Relation>> =
        toml::from_str(text).map_err(|e| format!("adapters.toml: {e}"))?;
    let rows = libraries.remove(id).unwrap_or_default();
    for row in &rows {
        row.check()
            .map_err(|e| format!("adapters.toml: `{}`: {e}", row.call))?;
    }
    Ok(rows.into_iter().flat_map(Relation::expanded).collect())
}

/// Texts for the alternatives of each `{a,b}`.
fn alternatives(text: &str) -> Vec<String> {
    let braces = text.split_once('{').and_then(|(start, rest)| {
        let (list, end) = rest.split_once('}')?;
        Some((start, list, end))
    });
    let Some((start, list, end)) = braces else {
        return vec![text.to_owned()];
    };
    list.split(',')
        .flat_map(|alternative| alternatives(&format!("{start}{alternative}{end}")))
        .collect()
}

impl Relation {
    fn check(&self) -> Result<(), String> {
        let kinds = [&self.passes, &self.adapter, &self.refused];
        if kinds.into_iter().flatten().count() != 1 {
            return Err("one of `passes`, `adapter` and `refused` is needed".into());
        }
        if self.from.is_some() && self.adapter.is_none() {
            return Err("only an `adapter` has `from`".into());
        }
        if self.by.is_none() && self.refused.is_none() {
            return Err("`by` is missing".into());
        }
        for text in [Some(&self.call), self.by.as_ref()].into_iter().flatten() {
            name_and_version(text).ok_or_else(|| format!("`{text}` is no name with a version"))?;
        }
        Ok(())
    }

    /// The rows for the alternatives in the names.
    fn expanded(self) -> Vec<Self> {
        let by = self.by.as_deref().map_or(Vec::new(), alternatives);
        let mut rows = Vec::new();
        for (index, call) in alternatives(&self.call).into_iter().enumerate() {
            rows.push(Self {
                call,
                by: by.get(index).or(by.last()).cloned(),
                ..self.clone()
            });
        }
        rows
    }

    /// The line of the ABI table for a group; `None`: it has no such names.
    pub fn line(&self, group: &Group) -> Option<String> {
        TWINS.iter().chain([&""]).find_map(|twin| {
            let old = variant(group, &self.call, twin)?;
            let new = match &self.by {
                Some(by) => variant(group, by, twin)?.to_string(),
                None => "-".to_owned(),
            };
            Some(if let Some(adapter) = &self.adapter {
                let from = self.from.as_deref().unwrap_or_default();
                format!("@adapter {old} {new} {adapter} {from}")
                    .trim_end()
                    .to_owned()
            } else if let Some(reason) = &self.refused {
                format!("@refused {old} {new} {reason}")
            } else {
                format!("@passes {old} {new}")
            })
        })
    }
}

/// Splits `NAME VERSION`.
fn name_and_version(text: &str) -> Option<(&str, Version)> {
    let (name, version) = text.split_once(' ')?;
    Some((name, Version::parse(version)?))
}

fn variant(group: &Group, text: &str, twin: &str) -> Option<usize> {
    let (name, version) = name_and_version(text)?;
    match group.variant(&format!("{name}{twin}"), version) {
        AbiVariant::Number(number) => Some(number),
        AbiVariant::Missing | AbiVariant::Avoided => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Result<Relation, String> {
        let row: Relation = toml::from_str(text).map_err(|e| e.to_string())?;
        row.check().map(|()| row)
    }

    /// A group with one name, which changes in 2.0.
    fn group(twin: &str) -> Group {
        let line = vec![
            (Version::new(1, 0), AbiVariant::Number(1)),
            (Version::new(2, 0), AbiVariant::Number(2)),
        ];
        Group {
            names: BTreeMap::from([(format!("gpuA{twin}"), line)]),
            ..Group::default()
        }
    }

    #[test]
    fn rows_become_lines_of_each_twin() {
        let adapted = row("call = 'gpuA 1.5'\nby = 'gpuA 2.0'\nadapter = 'code'").unwrap();
        assert_eq!(
            adapted.line(&group("")).as_deref(),
            Some("@adapter 1 2 code")
        );
        assert_eq!(
            adapted.line(&group("_ptsz")).as_deref(),
            Some("@adapter 1 2 code")
        );
        assert_eq!(adapted.line(&group("B")), None);
        for (text, line) in [
            (
                "call = 'gpuA 2.0'\nby = 'gpuA 1.0'\npasses = 'why'",
                "@passes 2 1",
            ),
            (
                "call = 'gpuA 2.0'\nrefused = 'no way'",
                "@refused 2 - no way",
            ),
            (
                "call = 'gpuA 1.0'\nby = 'gpuA 2.0'\nadapter = 'code'\nfrom = '2.1'",
                "@adapter 1 2 code 2.1",
            ),
        ] {
            assert_eq!(row(text).unwrap().line(&group("")).as_deref(), Some(line));
        }
    }

    #[test]
    fn rows_have_alternatives() {
        let row = row("call = 'gpu{A,B}{,_x} 1.0'\nby = 'gpu{A,B}{,_y} 2.0'\npasses = 'why'");
        let names: Vec<_> = row
            .unwrap()
            .expanded()
            .into_iter()
            .map(|row| (row.call, row.by.unwrap()))
            .collect();
        let expected = [
            ("gpuA 1.0", "gpuA 2.0"),
            ("gpuA_x 1.0", "gpuA_y 2.0"),
            ("gpuB 1.0", "gpuB 2.0"),
            ("gpuB_x 1.0", "gpuB_y 2.0"),
        ];
        assert_eq!(
            names,
            expected.map(|(call, by)| (call.to_owned(), by.to_owned()))
        );
    }

    #[test]
    fn malformed_rows_are_rejected() {
        for (text, expected) in [
            ("call = 'gpuA 2.0'", "one of"),
            ("call = 'gpuA 2.0'\npasses = 'a'\nrefused = 'b'", "one of"),
            ("call = 'gpuA 2.0'\npasses = 'a'", "`by` is missing"),
            (
                "call = 'gpuA'\nby = 'gpuA 1.0'\npasses = 'a'",
                "`gpuA` is no name",
            ),
            (
                "call = 'gpuA 2.0'\nrefused = 'a'\nfrom = '1.0'",
                "only an `adapter`",
            ),
            ("call = 'gpuA 2.0'\nother = 'a'", "unknown field"),
        ] {
            let error = row(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
