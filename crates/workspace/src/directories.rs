//! Directories of a workspace and its packages, read from `Cargo.toml` files without running cargo.
//!
//! The rules are those of cargo: `members` with wildcards, `exclude`, `package.workspace`, and path
//! dependencies inside the workspace, which are members implicitly.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

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
        open.retain(|one| *one == root || !is_excluded(&root, workspace, one));
        let mut seen = BTreeSet::new();
        let mut packages = BTreeSet::new();
        while let Some(directory) = open.pop() {
            if !seen.insert(directory.clone()) {
                continue;
            }
            let Some(manifest) = read(&directory)? else {
                continue;
            };
            if manifest.contains_key("package") {
                let implicit = path_dependencies(&directory, &manifest, &root, workspace);
                open.extend(implicit.filter(|one| {
                    workspace.is_some()
                        && one.starts_with(&root)
                        && !is_excluded(&root, workspace, one)
                }));
                packages.insert(directory);
            }
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
    let named = manifest
        .get("package")
        .and_then(|package| package.get("workspace"));
    if let Some(named) = named.and_then(Item::as_str) {
        let root = normalize(&directory.join(named));
        if let Some(shared) = read(&root)? {
            return Ok((root, shared));
        }
    }
    for above in directory.ancestors().skip(1) {
        if let Some(shared) = read(above)?
            && let Some(workspace) = shared.get("workspace")
            && !is_excluded(above, Some(workspace), directory)
        {
            return Ok((above.to_owned(), shared));
        }
    }
    Ok((directory.to_owned(), manifest))
}

/// Whether `exclude` covers a directory that `members` does not name.
fn is_excluded(root: &Path, workspace: Option<&Item>, directory: &Path) -> bool {
    let covers = |key| {
        let mut paths = strings(workspace, key);
        paths.any(|path| directory.starts_with(normalize(&root.join(path))))
    };
    covers("exclude") && !covers("members")
}

/// Directories that an entry of `members` names.
fn expand(root: &Path, member: &str) -> Vec<PathBuf> {
    let root = glob::Pattern::escape(&root.to_string_lossy());
    let found = glob::glob(&format!("{root}/{member}"));
    let found = found.into_iter().flatten().flatten();
    found.map(|path| normalize(&path)).collect()
}

/// Directories of the path dependencies of a package, of all kinds and targets.
fn path_dependencies<'a>(
    directory: &'a Path,
    manifest: &'a DocumentMut,
    root: &'a Path,
    workspace: Option<&'a Item>,
) -> impl Iterator<Item = PathBuf> + 'a {
    let shared = workspace.and_then(|workspace| workspace.get("dependencies"));
    let targets = manifest.get("target").and_then(Item::as_table_like);
    let targets = targets.into_iter().flat_map(TableLike::iter);
    let tables = targets.filter_map(|(_, target)| target.as_table_like());
    let tables = [manifest.as_table() as &dyn TableLike]
        .into_iter()
        .chain(tables);
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let dependencies = tables
        .flat_map(move |table| kinds.into_iter().filter_map(|kind| table.get(kind)))
        .filter_map(Item::as_table_like)
        .flat_map(TableLike::iter);
    dependencies.filter_map(move |(name, dependency)| {
        let inherits = dependency.get("workspace").and_then(Item::as_bool) == Some(true);
        let (base, dependency) = if inherits {
            (root, shared?.get(name)?)
        } else {
            (directory, dependency)
        };
        let path = dependency.get("path").and_then(Item::as_str)?;
        Some(normalize(&base.join(path)))
    })
}

fn strings<'a>(table: Option<&'a Item>, key: &str) -> impl Iterator<Item = &'a str> {
    let list = table.and_then(|table| table.get(key));
    let list = list.and_then(Item::as_array).into_iter().flatten();
    list.filter_map(toml_edit::Value::as_str)
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
    let document = text.trim_start_matches('\u{feff}').parse();
    let document = document.map_err(|e: toml_edit::TomlError| {
        Error::new(format!(
            "could not parse `{}`: {}",
            path.display(),
            e.message()
        ))
    })?;
    Ok(Some(document))
}

/// The path without `.` and `..`, resolved as cargo does: by name, not through links.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(result.pop()),
            other => result.push(other),
        }
    }
    result
}

#[cfg(test)]
mod tests;
