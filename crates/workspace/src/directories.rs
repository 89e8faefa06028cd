//! Directories of a workspace and its packages, read from `Cargo.toml` files without running cargo.
//!
//! The rules are those of cargo: `members` with wildcards, `exclude`, `package.workspace`, and path
//! dependencies inside the workspace, which are members implicitly.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::display_path::slashes;
use crate::error::{Error, Result};
use toml_edit::{DocumentMut, Item, TableLike};

/// Name of cargo's manifests.
const MANIFEST: &str = "Cargo.toml";

/// Directories of one workspace.
#[derive(Debug, PartialEq, Eq)]
pub struct Directories {
    /// Directory of the root manifest.
    pub root: PathBuf,
    /// Directories of all packages, sorted.
    pub packages: BTreeSet<PathBuf>,
}

impl Directories {
    /// Finds the workspace that an absolute directory belongs to; `None` outside of any package.
    ///
    /// # Errors
    ///
    /// An error if a manifest on the way cannot be read.
    pub fn find(start: &Path) -> Result<Option<Self>> {
        for directory in normalize(start).ancestors() {
            if let Some(manifest) = read(directory)? {
                let (root, shared) = root_of(directory, manifest)?;
                return Self::with_root(root, &shared, directory).map(Some);
            }
        }
        Ok(None)
    }

    fn with_root(root: PathBuf, shared: &DocumentMut, nearest: &Path) -> Result<Self> {
        let workspace = shared.get("workspace");
        let mut open: Vec<PathBuf> = vec![root.clone(), nearest.to_owned()];
        for member in strings(workspace, "members") {
            open.extend(expand(&root, member));
        }
        open.retain(|member| *member == root || !is_excluded(&root, workspace, member));
        let mut visited = BTreeSet::new();
        let mut packages = BTreeSet::new();
        while let Some(directory) = open.pop() {
            if !visited.insert(directory.clone()) {
                continue;
            }
            let Some(manifest) = read(&directory)? else {
                continue;
            };
            if !manifest.contains_key("package") {
                continue;
            }
            for dependency in path_dependencies(&directory, &manifest, &root, workspace) {
                let is_member = workspace.is_some()
                    && dependency.starts_with(&root)
                    && !is_excluded(&root, workspace, &dependency);
                open.extend(is_member.then_some(dependency));
            }
            packages.insert(directory);
        }
        Ok(Self { root, packages })
    }

    /// Whether the root manifest has no package of its own.
    pub fn is_virtual(&self) -> bool {
        !self.packages.contains(&self.root)
    }
}

/// Whether the package or workspace that an absolute directory belongs to has its root manifest there.
///
/// # Errors
///
/// An error if a manifest on the way cannot be read.
pub fn is_root(start: &Path) -> Result<bool> {
    for directory in normalize(start).ancestors() {
        if let Some(manifest) = read(directory)? {
            return Ok(root_of(directory, manifest)?.0 == directory);
        }
    }
    Ok(false)
}

/// Root manifest of the workspace that the package in an absolute directory belongs to.
///
/// # Errors
///
/// An error if a manifest on the way cannot be read.
pub(crate) fn root_manifest(directory: &Path) -> Result<Option<DocumentMut>> {
    let Some(manifest) = read(directory)? else {
        return Ok(None);
    };
    Ok(Some(root_of(directory, manifest)?.1))
}

/// Root directory and root manifest of the package or workspace in `directory`.
fn root_of(directory: &Path, manifest: DocumentMut) -> Result<(PathBuf, DocumentMut)> {
    if manifest.contains_key("workspace") {
        return Ok((directory.to_owned(), manifest));
    }
    let named_root = manifest
        .get("package")
        .and_then(|package| package.get("workspace")?.as_str());
    if let Some(path) = named_root {
        let root = normalize(&directory.join(path));
        if let Some(root_manifest) = read(&root)? {
            return Ok((root, root_manifest));
        }
    }
    for ancestor in directory.ancestors().skip(1) {
        if let Some(root_manifest) = read(ancestor)?
            && let Some(workspace) = root_manifest.get("workspace")
            && !is_excluded(ancestor, Some(workspace), directory)
        {
            return Ok((ancestor.to_owned(), root_manifest));
        }
    }
    Ok((directory.to_owned(), manifest))
}

/// Whether `exclude` covers a directory that `members` does not name.
fn is_excluded(root: &Path, workspace: Option<&Item>, directory: &Path) -> bool {
    let is_in_list = |key| {
        strings(workspace, key).any(|path| directory.starts_with(normalize(&root.join(path))))
    };
    is_in_list("exclude") && !is_in_list("members")
}

/// Directories that an entry of `members` names.
fn expand(root: &Path, member: &str) -> Vec<PathBuf> {
    let root = glob::Pattern::escape(&root.to_string_lossy());
    glob::glob(&format!("{root}/{member}"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|path| normalize(&path))
        .collect()
}

/// Directories of the path dependencies of a package, of all kinds and targets.
fn path_dependencies(
    directory: &Path,
    manifest: &DocumentMut,
    root: &Path,
    workspace: Option<&Item>,
) -> Vec<PathBuf> {
    let mut tables: Vec<&dyn TableLike> = vec![manifest.as_table()];
    if let Some(targets) = manifest.get("target").and_then(Item::as_table_like) {
        tables.extend(
            targets
                .iter()
                .filter_map(|(_, target)| target.as_table_like()),
        );
    }
    let mut paths = Vec::new();
    for table in tables {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(dependencies) = table.get(kind).and_then(Item::as_table_like) else {
                continue;
            };
            for (name, dependency) in dependencies.iter() {
                let inherits = dependency.get("workspace").and_then(Item::as_bool) == Some(true);
                let (base, dependency) = if inherits {
                    (root, inherited_dependency(workspace, name))
                } else {
                    (directory, Some(dependency))
                };
                if let Some(path) = dependency.and_then(|table| table.get("path")?.as_str()) {
                    paths.push(normalize(&base.join(path)));
                }
            }
        }
    }
    paths
}

/// Dependency in `[workspace.dependencies]`.
fn inherited_dependency<'a>(workspace: Option<&'a Item>, name: &str) -> Option<&'a Item> {
    workspace?.get("dependencies")?.get(name)
}

fn strings<'a>(table: Option<&'a Item>, key: &str) -> impl Iterator<Item = &'a str> {
    table
        .and_then(|table| table.get(key)?.as_array())
        .into_iter()
        .flatten()
        .filter_map(toml_edit::Value::as_str)
}

/// The manifest in a directory, if there is one.
pub(crate) fn read(directory: &Path) -> Result<Option<DocumentMut>> {
    let path = directory.join(MANIFEST);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(e) => return Err(Error::io("read", &path, &e)),
    };
    match text.trim_start_matches('\u{feff}').parse::<DocumentMut>() {
        Ok(document) => Ok(Some(document)),
        Err(e) => Err(Error::new(format!(
            "could not parse `{}`: {}",
            slashes(&path),
            e.message()
        ))),
    }
}

/// The path without `.` and `..`, resolved as cargo does: by name, not through links.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normalized.pop()),
            component => normalized.push(component),
        }
    }
    normalized
}

#[cfg(test)]
mod tests;
