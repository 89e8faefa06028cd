//! Libraries that well-known crates link, and tools that they need to build: `data/crates.toml`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

/// A row of the table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct KnownCrate {
    /// The crate.
    pub name: String,
    features: Vec<String>,
    excluded_features: Vec<String>,
    /// Libraries that the crate links, by the ids of gpustub.
    pub links: Vec<String>,
    /// Tools without which the crate's build script fails.
    pub requires_tools: Option<String>,
    /// Command that satisfies the build script without these tools.
    pub cure: Option<String>,
    /// Whether the crate links a static CUDA runtime.
    pub cudart: bool,
    /// Feature that links the libraries, of a crate that opens them with dlopen: no stub is ever called.
    pub link_feature: Option<String>,
    /// Libraries that the crate opens with dlopen, by the ids of gpustub; empty if they are those that it
    /// links with `link_feature`.
    pub opens: Vec<String>,
    /// Feature that `link_feature` cannot be combined with.
    pub replaced_feature: Option<String>,
}

impl KnownCrate {
    /// Whether the crate opens libraries with dlopen.
    pub fn uses_dlopen(&self) -> bool {
        self.link_feature.is_some() || !self.opens.is_empty()
    }

    /// Libraries that the crate opens with dlopen, by the ids of gpustub.
    pub fn opened_libraries(&'static self, features: &[String]) -> BTreeSet<&'static str> {
        if !self.opens.is_empty() {
            return self.opens.iter().map(String::as_str).collect();
        }
        let mut linking_features: Vec<String> = features
            .iter()
            .filter(|feature| Some(*feature) != self.replaced_feature.as_ref())
            .cloned()
            .collect();
        linking_features.extend(self.link_feature.clone());
        known(&self.name, &linking_features)
            .flat_map(|row| &row.links)
            .map(String::as_str)
            .collect()
    }

    /// Advice for a crate that opens the libraries with dlopen.
    pub fn dlopen_help(&self) -> String {
        let name = &self.name;
        match (&self.link_feature, &self.replaced_feature) {
            (Some(feature), Some(replaced)) => {
                format!("replace the feature `{replaced}` of {name} with `{feature}`")
            }
            (Some(feature), None) => format!(
                "enable the feature `{feature}` of {name}: `cargo add {name} --features {feature}`"
            ),
            (None, _) => format!(
                "no feature of {name} links them: use a crate that does, or remove the stubs if nothing else calls them"
            ),
        }
    }
}

#[derive(Deserialize)]
struct Table {
    #[serde(rename = "crate")]
    rows: Vec<KnownCrate>,
}

static TABLE: LazyLock<Vec<KnownCrate>> = LazyLock::new(|| {
    // A test keeps the file readable.
    toml::from_str::<Table>(include_str!("../data/crates.toml"))
        .map_or(Vec::new(), |table| table.rows)
});

/// Names of crates that, with some features, open libraries with dlopen.
pub fn dlopening() -> impl Iterator<Item = &'static str> {
    TABLE
        .iter()
        .filter(|row| row.uses_dlopen())
        .map(|row| row.name.as_str())
}

/// The rows that apply to a crate with these features.
pub fn known(name: &str, features: &[String]) -> impl Iterator<Item = &'static KnownCrate> {
    TABLE.iter().filter(move |row| {
        row.name == name
            && row
                .features
                .iter()
                .all(|pattern| has_feature(features, pattern))
            && !row
                .excluded_features
                .iter()
                .any(|pattern| has_feature(features, pattern))
    })
}

/// Whether a feature matches a pattern, which may end in `*`.
fn has_feature(features: &[String], pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => features.iter().any(|feature| feature.starts_with(prefix)),
        None => features.iter().any(|feature| feature == pattern),
    }
}

#[cfg(test)]
mod tests {
    use gpustub_core::library::Library;

    use super::*;

    #[test]
    fn the_table_is_readable_and_names_libraries_that_have_stubs() {
        let table: Table = toml::from_str(include_str!("../data/crates.toml")).unwrap();
        for row in &table.rows {
            for id in row.links.iter().chain(&row.opens) {
                assert!(Library::builtin(id).is_some(), "{}: {id}", row.name);
            }
            let has_effect = !row.links.is_empty()
                || row.requires_tools.is_some()
                || row.cudart
                || row.uses_dlopen();
            assert!(has_effect, "{}: a row without effect", row.name);
        }
    }

    fn rows(features: &[&str]) -> Vec<&'static KnownCrate> {
        known("cudarc", &owned(features)).collect()
    }

    fn owned(features: &[&str]) -> Vec<String> {
        features.iter().map(ToString::to_string).collect()
    }

    fn links(features: &[&str]) -> Vec<&'static str> {
        rows(features)
            .into_iter()
            .flat_map(|row| &row.links)
            .map(String::as_str)
            .collect()
    }

    /// Libraries that cudarc opens with these features, and the help.
    fn opened(features: &[&str]) -> Option<(Vec<&'static str>, String)> {
        let row = rows(features).into_iter().find(|row| row.uses_dlopen())?;
        let libraries = row.opened_libraries(&owned(features)).into_iter().collect();
        Some((libraries, row.dlopen_help()))
    }

    fn requires_tools(features: &[&str]) -> bool {
        rows(features)
            .into_iter()
            .any(|row| row.requires_tools.is_some())
    }

    #[test]
    fn features_decide() {
        assert_eq!(links(&["driver", "dynamic-loading"]), [""; 0]);
        assert_eq!(links(&["driver", "dynamic-linking"]), ["cuda"]);
        assert_eq!(links(&["cudnn-09010", "dynamic-linking"]), ["cudnn"]);
        assert_eq!(links(&["nccl-02022", "dynamic-linking"]), ["nccl"]);
        let default = ["driver", "nvrtc", "fallback-dynamic-loading"];
        let (libraries, help) = opened(&default).unwrap();
        assert_eq!(libraries, ["cuda", "nvrtc"]);
        assert!(help.contains("--features dynamic-linking"), "{help}");
        let (libraries, help) = opened(&[&default[..], &["dynamic-loading"]].concat()).unwrap();
        assert_eq!(libraries, ["cuda", "nvrtc"]);
        assert!(
            help.starts_with("replace the feature `dynamic-loading`"),
            "{help}"
        );
        for feature in ["dynamic-linking", "static-linking"] {
            assert_eq!(opened(&[&default[..], &[feature]].concat()), None);
        }
        assert!(requires_tools(&["cuda-version-from-build-system"]));
        assert!(!requires_tools(&[
            "cuda-version-from-build-system",
            "cuda-12080"
        ]));
    }
}
