//! The workspace, as `cargo metadata` reports it.

use std::collections::BTreeSet;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use cargo_metadata::camino::Utf8PathBuf;
use cargo_metadata::{CrateType, Metadata, Package, TargetKind};
use gpustub_core::suggest::nearest;
use gpustub_core::target::Target;

use crate::directories::normalize;
use crate::edit::cargo_toml::HELPER;
use crate::helper_source::patch_for_version;
use crate::ops::Pending;
use crate::selection::Selection;
use crate::triples;

/// Extent of the query to cargo.
#[derive(Debug, Clone, Copy)]
pub enum Depth<'a> {
    /// The members only: fast, needs neither network nor Cargo.lock.
    Members,
    /// The whole dependency graph of a target.
    Graph(&'a str),
}

/// A workspace and the selection of the command line.
#[derive(Debug)]
pub struct Workspace {
    /// Output of `cargo metadata`.
    pub metadata: Metadata,
    selection: clap_cargo::Workspace,
    features: Vec<String>,
    edits: Pending,
}

impl Workspace {
    /// Runs `cargo metadata`.
    pub fn load(options: &Selection, depth: Depth<'_>) -> Result<Self> {
        let mut command = options.manifest.metadata();
        options.features.forward_metadata(&mut command);
        let mut arguments = options.cargo_arguments();
        match depth {
            Depth::Members => {
                command.no_deps();
            }
            Depth::Graph(triple) => {
                arguments.extend(["--filter-platform".to_owned(), triple.to_owned()]);
            }
        }
        command.other_options(arguments);
        let mut metadata = command.exec().map_err(from_cargo)?;
        normalize_targets(&mut metadata);
        Ok(Self {
            metadata,
            selection: options.workspace.clone(),
            features: options.features.features.clone(),
            edits: Pending::default(),
        })
    }

    /// The workspace as it is after these changes of `GpuStub.toml` and symbol lists, which are not
    /// written yet.
    #[must_use]
    pub fn with_edits(mut self, edits: &Pending) -> Self {
        self.edits = edits.clone();
        self
    }

    /// Changes of `GpuStub.toml` and symbol lists that are not written yet.
    pub fn edits(&self) -> &Pending {
        &self.edits
    }

    /// Directory of the workspace.
    pub fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// All members, sorted by name.
    pub fn members(&self) -> Vec<&Package> {
        let ids: HashSet<_> = self.metadata.workspace_members.iter().collect();
        let mut members: Vec<&Package> = self
            .metadata
            .packages
            .iter()
            .filter(|package| ids.contains(&package.id))
            .collect();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        members
    }

    /// Whether a package is a member.
    pub fn has(&self, package: &Package) -> bool {
        self.metadata.workspace_members.contains(&package.id)
    }

    /// Members that the command line selects, sorted by name; never empty.
    pub fn selected(&self) -> Result<Vec<&Package>> {
        let members = self.members();
        for name in &self.selection.package {
            if !members.iter().any(|package| package.name.as_str() == name) {
                return Err(no_such_package(name, &members));
            }
        }
        let (chosen, _) = self.selection.partition_packages(&self.metadata);
        let selected: Vec<&Package> = members
            .into_iter()
            .filter(|member| chosen.iter().any(|package| package.id == member.id))
            .collect();
        if selected.is_empty() {
            return Err(
                Error::new("no package is selected").help("see `--package` and `--exclude`")
            );
        }
        // Cargo does not check features in a query without dependencies.
        let features = self.features.iter().flat_map(|list| list.split([' ', ',']));
        for feature in features.filter(|feature| !feature.is_empty()) {
            self.check_feature(feature, &selected)?;
        }
        Ok(selected)
    }

    /// Rejects a feature of the command line that no selected package has, in cargo's words: `name`,
    /// `package/name`, `dependency/name`.
    fn check_feature(&self, feature: &str, selected: &[&Package]) -> Result<()> {
        let mut packages = selected.to_vec();
        let mut name = feature;
        if let Some((package, feature)) = feature.split_once('/') {
            let package_name = package.trim_end_matches('?');
            for dependency in selected.iter().flat_map(|package| &package.dependencies) {
                // Cargo checks the features of a dependency when it resolves it.
                if dependency.rename.as_ref().unwrap_or(&dependency.name) == package_name {
                    return Ok(());
                }
            }
            packages.retain(|package| package.name == package_name);
            name = feature;
        }
        let features: BTreeSet<&str> = packages
            .iter()
            .flat_map(|package| package.features.keys())
            .map(String::as_str)
            .collect();
        if features.contains(name) {
            return Ok(());
        }
        let error = match selected {
            [package] => Error::new(format!(
                "the package '{}' does not contain this feature: {feature}",
                package.name
            )),
            packages => {
                let names: Vec<&str> = packages
                    .iter()
                    .map(|package| package.name.as_str())
                    .collect();
                Error::new(format!(
                    "none of the selected packages contains this feature: {feature}\n\
                     selected packages: {}",
                    names.join(", ")
                ))
            }
        };
        if let Some(similar) = nearest(name, features.iter().copied()) {
            return Err(error.help(format!("there is a similarly named feature: {similar}")));
        }
        if features.is_empty() {
            return Err(error);
        }
        let features = Vec::from_iter(features).join(", ");
        Err(error.help(format!("available features: {features}")))
    }

    /// The only member that the command line selects; if there are several, the error lists the fitting ones.
    pub fn selected_package(&self, fits: impl Fn(&Package) -> bool) -> Result<&Package> {
        match self.selected()?.as_slice() {
            [package] => Ok(package),
            packages => {
                let mut names: Vec<&str> = packages
                    .iter()
                    .filter(|package| fits(package))
                    .map(|package| package.name.as_str())
                    .collect();
                if names.is_empty() {
                    names.extend(packages.iter().map(|package| package.name.as_str()));
                }
                let error = Error::new("several packages are selected, but this command takes one");
                Err(error.help(format!("select one with `-p`: {}", names.join(", "))))
            }
        }
    }
}

