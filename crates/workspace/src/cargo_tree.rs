//! What `cargo tree` says: unlike `cargo metadata`, which takes the features of all members together,
//! it is of chosen packages with given features, as cargo builds them.

use std::process::{Command, Output};

use cargo_metadata::{DependencyKind, Package};
use gpustub_report::error::{Error, Result};

use crate::environment::variable;
use crate::selection::{Selection, add_features};
use crate::workspace::Workspace;

/// Which features are on, besides those that dependents ask for.
#[derive(Debug, Clone, Copy)]
pub enum Features<'a> {
    /// All of the packages.
    All,
    /// None of them, nor `default`.
    None,
    /// One of them.
    Just(&'a str),
    /// Those of the command line.
    Given(&'a clap_cargo::Features),
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The workspace.
    pub workspace: &'a Workspace,
    /// `--locked` and `--offline`.
    pub options: &'a Selection,
    /// Which members.
    pub packages: &'a [&'a Package],
    /// As in `--edges`.
    pub edges: &'a str,
    /// Which features.
    pub features: Features<'a>,
    /// For which target; `None`: the host.
    pub target: Option<&'a str>,
    /// What is not looked into, as `name@version`.
    pub pruned: &'a [String],
}

impl Query<'_> {
    /// Runs cargo. It may not have succeeded.
    pub fn run(&self) -> Result<Output> {
        let cargo = variable("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .arg("tree")
            .arg("--manifest-path")
            .arg(self.workspace.root().join("Cargo.toml"))
            .args(["--edges", self.edges, "--charset", "ascii"])
            .args(["--color", "never", "--format", "{p}\t{f}"]);
        for package in self.packages {
            command.args(["--package", &spec(package)]);
        }
        for spec in self.pruned {
            command.args(["--prune", spec]);
        }
        match self.features {
            Features::All => drop(command.arg("--all-features")),
            Features::None => drop(command.arg("--no-default-features")),
            Features::Just(name) => {
                command.args(["--no-default-features", "--features", name]);
            }
            Features::Given(given) => add_features(given, &mut command),
        }
        if let Some(target) = self.target {
            command.args(["--target", target]);
        }
        command.args(self.options.cargo_arguments());
        command
            .output()
            .map_err(|e| Error::new(format!("could not run `cargo tree`: {e}")))
    }

    /// What cargo printed of such a tree, which it must have.
    pub fn text(&self) -> Result<String> {
        let output = self.run()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(refusal(&output)),
        }
    }
}

/// Cargo's own words, without its `error:`.
pub fn refusal(output: &Output) -> Error {
    let text = String::from_utf8_lossy(&output.stderr);
    let text = text.trim();
    Error::new(text.strip_prefix("error: ").unwrap_or(text))
}

/// How cargo is told of one package.
pub fn spec(package: &Package) -> String {
    format!("{}@{}", package.name, package.version)
}

/// A package in a tree.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// How many others it is below.
    pub depth: usize,
    /// How the one above depends on it.
    pub kind: DependencyKind,
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Where it is from, as cargo shows it; empty: the registry.
    pub place: &'a str,
    /// Its features that are on.
    pub features: Vec<&'a str>,
}

/// The packages of a tree. What is below one is printed where it comes first.
pub fn lines(text: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    // Of what is below each package on the way.
    let mut kinds = vec![DependencyKind::Normal];
    for line in text.lines() {
        let mut rest = line;
        let mut depth = 0;
        while let Some(after) = ["|   ", "    ", "|-- ", "`-- "]
            .iter()
            .find_map(|part| rest.strip_prefix(part))
        {
            rest = after;
            depth += 1;
        }
        let kind = match rest {
            "[build-dependencies]" => Some(DependencyKind::Build),
            "[dev-dependencies]" => Some(DependencyKind::Development),
            _ => None,
        };
        kinds.truncate(depth + 1);
        if let Some(kind) = kind {
            kinds.push(kind);
            continue;
        }
        let Some((package, features)) = rest.split_once('\t') else {
            continue;
        };
        let Some((name, version, place)) = parts(package) else {
            continue;
        };
        let features = features.trim_end_matches(" (*)").split(',');
        found.push(Line {
            depth,
            kind: kinds.get(depth).copied().unwrap_or_default(),
            name,
            version,
            place,
            features: features.filter(|name| !name.is_empty()).collect(),
        });
        kinds.push(DependencyKind::Normal);
    }
    found
}

/// `name v1.2.3 (/folder)`.
fn parts(package: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = package.split_once(' ')?;
    let (version, place) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((name, version.strip_prefix('v')?, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_read_with_kinds_and_features() {
        let text = "app v0.1.0 (/x y/app)\tdefault,gpu\n|-- cc v1.2.3-rc.1+x\t\n\
                    |   [build-dependencies]\n|   `-- a v1.0.0 (proc-macro)\tx\n\
                    `-- b v1.0.0 (/b)\tp,q (*)\n[build-dependencies]\n`-- cc v1.2.3-rc.1+x\t\n\
                    [dev-dependencies]\n`-- d v2.0.0\t\n    `-- e v2.0.0\t\n\ntool v0.1.0 (/t)\t\n\
                    `-- b v1.0.0 (/b)\tp,q (*)\nno package\n";
        let found: Vec<String> = lines(text)
            .iter()
            .map(|line| {
                let Line {
                    depth, kind, name, ..
                } = line;
                format!("{depth} {kind} {name} {}", line.features.join("+"))
            })
            .collect();
        assert_eq!(
            found,
            [
                "0 normal app default+gpu",
                "1 normal cc ",
                "2 build a x",
                "1 normal b p+q",
                "1 build cc ",
                "1 dev d ",
                "2 normal e ",
                "0 normal tool ",
                "1 normal b p+q",
            ]
        );
        let first = &lines(text)[0];
        assert_eq!((first.version, first.place), ("0.1.0", "(/x y/app)"));
        assert_eq!(lines(text)[1].version, "1.2.3-rc.1+x");
    }
}
