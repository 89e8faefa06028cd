//! The workspace, as `cargo metadata` reports it.

use std::collections::BTreeSet;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use cargo_metadata::camino::Utf8PathBuf;
use cargo_metadata::{Metadata, Package, TargetKind};
use gpustub_core::suggest::nearest;
use gpustub_core::target::{SUPPORTED, Target};

use crate::directories::normalize;
use crate::selection::Selection;

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
}

impl Workspace {
    /// Runs `cargo metadata`.
    pub fn load(options: &Selection, depth: Depth<'_>) -> Result<Self> {
        let mut command = options.manifest.metadata();
        options.features.forward_metadata(&mut command);
        let mut other = options.cargo_arguments();
        match depth {
            Depth::Members => {
                command.no_deps();
            }
            Depth::Graph(triple) => {
                other.extend(["--filter-platform".to_owned(), triple.to_owned()]);
            }
        }
        let metadata = command.other_options(other).exec();
        let mut metadata = metadata.map_err(from_cargo)?;
        normalize_targets(&mut metadata);
        Ok(Self {
            metadata,
            selection: options.workspace.clone(),
            features: options.features.features.clone(),
        })
    }

    /// Directory of the workspace.
    pub fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// All members, sorted by name.
    pub fn members(&self) -> Vec<&Package> {
        let ids: HashSet<_> = self.metadata.workspace_members.iter().collect();
        let mut members = Vec::from_iter(&self.metadata.packages);
        members.retain(|package| ids.contains(&package.id));
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
        let (packages, name): (Vec<&Package>, _) = match feature.split_once('/') {
            None => (selected.to_vec(), feature),
            Some((first, name)) => {
                let first = first.trim_end_matches('?');
                let mut dependencies = selected.iter().flat_map(|one| &one.dependencies);
                // Cargo checks the features of a dependency when it resolves it.
                if dependencies.any(|one| one.rename.as_ref().unwrap_or(&one.name) == first) {
                    return Ok(());
                }
                let members = selected.iter().copied();
                (members.filter(|one| one.name == first).collect(), name)
            }
        };
        let known = packages.iter().flat_map(|package| package.features.keys());
        let known: BTreeSet<&str> = known.map(String::as_str).collect();
        if known.contains(name) {
            return Ok(());
        }
        let error = match selected {
            [one] => Error::new(format!(
                "the package '{}' does not contain this feature: {feature}",
                one.name
            )),
            several => {
                let names: Vec<&str> = several.iter().map(|one| one.name.as_str()).collect();
                Error::new(format!(
                    "none of the selected packages contains this feature: {feature}\n\
                     selected packages: {}",
                    names.join(", ")
                ))
            }
        };
        let listed = || Vec::from_iter(known.iter().copied()).join(", ");
        Err(match nearest(name, known.iter().copied()) {
            Some(near) => error.help(format!("there is a similarly named feature: {near}")),
            None if known.is_empty() => error,
            None => error.help(format!("available features: {}", listed())),
        })
    }

    /// The only member that the command line selects; if there are several, the error lists the fitting ones.
    pub fn selected_one(&self, fits: impl Fn(&Package) -> bool) -> Result<&Package> {
        match self.selected()?.as_slice() {
            [package] => Ok(package),
            several => {
                let fitting = several.iter().filter(|package| fits(package));
                let mut names: Vec<&str> = fitting.map(|package| package.name.as_str()).collect();
                if names.is_empty() {
                    names.extend(several.iter().map(|package| package.name.as_str()));
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

/// Target of `--target`, or the host's.
pub fn target(given: Option<&str>) -> Result<Target> {
    let host;
    let triple = match given {
        Some(triple) => triple,
        None => {
            host = host_triple();
            &host
        }
    };
    Target::from_triple(triple).ok_or_else(|| {
        Error::new(format!("unknown target `{triple}`"))
            .help(format!("supported targets: {}", SUPPORTED.join("; ")))
    })
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
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help(format!("members: {}", names.collect::<Vec<_>>().join(", "))),
    }
}

/// Help for a command outside of a package.
pub const NO_PACKAGE: &str = "run this inside a package, or name one with `--manifest-path`";

/// Cargo's own message, without its `error:`.
fn from_cargo(error: cargo_metadata::Error) -> Error {
    match error {
        cargo_metadata::Error::CargoMetadata { stderr } => {
            // Warnings of cargo may precede it.
            let at = match stderr.find("\nerror: ") {
                Some(at) if !stderr.starts_with("error: ") => at + 1,
                _ => 0,
            };
            let text = stderr[at..].trim();
            let text = text.strip_prefix("error: ").unwrap_or(text);
            let error = Error::new(text);
            if text.starts_with("could not find `Cargo.toml`") {
                error.help(NO_PACKAGE)
            } else {
                error
            }
        }
        cargo_metadata::Error::Io(cause) if cause.kind() == io::ErrorKind::NotFound => {
            Error::new(format!("could not run `cargo metadata`: {cause}"))
                .help("install Rust: packages are read by cargo")
        }
        other => Error::new(format!("could not run `cargo metadata`: {other}")),
    }
}

/// Removes `.` and `..` from the root files of targets, so that one file has one path. Cargo reports
/// `path = "../common/main.rs"` below the directory of the package.
fn normalize_targets(metadata: &mut Metadata) {
    for package in &mut metadata.packages {
        for target in &mut package.targets {
            let path = target.src_path.as_std_path();
            let plain = normalize(path);
            // Behind a symbolic link, `..` is another directory.
            let is_same =
                plain != path && fs::canonicalize(&plain).ok() == fs::canonicalize(path).ok();
            if let (true, Ok(plain)) = (is_same, Utf8PathBuf::from_path_buf(plain)) {
                target.src_path = plain;
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
