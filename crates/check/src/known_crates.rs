//! What well-known crates link, and what they need where they are built: `data/crates.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

/// A row of the table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Known {
    /// The crate.
    pub name: String,
    features: Vec<String>,
    excluded_features: Vec<String>,
    /// The libraries that it asks the linker for, by the ids of gpustub.
    pub links: Vec<String>,
    /// Tools without which its build script fails.
    pub requires_tools: Option<String>,
    /// Whether it links a static CUDA runtime.
    pub cudart: bool,
}

#[derive(Deserialize)]
struct Table {
    #[serde(rename = "crate")]
    rows: Vec<Known>,
}

static TABLE: LazyLock<Vec<Known>> = LazyLock::new(|| {
    // A test keeps the file readable.
    toml::from_str::<Table>(include_str!("../data/crates.toml")).map_or(Vec::new(), |t| t.rows)
});

/// The rows that hold for a crate with these features.
pub fn known(name: &str, features: &[String]) -> impl Iterator<Item = &'static Known> {
    let is_on = |wanted: &String| match wanted.strip_suffix('*') {
        Some(start) => features.iter().any(|feature| feature.starts_with(start)),
        None => features.contains(wanted),
    };
    TABLE.iter().filter(move |row| {
        row.name == name
            && row.features.iter().all(is_on)
            && !row.excluded_features.iter().any(is_on)
    })
}

#[cfg(test)]
mod tests {
    use gpustub_core::library::Library;

    use super::*;

    #[test]
    fn the_table_is_readable_and_names_libraries_that_have_stubs() {
        let table: Table = toml::from_str(include_str!("../data/crates.toml")).unwrap();
        for row in &table.rows {
            for id in &row.links {
                assert!(Library::builtin(id).is_some(), "{}: {id}", row.name);
            }
            let says = !row.links.is_empty() || row.requires_tools.is_some() || row.cudart;
            assert!(says, "{}: a row that says nothing", row.name);
        }
    }

    #[test]
    fn features_decide() {
        let links = |features: &[&str]| -> Vec<&str> {
            let features: Vec<String> = features.iter().map(ToString::to_string).collect();
            let rows: Vec<&Known> = known("cudarc", &features).collect();
            rows.iter()
                .flat_map(|row| &row.links)
                .map(String::as_str)
                .collect()
        };
        assert_eq!(links(&["driver", "dynamic-loading"]), [""; 0]);
        assert_eq!(links(&["driver", "dynamic-linking"]), ["cuda"]);
        assert_eq!(links(&["cudnn-09010", "dynamic-linking"]), ["cudnn"]);
        let needs = |features: &[&str]| {
            let features: Vec<String> = features.iter().map(ToString::to_string).collect();
            known("cudarc", &features).any(|row| row.requires_tools.is_some())
        };
        assert!(needs(&["cuda-version-from-build-system"]));
        assert!(!needs(&["cuda-version-from-build-system", "cuda-12080"]));
    }
}
