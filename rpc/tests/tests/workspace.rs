//! Dependencies, scripts, components and pages of this workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpurpc_tests::cargo::cargo;
use gpurpc_tests::command::succeed;
use gpurpc_tests::{Result, workspace};
use serde_json::Value;

/// Packages of this project that each published package may depend on.
const ALLOWED: [(&str, &[&str]); 5] = [
    ("gpurpc", &[]),
    ("gpurpc-capi", &["gpurpc"]),
    ("gpurpc-device", &["gpurpc"]),
    ("gpurpc-llvm19", &["gpurpc"]),
    ("gpurpc-loader", &["gpurpc", "gpustub", "gpustub-build"]),
];

fn packages() -> Result<Vec<Value>> {
    let mut metadata = cargo(&workspace());
    metadata.args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let metadata: Value = serde_json::from_str(&succeed(&mut metadata)?.stdout)?;
    let packages = metadata["packages"].as_array();
    Ok(packages.ok_or("no packages")?.clone())
}

/// Dependencies of this project, without those for tests.
fn dependencies(package: &Value) -> BTreeSet<&str> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| dependency["kind"] != "dev")
        .filter_map(|dependency| dependency["name"].as_str())
        .filter(|name| name.starts_with("gpu"))
        .collect()
}

#[test]
fn only_the_loader_uses_gpustub() -> Result<()> {
    let mut expected: BTreeMap<&str, BTreeSet<&str>> = ALLOWED
        .iter()
        .map(|(name, dependencies)| (*name, dependencies.iter().copied().collect()))
        .collect();
    expected.insert("gpurpc-tests", BTreeSet::from(["gpurpc"]));
    let packages = packages()?;
    let actual: BTreeMap<&str, BTreeSet<&str>> = packages
        .iter()
        .map(|package| {
            let name = package["name"].as_str().unwrap_or_default();
            (name, dependencies(package))
        })
        .collect();
    assert_eq!(actual, expected);
    Ok(())
}

#[test]
fn every_package_follows_the_workspace() -> Result<()> {
    for package in packages()? {
        let manifest = package["manifest_path"].as_str().ok_or("no path")?;
        let text = fs::read_to_string(manifest)?;
        assert!(text.contains("[lints]\nworkspace = true"), "{manifest}");
        for field in ["description", "license", "repository", "rust_version"] {
            assert!(package[field].is_string(), "{manifest}: no {field}");
        }
    }
    Ok(())
}

#[test]
fn scripts_are_bash_and_executable() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for script in ["device-rust", "other-hosts", "run", "sanitizer"] {
        let script = workspace().join("tests").join(script);
        succeed(Command::new("bash").arg("-n").arg(&script))?;
        let mode = fs::metadata(&script)?.permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{}", script.display());
    }
    Ok(())
}

/// Components are shared with the repository's other tests: a line for the same directory is the same in both.
#[test]
fn shared_components_have_one_request() -> Result<()> {
    let rows = |directory: &Path| -> Result<BTreeMap<String, String>> {
        let mut rows = BTreeMap::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "list")
            {
                for line in fs::read_to_string(&path)?.lines() {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    if let [name, request @ ..] = &words[..]
                        && !name.starts_with('#')
                    {
                        rows.insert(name.to_string(), request.join(" "));
                    }
                }
            }
        }
        Ok(rows)
    };
    let rpc = rows(&workspace().join("tests/components"))?;
    assert!(rpc.len() > 5, "{rpc:?}");
    let repository = rows(&workspace().join("../tests/components"))?;
    for (name, request) in &rpc {
        let shared = repository.get(name).unwrap_or(request);
        assert_eq!(request, shared, "{name}");
    }
    Ok(())
}

/// Pages, without those of packages that cargo has unpacked below build directories.
fn pages() -> Result<Vec<PathBuf>> {
    let mut listed = Command::new("git");
    listed.current_dir(workspace());
    listed.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listed = succeed(listed.arg("*.md"))?.stdout;
    let pages = listed.lines().map(|line| workspace().join(line));
    Ok(pages.filter(|page| page.is_file()).collect())
}

#[test]
fn links_of_pages_have_targets() -> Result<()> {
    let pages = pages()?;
    assert!(pages.len() > 10, "{pages:?}");
    for page in pages {
        let text = fs::read_to_string(&page)?;
        let links = text.split("](").skip(1);
        for link in links.filter_map(|rest| rest.split([')', '#']).next()) {
            let is_file = !link.is_empty() && !link.contains(':');
            let target = page.with_file_name(link);
            assert!(!is_file || target.exists(), "{}: {link}", page.display());
        }
    }
    Ok(())
}

/// A path of ARCHITECTURE.md exists, from this directory or from one below it.
#[test]
fn architecture_names_paths_that_exist() -> Result<()> {
    let mut listed = Command::new("git");
    listed.current_dir(workspace());
    listed.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listed = succeed(&mut listed)?.stdout;
    let text = fs::read_to_string(workspace().join("ARCHITECTURE.md"))?;
    let spans = text.split('`').skip(1).step_by(2);
    for span in spans.filter(|span| span.contains(['/', '.']) && !span.contains(' ')) {
        let path = span.split("::").next().unwrap_or(span);
        let end = format!("/{}", path.trim_end_matches('/').trim_start_matches("../"));
        let exists = listed.lines().any(|file| {
            let file = format!("/{file}");
            file.ends_with(&end) || file.contains(&format!("{end}/"))
        });
        assert!(exists || workspace().join(path).exists(), "{span}");
    }
    Ok(())
}

#[test]
fn no_source_file_is_too_long() -> Result<()> {
    let mut listed = Command::new("git");
    listed.current_dir(workspace()).arg("ls-files").arg("--");
    let listed = succeed(listed.args(["*.rs", "*.c", "*.h"]))?.stdout;
    for file in listed.lines() {
        let path = workspace().join(file);
        let lines = fs::read_to_string(&path).map_or(0, |text| text.lines().count());
        assert!(lines <= 500, "{file}: {lines} lines");
    }
    Ok(())
}
