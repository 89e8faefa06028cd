//! Source of the build-dependency `gpustub-build`, in the form that `sync` writes.
//!
//! A source that the workspace declares is followed: `[workspace.dependencies]`, then the packages'
//! own dependencies. Otherwise the source is that of this program, so that both are of one revision:
//!
//! * installed from git: the repository and the commit, from the record that `cargo install` keeps
//!   (`.crates2.json` at the install root, beside `bin`);
//! * run out of a checkout, or installed from one: a relative path, if the project is in the same
//!   tree. An absolute path would hold on one machine only;
//! * otherwise: the version.

use std::path::{Path, PathBuf};

use crate::display_path::slashes;
use crate::edit::cargo_toml::{self, HELPER, REQUIREMENT};
use cargo_metadata::{Dependency, Package};
use serde_json::Value as Json;
use toml_edit::{DocumentMut, InlineTable, Item, TomlError, Value};

use crate::directories::normalize;

/// Source of a dependency on `gpustub-build`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HelperSource {
    /// `workspace = true`.
    Inherited,
    /// Absolute directory of the package, written as a relative path.
    Directory(PathBuf),
    /// A repository.
    Git {
        /// URL of the repository.
        url: String,
        /// `rev`, `tag` or `branch`, with its value; `None`: the default branch.
        reference: Option<(String, String)>,
    },
    /// The version of this program, from the registry.
    Registry,
}

impl HelperSource {
    /// Chooses the source for packages of the workspace in `project`. `root`: text of its root manifest.
    /// `packages`: those whose declarations are followed, the most important first.
    ///
    /// # Errors
    ///
    /// The error of a root manifest that is no TOML.
    pub fn choose<'a>(
        project: &Path,
        root: &str,
        packages: impl Iterator<Item = &'a Package>,
    ) -> Result<Self, TomlError> {
        if cargo_toml::workspace_declares(root)? {
            return Ok(Self::Inherited);
        }
        if let Some(declared) = declared(packages) {
            return Ok(declared);
        }
        // The patch of a registry replaces dependencies on the registry only.
        if patches_helper(root)? {
            return Ok(Self::Registry);
        }
        Ok(installed_source(project))
    }

    /// Value of the dependency in the manifest of `directory`.
    pub fn dependency(&self, directory: &Path) -> Value {
        match self {
            Self::Registry => REQUIREMENT.into(),
            _ => Value::InlineTable(self.table(directory)),
        }
    }

    /// Table of the dependency in the manifest of `directory`.
    pub fn table(&self, directory: &Path) -> InlineTable {
        let mut table = InlineTable::new();
        match self {
            Self::Inherited => drop(table.insert("workspace", true.into())),
            Self::Directory(helper) => {
                drop(table.insert("path", relative(helper, directory).into()));
            }
            Self::Git { url, reference } => {
                table.insert("git", url.as_str().into());
                if let Some((key, value)) = reference {
                    table.insert(key, value.as_str().into());
                }
            }
            Self::Registry => drop(table.insert("version", REQUIREMENT.into())),
        }
        table
    }

    /// Source of a dependency on the helper that a package declares.
    fn from_dependency(package: &Package, dependency: &Dependency) -> Self {
        let origin = package.source.as_ref().map(|source| source.repr.as_str());
        match (&dependency.path, origin) {
            (Some(path), None) => Self::Directory(path.clone().into_std_path_buf()),
            // A path inside a repository that cargo has checked out for itself.
            (Some(_), Some(origin)) => git(origin).unwrap_or(Self::Registry),
            (None, _) => {
                let source = dependency.source.as_ref();
                source
                    .and_then(|source| git(&source.repr))
                    .unwrap_or(Self::Registry)
            }
        }
    }
}

/// Source that packages declare. A path or repository of any of them wins: one build with two
/// sources compiles two helpers.
fn declared<'a>(packages: impl Iterator<Item = &'a Package>) -> Option<HelperSource> {
    let mut registry = None;
    for package in packages {
        for dependency in &package.dependencies {
            if dependency.name != HELPER {
                continue;
            }
            match HelperSource::from_dependency(package, dependency) {
                // A package from a registry says nothing of the local ones.
                HelperSource::Registry if package.source.is_some() => {}
                HelperSource::Registry => registry = Some(HelperSource::Registry),
                source => return Some(source),
            }
        }
    }
    registry
}

/// Whether the workspace's root manifest patches the helper of a registry.
fn patches_helper(root: &str) -> Result<bool, TomlError> {
    let document: DocumentMut = root.parse()?;
    let Some(patches) = document.get("patch").and_then(Item::as_table_like) else {
        return Ok(false);
    };
    Ok((patches.iter()).any(|(_, packages)| packages.get(HELPER).is_some()))
}

/// Whether the root manifest of the workspace in a directory patches the helper of a registry.
pub fn is_patched(root: &Path) -> bool {
    std::fs::read_to_string(root.join("Cargo.toml"))
        .is_ok_and(|text| patches_helper(&text).unwrap_or_default())
}

