//! Edits of `sync` in a `Cargo.toml`, preserving its formatting.

use super::{as_before, feature_lists, separate};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Key, Table, TableLike, Value};

/// Package that build scripts use.
pub const HELPER: &str = "gpustub-build";

/// Feature that writes super-archives.
pub const ARCHIVE_FEATURE: &str = "archive";

/// Feature that compresses members of super-archives, and has [`ARCHIVE_FEATURE`].
pub const ZSTD_FEATURE: &str = "zstd";

/// Feature that splits modules of bitcode, and has [`ARCHIVE_FEATURE`].
pub const SPLIT_FEATURE: &str = "split";

/// Version requirement that this program writes: its own series.
pub const REQUIREMENT: &str = concat!(
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR")
);

/// Tables of dependencies that `sync` writes.
const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

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

/// Packages of a `Cargo.lock` that depend on the helper; empty if the file cannot be read.
pub fn users_of_helper(lock: &str) -> Vec<String> {
    let document: DocumentMut = lock.parse().unwrap_or_default();
    let packages = document.get("package").and_then(Item::as_array_of_tables);
    packages
        .into_iter()
        .flatten()
        .filter(|package| uses_helper(package))
        .filter_map(|package| Some(package.get("name")?.as_str()?.to_owned()))
        .collect()
}

/// Whether a package of a `Cargo.lock` depends on the helper.
fn uses_helper(package: &Table) -> bool {
    let dependencies = package.get("dependencies").and_then(Item::as_array);
    let mut names = dependencies.into_iter().flatten().filter_map(Value::as_str);
    // Followed by its version, if there are several.
    names.any(|name| name.split(' ').next() == Some(HELPER))
}

/// Adds the build-dependency with this source.
pub fn add_helper(manifest: &str, value: Value) -> Result<String, toml_edit::TomlError> {
    add_dependency(manifest, "build-dependencies", HELPER, value)
}

/// Adds a feature to the build-dependency, which the package calls `name`, unless present.
pub fn add_helper_feature(
    manifest: &str,
    name: &str,
    feature: &str,
) -> Result<String, toml_edit::TomlError> {
    let mut document: DocumentMut = manifest.parse()?;
    let item = document
        .get_mut("build-dependencies")
        .and_then(|table| table.get_mut(name));
    if let Some(item) = item {
        if let Some(Value::String(version)) = item.as_value() {
            let mut table = InlineTable::from_iter([("version", version.value().as_str())]);
            *table.decor_mut() = version.decor().clone();
            *item = Item::Value(Value::InlineTable(table));
        }
        if let Some(table) = item.as_table_like_mut() {
            let features = table
                .entry("features")
                .or_insert_with(|| Item::Value(Value::Array(Array::new())));
            if let Some(features) = features.as_array_mut()
                && !features.iter().any(|value| value.as_str() == Some(feature))
            {
                features.push(feature);
            }
        }
    }
    Ok(as_before(manifest, &document.to_string()))
}

/// Adds a `links` key to the package, which passes metadata to dependents' build scripts, unless
/// present.
pub fn add_links(manifest: &str, name: &str) -> Result<String, toml_edit::TomlError> {
    let mut document: DocumentMut = manifest.parse()?;
    let package = document
        .get_mut("package")
        .and_then(Item::as_table_like_mut);
    if let Some(package) = package
        && !package.contains_key("links")
    {
        package.insert("links", Item::Value(name.into()));
    }
    Ok(as_before(manifest, &document.to_string()))
}

/// Makes features of the package enable those of the same name of its dependency `name`, and no
/// others. A feature without a line in `[features]` gets one with its previous effects.
pub fn pass_features<'a>(
    manifest: &str,
    name: &str,
    forwarded: impl Iterator<Item = (&'a str, &'a [String])>,
) -> Result<String, toml_edit::TomlError> {
    let mut document: DocumentMut = manifest.parse()?;
    let forwarded: Vec<(&str, &[String])> = forwarded.collect();
    let existed = document.contains_key("features");
    if !forwarded.is_empty() && !existed {
        document.insert("features", Item::Table(Table::new()));
    }
    let features = document.get_mut("features");
    if let Some(features) = features.and_then(Item::as_table_like_mut) {
        for (feature, item) in features.iter_mut() {
            let is_forwarded = forwarded.iter().any(|(name, _)| feature == *name);
            if let Some(effects) = item.as_array_mut() {
                effects.retain(|effect| match enabled_feature(effect, name) {
                    Some(enabled) => is_forwarded && feature == enabled,
                    None => true,
                });
            }
        }
        for (feature, previous) in forwarded {
            let item = features
                .entry(feature)
                .or_insert_with(|| Item::Value(Value::Array(Array::from_iter(previous))));
            if let Some(effects) = item.as_array_mut()
                && !effects.iter().any(|e| enabled_feature(e, name).is_some())
            {
                effects.push(format!("{name}/{feature}"));
            }
        }
        if !existed {
            separate(&mut document, "features");
        }
    }
    Ok(as_before(manifest, &document.to_string()))
}

/// Feature of the dependency `name` that an entry `name/feature` enables.
fn enabled_feature<'v>(effect: &'v Value, name: &str) -> Option<&'v str> {
    effect.as_str()?.strip_prefix(name)?.strip_prefix('/')
}

