//! Finalizers that name a package which was renamed, moved or removed. Cargo rejects the whole
//! workspace then, before `sync` can learn from it which packages the finalizer needs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::display_path::display_path;
use crate::edit::path_dependencies::{Change, PathDependency, revise};
use crate::error::{Error, Result};
use crate::ops::Operation;
use cargo_metadata::semver::{Version, VersionReq};
use gpustub_core::diag::{Diagnostic, OUT_OF_SYNC};
use toml_edit::Item;

use super::naming::DIRECTORY;
use super::stale::HEAD;
use crate::directories::{Directories, normalize, read, root_manifest};
use crate::selection::Selection;
use crate::workspace::{Workspace, directory};

const HELP: &str = "run `cargo gpustub sync`";

/// Manifest of a finalizer that cargo rejects.
#[derive(Debug)]
pub struct Broken {
    path: PathBuf,
    /// Faults, as parts of a sentence.
    faults: Vec<String>,
    before: String,
    /// Text that cargo accepts.
    after: String,
}

impl Broken {
    fn message(&self) -> String {
        let (file, faults) = (display_path(&self.path), self.faults.join(", and "));
        format!("`{file}` {faults}")
    }

    /// Diagnostic of a run that writes no files.
    pub fn diagnostic(&self) -> Diagnostic {
        let error = Diagnostic::error(&OUT_OF_SYNC, self.message());
        error.with_origin(display_path(&self.path), 0..0).help(HELP)
    }

    /// Makes the manifest acceptable to cargo.
    pub fn repair(&self) -> Result<Operation> {
        Operation::write(self.path.clone(), display_path(&self.path), &*self.after)
    }

    /// Restores the former text.
    pub fn restore(&self) -> Result<()> {
        Operation::write(self.path.clone(), display_path(&self.path), &*self.before)?.apply()
    }
}

/// Finds the finalizers that cargo rejects. `workspace`: `None` if cargo has already rejected the
/// workspace, whose packages are then read from `Cargo.toml` files.
pub fn broken(options: &Selection, workspace: Option<&Workspace>) -> Vec<Broken> {
    let packages: Vec<PathBuf> = match workspace {
        Some(workspace) => {
            let members = workspace.members().into_iter();
            members.map(|member| directory(member).to_owned()).collect()
        }
        None => match directories(options) {
            Some(found) => Vec::from_iter(found.packages),
            None => return Vec::new(),
        },
    };
    let mut finalizers: Vec<PathBuf> = packages
        .into_iter()
        .filter(|package| !package.ends_with(DIRECTORY))
        .map(|package| package.join(DIRECTORY))
        .collect();
    finalizers.sort();
    finalizers.iter().filter_map(|dir| examine(dir)).collect()
}

/// Names a finalizer that cargo rejects instead of the error of cargo, if there is one.
pub fn explain(options: &Selection, error: Error) -> Error {
    match broken(options, None).first() {
        Some(one) => Error::new(one.message()).help(HELP),
        None => error,
    }
}

fn directories(options: &Selection) -> Option<Directories> {
    let path = options.manifest.manifest_path.as_deref();
    let path = std::path::absolute(path.unwrap_or(Path::new("Cargo.toml"))).ok()?;
    // Cargo reports unreadable manifests.
    Directories::find(path.parent()?).ok()?
}

fn examine(dir: &Path) -> Option<Broken> {
    let path = dir.join("Cargo.toml");
    let before = fs::read_to_string(&path).ok()?;
    if !before.starts_with(HEAD) {
        return None;
    }
    let mut faults = Vec::new();
    let after = revise(&before, |dependency| {
        let (change, fault) = compare(dir, dependency);
        faults.extend(fault);
        change
    });
    let after = after.ok().filter(|_| !faults.is_empty())?;
    Some(Broken {
        path,
        faults,
        before,
        after,
    })
}

/// Compares a dependency with the package in its directory.
fn compare(dir: &Path, dependency: PathDependency) -> (Change, Option<String>) {
    let PathDependency { package, path, .. } = dependency;
    let there = normalize(&dir.join(path));
    let Ok(found) = read(&there) else {
        // Cargo reports unreadable manifests.
        return (Change::Keep, None);
    };
    let text = |key: &str| found.as_ref()?.get("package")?.get(key);
    let name = text("name").and_then(Item::as_str);
    if name != Some(package) {
        let other = match name {
            Some(name) => format!("`{name}` is"),
            None => "no package is".to_owned(),
        };
        let fault = format!("depends on `{package}` in `{path}`, where {other}");
        return (Change::Remove, Some(fault));
    }
    let shared = || root_manifest(&there).ok()?;
    let shared = text("version")
        .filter(|version| !version.is_str())
        .and_then(|_| shared());
    let version = match &shared {
        Some(root) => root
            .get("workspace")
            .and_then(|one| one.get("package")?.get("version")),
        None => text("version"),
    };
    let version = version.and_then(Item::as_str);
    let required = dependency.version.map(VersionReq::parse);
    if let (Some(Ok(required)), Some(version)) = (required, version)
        && let Ok(parsed) = Version::parse(version)
        && !required.matches(&parsed)
    {
        let fault = format!("requires `{package}` {required}, which has the version {version}");
        return (Change::Version(version.to_owned()), Some(fault));
    }
    (Change::Keep, None)
}