/// Lines for the root manifest that replace a version of the helper, unless this program is a release itself: the
/// version may not be published.
pub fn patch_for_version() -> Option<String> {
    let program = std::env::current_exe().unwrap_or_default();
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR"));
    let inside = match installed(&program) {
        Some(Installed::Registry) => return None,
        Some(Installed::Path(package)) => package,
        _ => program,
    };
    let checkout = [inside.as_path(), built_in]
        .into_iter()
        .flat_map(Path::ancestors)
        .find(|directory| is_checkout(directory));
    let mut source = InlineTable::new();
    match checkout {
        Some(checkout) => {
            let helper = slashes(&checkout.join(HELPER));
            source.insert("path", helper.into());
        }
        None => drop(source.insert("git", env!("CARGO_PKG_REPOSITORY").into())),
    }
    Some(format!("[patch.crates-io]\n{HELPER} = {source}"))
}

/// Source of this program, for a project in `project`.
fn installed_source(project: &Path) -> HelperSource {
    let program = std::env::current_exe().unwrap_or_default();
    // A target directory may be outside of the checkout that this program was built in.
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = match installed(&program) {
        Some(Installed::Git(source)) => Some(source),
        Some(Installed::Path(package)) => in_tree(&package, project),
        Some(Installed::Registry) => None,
        None => in_tree(&program, project).or_else(|| in_tree(built_in, project)),
    };
    source.unwrap_or(HelperSource::Registry)
}

/// Helper of the checkout that `inside` is in, if `project` is in the same tree: inside the
/// checkout, or around it, as a project is that has it as a submodule.
fn in_tree(inside: &Path, project: &Path) -> Option<HelperSource> {
    let checkout = inside
        .ancestors()
        .find(|directory| is_checkout(directory))?
        .canonicalize()
        .ok()?;
    let canonical_project = project.canonicalize().ok()?;
    if !canonical_project.starts_with(&checkout) && !checkout.starts_with(&canonical_project) {
        return None;
    }
    // The project may have been reached through a link.
    let path = pathdiff::diff_paths(checkout.join(HELPER), canonical_project)?;
    Some(HelperSource::Directory(normalize(&project.join(path))))
}

/// Whether a directory is the root of gpustub's repository.
fn is_checkout(directory: &Path) -> bool {
    [HELPER, "cargo-gpustub"]
        .iter()
        .all(|package| directory.join(package).join("Cargo.toml").is_file())
}

/// Source that `cargo install` took this program from.
#[derive(Debug, PartialEq, Eq)]
enum Installed {
    Git(HelperSource),
    /// Directory of the package.
    Path(PathBuf),
    Registry,
}

/// Record of `cargo install` for a program in `bin` of an install root.
fn installed(program: &Path) -> Option<Installed> {
    let root = program.parent()?.parent()?;
    let record = std::fs::read_to_string(root.join(".crates2.json")).ok()?;
    recorded(&record, program.file_name()?.to_str()?)
}

/// Source of the package in `.crates2.json` that has the program `name`. The keys are package
/// identifiers: `cargo-gpustub 0.1.0 (git+https://host/repository?branch=main#COMMIT)`.
fn recorded(record: &str, name: &str) -> Option<Installed> {
    let record: Json = serde_json::from_str(record).ok()?;
    let mut packages = record["installs"].as_object()?.iter();
    let (id, _) = packages.find(|(_, package)| {
        package["bins"].as_array().is_some_and(|programs| {
            programs
                .iter()
                .any(|program| program.as_str() == Some(name))
        })
    })?;
    let source = id.split_once(" (")?.1.strip_suffix(')')?;
    if let Some(path) = source.strip_prefix("path+file://") {
        let path = path.split_once('#').map_or(path, |(path, _)| path);
        return Some(Installed::Path(decoded(path).into()));
    }
    let Some(HelperSource::Git { url, reference }) = git(source) else {
        return Some(Installed::Registry);
    };
    let url = without_password(&url);
    Some(Installed::Git(HelperSource::Git { url, reference }))
}

/// Repository of a source identifier, with the commit as `rev` where it is resolved.
pub(crate) fn git(source: &str) -> Option<HelperSource> {
    let source = source.strip_prefix("git+")?;
    let (url, commit) = match source.split_once('#') {
        Some((url, commit)) => (url, Some(commit)),
        None => (source, None),
    };
    let (url, query) = url.split_once('?').unwrap_or((url, ""));
    let requested = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| ["rev", "tag", "branch"].contains(key));
    let reference = match (commit, requested) {
        (Some(commit), _) => Some(("rev".to_owned(), commit.to_owned())),
        (None, Some((key, value))) => Some((key.to_owned(), decoded(value))),
        (None, None) => None,
    };
    let url = url.to_owned();
    Some(HelperSource::Git { url, reference })
}

/// The URL without user and password, which belong into no manifest. The user of `ssh://git@host`
/// stays: the server needs the name.
fn without_password(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}/{path}")
        }
        _ => url.to_owned(),
    }
}

/// The text with `%2F` and similar resolved.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%'
            && let Some((digits, after)) = after.split_at_checked(2)
            && let Ok(digits) = std::str::from_utf8(digits)
            && let Ok(byte) = u8::from_str_radix(digits, 16)
        {
            bytes.push(byte);
            rest = after;
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `to` as manifests in `from` have it.
pub(crate) fn relative(to: &Path, from: &Path) -> String {
    let path = pathdiff::diff_paths(to, from).unwrap_or_else(|| to.to_owned());
    slashes(&path)
}

#[cfg(test)]
mod tests;