/// Makes `name` a dependency of the kind `kind` only, with this path, this version or none, and these
/// features if the value has any.
pub fn set_dependency(
    manifest: &str,
    kind: &str,
    name: &str,
    value: &InlineTable,
) -> Result<String, toml_edit::TomlError> {
    let mut document: DocumentMut = manifest.parse()?;
    for table_kind in KINDS {
        let table = document
            .get_mut(table_kind)
            .and_then(Item::as_table_like_mut);
        let Some(table) = table else { continue };
        if table_kind != kind {
            if table.remove(name).is_some() && table.is_empty() {
                document.remove(table_kind);
            }
        } else if let Some(dependency) = table.get_mut(name) {
            update_dependency(dependency, value);
        }
    }
    let text = as_before(manifest, &document.to_string());
    add_dependency(&text, kind, name, Value::InlineTable(value.clone()))
}

/// Gives a dependency the path, the version and the features of `value`.
fn update_dependency(dependency: &mut Item, value: &InlineTable) {
    /// Strings of a value, without their notation.
    fn strings(value: &Value) -> Vec<&str> {
        match value {
            Value::Array(array) => array.iter().filter_map(Value::as_str).collect(),
            _ => value.as_str().into_iter().collect(),
        }
    }
    let Some(table) = dependency.as_table_like_mut() else {
        return;
    };
    let mut is_changed = false;
    for key in ["path", "version", "features"] {
        let (old, new) = (table.get(key).and_then(Item::as_value), value.get(key));
        if old.map(strings) == new.map(strings) || key == "features" && new.is_none() {
            continue;
        }
        is_changed = true;
        match new {
            Some(new) => table.insert(key, Item::Value(new.clone())),
            None => table.remove(key),
        };
    }
    if is_changed && let Some(table) = dependency.as_inline_table_mut() {
        table.fmt();
    }
}

/// Removes a dependency of any kind, and the features passed to it.
pub fn remove_dependency(manifest: &str, name: &str) -> Result<String, toml_edit::TomlError> {
    let text = pass_features(manifest, name, std::iter::empty())?;
    let mut document: DocumentMut = text.parse()?;
    for kind in KINDS {
        let table = document.get_mut(kind).and_then(Item::as_table_like_mut);
        if let Some(table) = table
            && table.remove(name).is_some()
            && table.is_empty()
        {
            document.remove(kind);
        }
    }
    Ok(as_before(manifest, &document.to_string()))
}

/// Renames a dependency, also in the features. If both names exist, the old dependency is removed.
pub fn rename_dependency(
    manifest: &str,
    old: &str,
    new: &str,
) -> Result<String, toml_edit::TomlError> {
    let mut document: DocumentMut = manifest.parse()?;
    for kind in KINDS {
        match document.get_mut(kind) {
            Some(Item::Table(table)) => {
                let was_sorted = is_sorted(table);
                let Some((key, item)) = table.remove_entry(old) else {
                    continue;
                };
                if !table.contains_key(new) {
                    let key = Key::new(new).with_leaf_decor(key.leaf_decor().clone());
                    table.insert_formatted(&key, item);
                }
                if was_sorted {
                    table.sort_values();
                }
            }
            Some(Item::Value(Value::InlineTable(table))) => {
                if let Some(value) = table.remove(old) {
                    table.get_or_insert(new, value);
                }
            }
            _ => {}
        }
    }
    for effects in feature_lists(&mut document) {
        for effect in effects.iter_mut() {
            let renamed = effect
                .as_str()
                .and_then(|text| renamed_effect(text, old, new));
            if let Some(renamed) = renamed {
                let decor = effect.decor().clone();
                *effect = Value::from(renamed);
                *effect.decor_mut() = decor;
            }
        }
    }
    Ok(as_before(manifest, &document.to_string()))
}

/// What a feature enables, with the new name of a dependency; `None` if it is not about that one.
fn renamed_effect(effect: &str, old: &str, new: &str) -> Option<String> {
    let (prefix, name) = match effect.strip_prefix("dep:") {
        Some(name) => ("dep:", name),
        None => ("", effect),
    };
    let rest = name.strip_prefix(old)?;
    let ends_name = rest.is_empty() || rest.starts_with(['/', '?']);
    ends_name.then(|| format!("{prefix}{new}{rest}"))
}

/// Whether the workspace's root manifest names a directory of this name as a member.
pub fn has_member(root: &str, directory: &str) -> bool {
    let document: DocumentMut = root.parse().unwrap_or_default();
    document
        .get("workspace")
        .and_then(|workspace| workspace.get("members")?.as_array())
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .any(|path| path.rsplit('/').next() == Some(directory))
}

/// Adds a dependency to the table `kind`, unless the table has one of that name.
pub fn add_dependency(
    manifest: &str,
    kind: &str,
    name: &str,
    value: Value,
) -> Result<String, toml_edit::TomlError> {
    let mut document: DocumentMut = manifest.parse()?;
    let existed = document.contains_key(kind);
    let item = document
        .entry(kind)
        .or_insert_with(|| Item::Table(Table::new()));
    // An inline `build-dependencies = { … }` is table-like as well; cargo rejects other values.
    if let Some(table) = item.as_table_like_mut() {
        if table.contains_key(name) {
            return Ok(manifest.to_owned());
        }
        let was_sorted = is_sorted(table);
        table.insert(name, Item::Value(value));
        if let Some(table) = item.as_table_mut() {
            if was_sorted {
                table.sort_values();
            }
            if !existed {
                separate(&mut document, kind);
            }
        }
    }
    Ok(as_before(manifest, &document.to_string()))
}

fn is_sorted(table: &dyn TableLike) -> bool {
    table.iter().map(|(name, _)| name).is_sorted()
}

#[cfg(test)]
mod tests;
