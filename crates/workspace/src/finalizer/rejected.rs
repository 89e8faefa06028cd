//! Finalizers that name a package which was renamed, moved or removed, and finalizers whose files were
//! deleted. Cargo rejects the whole workspace then, before `sync` can learn from it which packages a
//! finalizer needs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::display_path::display_path;
use crate::edit::cargo_toml;
use crate::edit::path_dependencies::{PathDependency, Revision, revise};
use crate::error::{Error, Result};
use crate::ops::Operation;
use cargo_metadata::semver::{Version, VersionReq};
use gpustub_core::diag::{Diagnostic, OUT_OF_SYNC};
use toml_edit::Item;

use super::naming::{DIRECTORY, PREFIX, is_generated};
use crate::directories::{Directories, normalize, read, root_manifest};
use crate::selection::Selection;
use crate::workspace::{Workspace, directory};

const HELP: &str = "run `cargo gpustub sync`";

/// Manifest of a finalizer, or of its package, that cargo rejects.
#[derive(Debug)]
pub struct RejectedManifest {
    path: PathBuf,
    /// Faults, as parts of a sentence.
    faults: Vec<String>,
    before: String,
    /// Text that cargo accepts.
    after: String,
}

impl RejectedManifest {
    fn message(&self) -> String {
        let file = display_path(&self.path);
        format!("`{file}` {}", self.faults.join(", and "))
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
pub fn rejected_manifests(
    options: &Selection,
    workspace: Option<&Workspace>,
) -> Vec<RejectedManifest> {
    let packages: Vec<PathBuf> = match workspace {
        Some(workspace) => workspace
            .members()
            .into_iter()
            .map(|member| directory(member).to_owned())
            .collect(),
        None => match directories(options) {
            Some(directories) => Vec::from_iter(directories.packages),
            None => return Vec::new(),
        },
    };
    let mut rejected: Vec<RejectedManifest> = packages
        .into_iter()
        .filter(|package| !package.ends_with(DIRECTORY))
        .filter_map(|package| {
            without_finalizer(&package).or_else(|| examine(&package.join(DIRECTORY)))
        })
        .collect();
    rejected.sort_by(|first, second| first.path.cmp(&second.path));
    rejected
}

/// Names a finalizer that cargo rejects instead of the error of cargo, if there is one.
pub fn explain(options: &Selection, error: Error) -> Error {
    match rejected_manifests(options, None).first() {
        Some(manifest) => Error::new(manifest.message()).help(HELP),
        None => error,
    }
}

fn directories(options: &Selection) -> Option<Directories> {
    let path = options.manifest.manifest_path.as_deref();
    let path = std::path::absolute(path.unwrap_or(Path::new("Cargo.toml"))).ok()?;
    // Cargo reports unreadable manifests.
    Directories::find(path.parent()?).ok()?
}

/// The manifest of a package whose finalizer's files were deleted. Without the dependency on the
/// finalizer cargo accepts it, and `sync` writes both again.
fn without_finalizer(package: &Path) -> Option<RejectedManifest> {
    let dir = package.join(DIRECTORY);
    let missing_file = ["Cargo.toml", "build.rs", "src/lib.rs"]
        .into_iter()
        .find(|file| !dir.join(file).exists())?;
    let path = package.join("Cargo.toml");
    let before = fs::read_to_string(&path).ok()?;
    let mut names = Vec::new();
    revise(&before, |dependency| {
        if dependency.package.starts_with(PREFIX)
            && normalize(&package.join(dependency.path)) == dir
        {
            names.push(dependency.package.to_owned());
        }
        Revision::Keep
    })
    .ok()?;
    let name = names.first()?;
    let after = cargo_toml::remove_dependency(&before, name).ok()?;
    let fault = format!("depends on `{name}`, whose `{DIRECTORY}/{missing_file}` is missing");
    Some(RejectedManifest {
        path,
        faults: vec![fault],
        before,
        after,
    })
}

fn examine(dir: &Path) -> Option<RejectedManifest> {
    let path = dir.join("Cargo.toml");
    let before = fs::read_to_string(&path).ok()?;
    if !is_generated(&before) {
        return None;
    }
    let mut faults = Vec::new();
    let revised = revise(&before, |dependency| {
        let (revision, fault) = compare(dir, dependency);
        faults.extend(fault);
        revision
    });
    let after = revised.ok().filter(|_| !faults.is_empty())?;
    Some(RejectedManifest {
        path,
        faults,
        before,
        after,
    })
}

/// Compares a dependency with the package in its directory.
fn compare(dir: &Path, dependency: PathDependency) -> (Revision, Option<String>) {
    let PathDependency { package, path, .. } = dependency;
    let package_dir = normalize(&dir.join(path));
    let Ok(manifest) = read(&package_dir) else {
        // Cargo reports unreadable manifests.
        return (Revision::Keep, None);
    };
    let table = manifest
        .as_ref()
        .and_then(|manifest| manifest.get("package"));
    let name = table.and_then(|table| table.get("name")?.as_str());
    if name != Some(package) {
        let occupant = match name {
            Some(name) => format!("`{name}` is"),
            None => "no package is".to_owned(),
        };
        let fault = format!("depends on `{package}` in `{path}`, where {occupant}");
        return (Revision::Remove, Some(fault));
    }
    let declared = table.and_then(|table| table.get("version"));
    let root = match declared {
        // `version.workspace = true`
        Some(version) if !version.is_str() => root_manifest(&package_dir).ok().flatten(),
        _ => None,
    };
    let version = match &root {
        Some(root) => root
            .get("workspace")
            .and_then(|workspace| workspace.get("package")?.get("version")),
        None => declared,
    };
    let requirement = dependency.version.map(VersionReq::parse);
    if let (Some(Ok(requirement)), Some(version)) = (requirement, version.and_then(Item::as_str))
        && let Ok(parsed) = Version::parse(version)
        && !requirement.matches(&parsed)
    {
        let fault = format!("requires `{package}` {requirement}, which has the version {version}");
        return (Revision::Version(version.to_owned()), Some(fault));
    }
    (Revision::Keep, None)
}