/// Directory of a package.
pub fn directory(package: &Package) -> &Path {
    package
        .manifest_path
        .parent()
        .map_or(Path::new("."), |directory| directory.as_std_path())
}

/// Library target of a package, if it has one.
pub fn library(package: &Package) -> Option<&cargo_metadata::Target> {
    package.targets.iter().find(|target| {
        target.kind.iter().any(|kind| {
            matches!(
                kind,
                TargetKind::Lib
                    | TargetKind::RLib
                    | TargetKind::DyLib
                    | TargetKind::CDyLib
                    | TargetKind::StaticLib
                    | TargetKind::ProcMacro
            )
        })
    })
}

/// Whether a target is compiled to one of these kinds of crates.
pub(crate) fn has_crate_type(target: &cargo_metadata::Target, kinds: &[CrateType]) -> bool {
    kinds.iter().any(|kind| target.crate_types.contains(kind))
}

/// Target of `--target`, or the host's.
pub fn target(triple: Option<&str>) -> Result<Target> {
    match triple {
        Some(triple) => triples::target(triple),
        None => triples::parse(&host_triple()),
    }
}

/// Target triple of this machine: the one that this program was compiled for.
///
/// No rustc runs, so commands that need no cargo work without Rust. Stubs are built for the
/// machine, and the machine of a static musl program is as a rule one with glibc; rustc's own musl
/// targets, which link libc statically, hence become their gnu counterparts. A vendor's musl
/// triple, such as `x86_64-alpine-linux-musl`, stays: its programs are linked dynamically.
pub fn host_triple() -> String {
    machine_triple(env!("GPUSTUB_TOOL_TARGET"))
}

fn machine_triple(compiled_for: &str) -> String {
    match compiled_for.strip_suffix("-unknown-linux-musl") {
        Some(arch) => format!("{arch}-unknown-linux-gnu"),
        None => compiled_for.to_owned(),
    }
}

fn no_such_package(name: &str, members: &[&Package]) -> Error {
    let names = members.iter().map(|package| package.name.as_str());
    let error = Error::new(format!("unknown package `{name}` in this workspace"));
    match nearest(name, names.clone()) {
        Some(similar) => error.help(format!("did you mean `{similar}`?")),
        None => error.help(format!("members: {}", names.collect::<Vec<_>>().join(", "))),
    }
}

/// Help for a command outside of a package.
pub const NO_PACKAGE: &str =
    "run this inside a package (`cargo init` makes one), or name one with `--manifest-path`";

/// Cargo's own message, without its `error:`.
fn from_cargo(error: cargo_metadata::Error) -> Error {
    match error {
        cargo_metadata::Error::CargoMetadata { stderr } => {
            // Warnings of cargo may precede it.
            let start = match stderr.find("\nerror: ") {
                Some(newline) if !stderr.starts_with("error: ") => newline + 1,
                _ => 0,
            };
            let text = stderr[start..].trim();
            let text = text.strip_prefix("error: ").unwrap_or(text);
            match help(text) {
                Some(help) => Error::new(text).help(help),
                None => Error::new(text),
            }
        }
        cargo_metadata::Error::Io(cause) if cause.kind() == io::ErrorKind::NotFound => {
            Error::new(format!("could not run `cargo metadata`: {cause}"))
                .help("install Rust: packages are read by cargo")
        }
        error => Error::new(format!("could not run `cargo metadata`: {error}")),
    }
}

/// The next step after errors of cargo that new users meet.
fn help(text: &str) -> Option<String> {
    if text.starts_with("could not find `Cargo.toml`") {
        return Some(NO_PACKAGE.to_owned());
    }
    if text.contains(&format!("no matching package named `{HELPER}` found"))
        && let Some(patch) = patch_for_version()
    {
        return Some(format!(
            "until the version is published, add this to the Cargo.toml of the workspace:\n{patch}"
        ));
    }
    [
        "offline mode",
        "spurious network error",
        "failed to connect",
        "Could not resolve host",
    ]
    .iter()
    .any(|cause| text.contains(cause))
    .then(|| "download the dependencies: `cargo fetch`, with access to the network".to_owned())
}

/// Removes `.` and `..` from the root files of targets, so that one file has one path. Cargo reports
/// `path = "../common/main.rs"` below the directory of the package.
fn normalize_targets(metadata: &mut Metadata) {
    for package in &mut metadata.packages {
        for target in &mut package.targets {
            let path = target.src_path.as_std_path();
            let normalized = normalize(path);
            // Behind a symbolic link, `..` is another directory.
            let is_same_file = normalized != path
                && fs::canonicalize(&normalized).ok() == fs::canonicalize(path).ok();
            if let (true, Ok(path)) = (is_same_file, Utf8PathBuf::from_path_buf(normalized)) {
                target.src_path = path;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_triple_is_a_supported_one() {
        let host = Target::from_triple(&host_triple()).unwrap();
        assert_eq!(host.arch, std::env::consts::ARCH);
        assert_eq!(host.os, std::env::consts::OS);
        assert_eq!(host.check(), None);
    }

    #[test]
    fn machine_triple_of_a_static_program_is_that_of_glibc() {
        for (compiled_for, machine) in [
            ("x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu"),
            ("aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"),
            ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"),
            ("x86_64-alpine-linux-musl", "x86_64-alpine-linux-musl"),
            ("x86_64-unknown-freebsd", "x86_64-unknown-freebsd"),
        ] {
            assert_eq!(machine_triple(compiled_for), machine);
        }
    }
}
