//! Path dependencies of a generated `Cargo.toml`.

use super::feature_lists;
use toml_edit::{DocumentMut, Item, TableLike, TomlError, Value};

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
pub enum Change {
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
    mut decide: impl FnMut(PathDependency<'_>) -> Change,
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
        let names = |value: &Value| value.as_str()?.strip_prefix("dep:").map(str::to_owned);
        list.retain(|value| names(value).is_none_or(|name| !removed.contains(&name)));
    }
    Ok(document.to_string())
}

fn revise_table(
    table: &mut dyn TableLike,
    decide: &mut impl FnMut(PathDependency<'_>) -> Change,
    removed: &mut Vec<String>,
) {
    let mut gone = Vec::new();
    for (key, item) in table.iter_mut() {
        let Some(entry) = item.as_table_like_mut() else {
            continue;
        };
        let text = |name: &str| entry.get(name).and_then(Item::as_str);
        let Some(path) = text("path") else { continue };
        match decide(PathDependency {
            package: text("package").unwrap_or(&key),
            path,
            version: text("version"),
        }) {
            Change::Keep => {}
            Change::Version(version) => drop(entry.insert("version", toml_edit::value(version))),
            Change::Remove => gone.push(key.to_string()),
        }
    }
    for key in gone {
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
        let mut seen = Vec::new();
        let found = revise(text, |one| {
            seen.push(one.package.to_owned());
            match one.package {
                "a" => Change::Version("0.2.0".to_owned()),
                "c" | "e" => Change::Remove,
                _ => Change::Keep,
            }
        });
        assert_eq!(seen, ["a", "b", "c", "e"]);
        let expected = text
            .replace("\"0.1\"", "\"0.2.0\"")
            .replace(
                "x-c = { path = \"../c\", package = \"c\", optional = true }\n",
                "",
            )
            .replace("e = { path = \"../e\" }\n", "")
            .replace("\"dep:x-c\", ", "");
        assert_eq!(found.unwrap(), expected);
        assert_eq!(revise(text, |_| Change::Keep).unwrap(), text);
    }
}
