//! Runs `cargo tree`. Unlike `cargo metadata`, which merges the features of all members, it
//! resolves chosen packages with given features, as cargo builds them.

use crate::error::{Error, Result};
use cargo_metadata::{DependencyKind, Package};

use crate::cargo;
use crate::selection::{Selection, add_features};
use crate::workspace::Workspace;

/// Enabled features, in addition to those that dependents require.
#[derive(Debug, Clone, Copy)]
pub enum Features<'a> {
    /// All features of the packages.
    All,
    /// No features, without `default`.
    None,
    /// One feature.
    Only(&'a str),
    /// Features of the command line.
    CommandLine(&'a clap_cargo::Features),
}

/// Query of a dependency tree.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Workspace.
    pub workspace: &'a Workspace,
    /// `--locked` and `--offline`.
    pub options: &'a Selection,
    /// Selected members.
    pub packages: &'a [&'a Package],
    /// Value of `--edges`.
    pub edges: &'a str,
    /// Enabled features.
    pub features: Features<'a>,
    /// Target; `None`: the host.
    pub target: Option<&'a str>,
}

impl Query<'_> {
    /// Output of cargo. Its own message is the error.
    pub fn text(&self) -> Result<String> {
        let mut command = cargo::command("tree", &self.workspace.root().join("Cargo.toml"));
        command
            .args(["--edges", self.edges, "--charset", "ascii"])
            .args(["--color", "never", "--format", "{p}\t{f}"]);
        for package in self.packages {
            command.args(["--package", &spec(package)]);
        }
        match self.features {
            Features::All => drop(command.arg("--all-features")),
            Features::None => drop(command.arg("--no-default-features")),
            Features::Only(name) => {
                command.args(["--no-default-features", "--features", name]);
            }
            Features::CommandLine(features) => add_features(features, &mut command),
        }
        if let Some(target) = self.target {
            command.args(["--target", target]);
        }
        command.args(self.options.cargo_arguments());
        let output = cargo::output(&mut command)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let text = text.trim();
        Err(Error::new(text.strip_prefix("error: ").unwrap_or(text)))
    }
}

/// Package id specification of a package for cargo.
fn spec(package: &Package) -> String {
    format!("{}@{}", package.name, package.version)
}

/// A package in a tree.
#[derive(Debug, PartialEq, Eq)]
pub struct TreePackage<'a> {
    /// Number of packages above it.
    pub depth: usize,
    /// Kind of the parent's dependency on it.
    pub kind: DependencyKind,
    /// Name.
    pub name: &'a str,
    /// Version.
    pub version: &'a str,
    /// Source, as cargo prints it; empty: the registry.
    pub source: &'a str,
    /// Enabled features.
    pub features: Vec<&'a str>,
}

impl TreePackage<'_> {
    /// Name, version and source, which identify the package.
    pub fn id(&self) -> [&str; 3] {
        [self.name, self.version, self.source]
    }
}

/// Packages of a tree. Dependencies of a package are printed at its first occurrence.
pub fn packages(text: &str) -> Vec<TreePackage<'_>> {
    let mut packages = Vec::new();
    // Kinds of the dependencies below each package on the path.
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
        let Some((name, version, source)) = split_package(package) else {
            continue;
        };
        let features = features.trim_end_matches(" (*)").split(',');
        packages.push(TreePackage {
            depth,
            kind: kinds.get(depth).copied().unwrap_or_default(),
            name,
            version,
            source,
            features: features.filter(|name| !name.is_empty()).collect(),
        });
        kinds.push(DependencyKind::Normal);
    }
    packages
}

/// Name, version and source in `name v1.2.3 (/directory)`.
fn split_package(package: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = package.split_once(' ')?;
    let (version, source) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((name, version.strip_prefix('v')?, source))
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
        let packages = packages(text);
        let lines: Vec<String> = packages
            .iter()
            .map(|package| {
                let TreePackage {
                    depth, kind, name, ..
                } = package;
                format!("{depth} {kind} {name} {}", package.features.join("+"))
            })
            .collect();
        assert_eq!(
            lines,
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
        let app = &packages[0];
        assert_eq!((app.version, app.source), ("0.1.0", "(/x y/app)"));
        assert_eq!(packages[1].version, "1.2.3-rc.1+x");
    }
}
