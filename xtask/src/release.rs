//! `cargo xtask release`: what a release needs, checked, and its packages published in order.
//!
//! `RELEASING.md` has the steps of a release; this task runs those that a machine can.

use std::path::Path;
use std::process::Command;

use crate::repository::{read, repository};

/// A workspace of the repository.
struct Workspace {
    /// Directory of its root manifest.
    directory: &'static str,
    /// Packages that a dry run cannot verify: they depend on packages of the other workspace, by their published version.
    dependent: &'static [&'static str],
}

/// In the order in which they are published.
const WORKSPACES: [Workspace; 2] = [
    Workspace {
        directory: ".",
        dependent: &[],
    },
    Workspace {
        directory: "rpc",
        dependent: &["gpurpc-loader"],
    },
];

/// Runs the task.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let is_dry = match arguments {
        [] => false,
        [option] if option == "--dry-run" => true,
        _ => return Err("usage: cargo xtask release [--dry-run]".to_owned()),
    };
    let root = repository();
    let version = version(&root)?;
    let faults = faults(&root, &version, is_dry)?;
    for fault in &faults {
        eprintln!("error: {fault}");
    }
    if !faults.is_empty() {
        return Ok(false);
    }
    // Always another directory: cargo verifies a package with unpacked and compiled dependencies of earlier runs, if their
    // version and the directory are the same.
    let target = root.join("target");
    let target = std::fs::create_dir_all(&target).and_then(|()| tempfile::tempdir_in(&target));
    let target = target.map_err(|e| format!("target: {e}"))?;
    for workspace in &WORKSPACES {
        let directory = root.join(workspace.directory);
        publish(&directory, workspace, target.path(), is_dry)?;
    }
    if is_dry {
        println!("release {version}: nothing was published");
    } else {
        git(
            &root,
            &[
                "tag",
                "--annotate",
                &format!("v{version}"),
                "--message",
                &version,
            ],
        )?;
        println!("release {version}: `git push origin v{version}` builds binaries and wheels");
    }
    Ok(true)
}

/// Reasons against a release of the tree as it is.
fn faults(root: &Path, version: &str, is_dry: bool) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    // cargo's own check has no part outside of packages.
    if !is_dry && !git(root, &["status", "--porcelain"])?.is_empty() {
        faults.push("the working tree has changes: commit them".to_owned());
    }
    if !git(root, &["tag", "--list", &format!("v{version}")])?.is_empty() {
        faults.push(format!(
            "the tag v{version} exists: raise `version` in Cargo.toml"
        ));
    }
    faults.extend(other_versions(root, version)?);
    Ok(faults)
}

/// Files that name another version.
fn other_versions(root: &Path, version: &str) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for workspace in &WORKSPACES {
        let file = Path::new(workspace.directory).join("CHANGELOG.md");
        let text = read(&root.join(&file))?;
        let newest = text.lines().find_map(|line| line.strip_prefix("## "));
        let newest = newest.and_then(|title| title.split_whitespace().next());
        let declared = self::version(&root.join(workspace.directory))?;
        if newest != Some(&declared) {
            let newest = newest.unwrap_or("none");
            faults.push(format!(
                "{}: the newest section is {newest}, and the version is {declared}",
                file.display()
            ));
        }
    }
    for (file, text) in [
        ("pyproject.toml", format!("version = \"{version}\"")),
        ("action.yml", format!("default: {version}")),
    ] {
        if !read(&root.join(file))?.contains(&text) {
            faults.push(format!("{file} has another version: `{text}`"));
        }
    }
    Ok(faults)
}

/// Publishes the packages of a workspace, each after those that it depends on.
fn publish(
    directory: &Path,
    workspace: &Workspace,
    target: &Path,
    is_dry: bool,
) -> Result<(), String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(directory)
        .args(["publish", "--workspace", "--locked", "--target-dir"])
        .arg(target);
    if is_dry {
        cargo.args(["--dry-run", "--allow-dirty"]);
        for package in workspace.dependent {
            println!(
                "{package}: not verified before the packages of the other workspace are published"
            );
            cargo.args(["--exclude", package]);
        }
    }
    let status = cargo.status().map_err(|e| format!("cargo: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!(
            "cargo publish in {}: {status}",
            directory.display()
        ))
    }
}

/// Version of a workspace.
fn version(directory: &Path) -> Result<String, String> {
    let file = directory.join("Cargo.toml");
    let manifest: toml::Table =
        toml::from_str(&read(&file)?).map_err(|e| format!("{}: {e}", file.display()))?;
    let package = manifest
        .get("workspace")
        .and_then(|table| table.get("package"));
    let version = package.and_then(|table| table.get("version")?.as_str());
    version
        .map(str::to_owned)
        .ok_or_else(|| format!("{}: no version", file.display()))
}

/// Output of git.
fn git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .current_dir(directory)
        .args(arguments)
        .output()
        .map_err(|e| format!("git: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!(
            "git {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_name_the_version() {
        let root = repository();
        let version = version(&root).unwrap();
        assert_eq!(
            other_versions(&root, &version).unwrap(),
            Vec::<String>::new()
        );
        let faults = other_versions(&root, "0.0.0").unwrap();
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
