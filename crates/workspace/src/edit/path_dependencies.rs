//! Path dependencies of a generated `Cargo.toml`.

use super::feature_lists;
use toml_edit::{DocumentMut, Item, TableLike, TomlError};

/// Dependency on a package in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathDependency<'a> {
    /// Name of the package.
    pub package: &'a str,
    /// Path of its directory, relative to the manifest's.
    pub path: &'a str,
    /// Version requirement.
    pub version: Option<&'a str>,
}

/// Change of a dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revision {
    /// None.
    Keep,
    /// Another version requirement.
    Version(String),
    /// No dependency, neither in the features.
    Remove,
}

const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Changes the path dependencies of a manifest.
///
/// # Errors
///
/// The error of a manifest that is no TOML.
pub fn revise(
    manifest: &str,
    mut decide: impl FnMut(PathDependency<'_>) -> Revision,
) -> Result<String, TomlError> {
    let mut document: DocumentMut = manifest.parse()?;
    let mut removed = Vec::new();
    for kind in KINDS {
        if let Some(table) = document.get_mut(kind).and_then(Item::as_table_like_mut) {
            revise_table(table, &mut decide, &mut removed);
        }
    }
    let targets = document.get_mut("target").and_then(Item::as_table_like_mut);
    for (_, target) in targets.into_iter().flat_map(|targets| targets.iter_mut()) {
        for kind in KINDS {
            let table = target.get_mut(kind).and_then(Item::as_table_like_mut);
            if let Some(table) = table {
                revise_table(table, &mut decide, &mut removed);
            }
        }
    }
    for list in feature_lists(&mut document) {
        list.retain(|value| match value.as_str() {
            Some(word) => word
                .strip_prefix("dep:")
                .is_none_or(|name| !removed.iter().any(|key| key == name)),
            None => true,
        });
    }
    Ok(document.to_string())
}

fn revise_table(
    table: &mut dyn TableLike,
    decide: &mut impl FnMut(PathDependency<'_>) -> Revision,
    removed: &mut Vec<String>,
) {
    fn text<'a>(dependency: &'a dyn TableLike, key: &str) -> Option<&'a str> {
        dependency.get(key).and_then(Item::as_str)
    }
    let mut removed_keys = Vec::new();
    for (key, item) in table.iter_mut() {
        let Some(dependency) = item.as_table_like_mut() else {
            continue;
        };
        let Some(path) = text(dependency, "path") else {
            continue;
        };
        match decide(PathDependency {
            package: text(dependency, "package").unwrap_or(&key),
            path,
            version: text(dependency, "version"),
        }) {
            Revision::Keep => {}
            Revision::Version(version) => {
                dependency.insert("version", toml_edit::value(version));
            }
            Revision::Remove => removed_keys.push(key.to_string()),
        }
    }
    for key in removed_keys {
        table.remove(&key);
        removed.push(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_removed_with_their_features() {
        let text = "[dependencies]\n\
                    a = { path = \"../a\", version = \"0.1\" }\n\
                    b = { path = \"../b\", optional = true }\n\
                    x-c = { path = \"../c\", package = \"c\", optional = true }\n\
                    d = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\ne = { path = \"../e\" }\n\
                    [features]\nf = [\"dep:b\", \"dep:x-c\", \"g\"]\n";
        let mut packages = Vec::new();
        let revised = revise(text, |dependency| {
            packages.push(dependency.package.to_owned());
            match dependency.package {
                "a" => Revision::Version("0.2.0".to_owned()),
                "c" | "e" => Revision::Remove,
                _ => Revision::Keep,
            }
        });
        assert_eq!(packages, ["a", "b", "c", "e"]);
        let expected = text
            .replace("\"0.1\"", "\"0.2.0\"")
            .replace(
                "x-c = { path = \"../c\", package = \"c\", optional = true }\n",
                "",
            )
            .replace("e = { path = \"../e\" }\n", "")
            .replace("\"dep:x-c\", ", "");
        assert_eq!(revised.unwrap(), expected);
        assert_eq!(revise(text, |_| Revision::Keep).unwrap(), text);
    }
}
