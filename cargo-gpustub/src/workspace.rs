//! The workspace, as `cargo metadata` tells it.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, Package, TargetKind};
use gpustub_core::suggest::nearest;
use gpustub_core::target::{SUPPORTED, Target};

use crate::cli;
use crate::environment::variable;
use crate::error::{Error, Result};

/// How much cargo is asked for.
#[derive(Debug, Clone, Copy)]
pub enum Depth<'a> {
    /// The members only: fast, needs neither network nor Cargo.lock.
    Members,
    /// The whole dependency graph of a target.
    Graph(&'a str),
}

/// A workspace and what of it the command line selects.
#[derive(Debug)]
pub struct Workspace {
    /// What cargo said.
    pub metadata: Metadata,
    selection: clap_cargo::Workspace,
}

impl Workspace {
    /// Asks cargo.
    pub fn load(options: &cli::Cargo, depth: Depth<'_>) -> Result<Self> {
        let mut command = options.manifest.metadata();
        options.features.forward_metadata(&mut command);
        let mut other = Vec::new();
        if options.locked {
            other.push("--locked".to_owned());
        }
        if options.offline {
            other.push("--offline".to_owned());
        }
        match depth {
            Depth::Members => {
                command.no_deps();
            }
            Depth::Graph(triple) => {
                other.extend(["--filter-platform".to_owned(), triple.to_owned()]);
            }
        }
        let metadata = command.other_options(other).exec().map_err(from_cargo)?;
        Ok(Self {
            metadata,
            selection: options.workspace.clone(),
        })
    }

    /// The folder of the workspace.
    pub fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// All members, sorted by name.
    pub fn members(&self) -> Vec<&Package> {
        let mut members = self.metadata.workspace_packages();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        members
    }

    /// Whether a package is a member.
    pub fn has(&self, package: &Package) -> bool {
        self.metadata.workspace_members.contains(&package.id)
    }

    /// The members that the command line selects, sorted by name; never none.
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
        Ok(selected)
    }

    /// The one member that the command line selects; of several, it is one of those that fit.
    pub fn selected_one(&self, fits: impl Fn(&Package) -> bool) -> Result<&Package> {
        match self.selected()?.as_slice() {
            [package] => Ok(package),
            several => {
                let fitting = several.iter().filter(|package| fits(package));
                let mut names: Vec<&str> = fitting.map(|package| package.name.as_str()).collect();
                if names.is_empty() {
                    names.extend(several.iter().map(|package| package.name.as_str()));
                }
                let error = Error::new("this command works on one package at a time");
                Err(error.help(format!("say which one with `-p`: {}", names.join(", "))))
            }
        }
    }
}

/// The folder of a package.
pub fn folder(package: &Package) -> &Path {
    package
        .manifest_path
        .parent()
        .map_or(Path::new("."), |folder| folder.as_std_path())
}

/// The library target of a package, if it has one.
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

/// A path as people name it: relative to the current folder where it lies below it.
pub fn shown(path: &Path) -> String {
    let current = std::env::current_dir().unwrap_or_default();
    let text = path
        .strip_prefix(current)
        .unwrap_or(path)
        .display()
        .to_string();
    if cfg!(windows) {
        text.replace('\\', "/")
    } else {
        text
    }
}

/// The target of `--target`, or the host's.
pub fn target(given: Option<&str>) -> Result<Target> {
    let host;
    let triple = match given {
        Some(triple) => triple,
        None => {
            host = host_triple()?;
            &host
        }
    };
    Target::from_triple(triple).ok_or_else(|| {
        Error::new(format!("`{triple}` is not a target that gpustub knows"))
            .help(format!("stubs can be made for: {}", SUPPORTED.join("; ")))
    })
}

/// The triple that rustc builds for by itself.
pub fn host_triple() -> Result<String> {
    let rustc = variable("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
    let help = "install Rust, or name the target with `--target`";
    let output = Command::new(&rustc).arg("-vV").output().map_err(|e| {
        Error::new(format!("could not run `{} -vV`: {e}", rustc.display())).help(help)
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| Error::new(format!("`{} -vV` names no host", rustc.display())).help(help))
}

fn no_such_package(name: &str, members: &[&Package]) -> Error {
    let names = members.iter().map(|package| package.name.as_str());
    let error = Error::new(format!("no member of this workspace is called `{name}`"));
    match nearest(name, names.clone()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help(format!("members: {}", names.collect::<Vec<_>>().join(", "))),
    }
}

/// What to do where there is no package.
pub const NO_PACKAGE: &str = "run this inside a package, or name one with `--manifest-path`";

/// Cargo's own words, without its `error:`.
fn from_cargo(error: cargo_metadata::Error) -> Error {
    match error {
        cargo_metadata::Error::CargoMetadata { stderr } => {
            // Warnings of cargo may stand before it.
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
        other => Error::new(format!("could not run `cargo metadata`: {other}")),
    }
}
