//! The build-dependency in `Cargo.toml`, its formatting kept.

use super::{as_before, separate};
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// The package that build scripts use.
pub const HELPER: &str = "gpustub-build";

/// The version requirement that this program writes: its own series.
pub const REQUIREMENT: &str = concat!(
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR")
);

/// Whether the workspace's root manifest declares the helper in `[workspace.dependencies]`.
pub fn workspace_declares(root: &str) -> Result<bool, toml_edit::TomlError> {
    let document: DocumentMut = root.parse()?;
    let declared = document
        .get("workspace")
        .and_then(|item| item.get("dependencies"));
    Ok(declared.is_some_and(|item| item.get(HELPER).is_some()))
}

/// Whether `package.build` is `false`.
pub fn build_is_off(manifest: &str) -> Result<bool, toml_edit::TomlError> {
    let document: DocumentMut = manifest.parse()?;
    let build = document
        .get("package")
        .and_then(|package| package.get("build"));
    Ok(build.and_then(Item::as_bool) == Some(false))
}

/// Adds the build-dependency. `inherit`: as the workspace declares it.
pub fn add_helper(manifest: &str, inherit: bool) -> Result<String, toml_edit::TomlError> {
    let mut document: DocumentMut = manifest.parse()?;
    let existed = document.contains_key("build-dependencies");
    let item = document
        .entry("build-dependencies")
        .or_insert_with(|| Item::Table(Table::new()));
    let value = if inherit {
        Value::InlineTable(InlineTable::from_iter([("workspace", true)]))
    } else {
        Value::from(REQUIREMENT)
    };
    // An inline `build-dependencies = { … }` is table-like, too; anything else cargo refuses.
    if let Some(table) = item.as_table_like_mut() {
        let sorted = is_sorted(table);
        table.insert(HELPER, Item::Value(value));
        if let Some(table) = item.as_table_mut() {
            if sorted {
                table.sort_values();
            }
            if !existed {
                separate(&mut document, "build-dependencies");
            }
        }
    }
    Ok(as_before(manifest, &document.to_string()))
}

fn is_sorted(table: &dyn TableLike) -> bool {
    let names: Vec<&str> = table.iter().map(|(name, _)| name).collect();
    names.is_sorted()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_the_dependency_and_keeps_the_rest() {
        let package = "[package]\nname = \"x\" # ours\n";
        for (before, after) in [
            (String::new(), "\n[build-dependencies]\n@\n".to_owned()),
            (
                format!("{package}\n[dependencies]\n"),
                format!("{package}\n[dependencies]\n\n[build-dependencies]\n@\n"),
            ),
            (
                format!("{package}# the end\n"),
                format!("{package}# the end\n\n[build-dependencies]\n@\n"),
            ),
            (
                format!("[build-dependencies]\ncc = \"1\"   # C\nzip = \"2\"\n\n{package}"),
                format!("[build-dependencies]\ncc = \"1\"   # C\n@\nzip = \"2\"\n\n{package}"),
            ),
            (
                "[build-dependencies]\nzip = \"2\"\ncc = \"1\"\n".into(),
                "[build-dependencies]\nzip = \"2\"\ncc = \"1\"\n@\n".into(),
            ),
            (
                "[build-dependencies.cc]\nversion = \"1\"\n".into(),
                "[build-dependencies]\n@\n[build-dependencies.cc]\nversion = \"1\"\n".into(),
            ),
        ] {
            let line = |value: &str| after.replace('@', &format!("{HELPER} = {value}"));
            assert_eq!(add_helper(&before, false).unwrap(), line("\"0.1\""));
            assert_eq!(
                add_helper(&before, true).unwrap(),
                line("{ workspace = true }")
            );
        }
        assert_eq!(
            add_helper("\u{feff}[package]\r\nname = \"x\"\r\n", true).unwrap(),
            format!(
                "\u{feff}[package]\r\nname = \"x\"\r\n\r\n[build-dependencies]\r\n\
                 {HELPER} = {{ workspace = true }}\r\n"
            )
        );
        assert!(add_helper("[", false).is_err());
    }

    #[test]
    fn reads_what_decides() {
        let with = "[workspace.dependencies]\ngpustub-build = \"0.1\"\n";
        assert!(workspace_declares(with).unwrap());
        assert!(!workspace_declares("[workspace]\nmembers = []\n").unwrap());
        assert!(build_is_off("[package]\nbuild = false\n").unwrap());
        assert!(!build_is_off("[package]\nbuild = \"b.rs\"\n").unwrap());
    }
}
