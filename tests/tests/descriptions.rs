//! Test suites and published packages are described.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use gpustub_tests::{Result, repository};

/// Suites of the tree: package, name, and whether it has ignored and heavy tests.
fn suites() -> Result<BTreeSet<[String; 3]>> {
    let root = repository();
    let mut packages = Vec::new();
    for parent in ["", "crates"] {
        for entry in fs::read_dir(root.join(parent))? {
            packages.extend(Some(entry?.path()).filter(|path| path.join("tests").is_dir()));
        }
    }
    let mut suites = BTreeSet::new();
    for package in packages {
        let manifest = fs::read_to_string(package.join("Cargo.toml"))?;
        let manifest: toml::Table = toml::from_str(&manifest)?;
        // `rpc/` is a workspace.
        let Some(name) = manifest
            .get("package")
            .and_then(|package| package["name"].as_str())
        else {
            continue;
        };
        for entry in fs::read_dir(package.join("tests"))? {
            let path = entry?.path();
            let mut text = String::new();
            if path.join("main.rs").is_file() {
                for file in fs::read_dir(&path)? {
                    let file = file?.path();
                    if file.is_file() {
                        text += &String::from_utf8_lossy(&fs::read(file)?);
                    }
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text = fs::read_to_string(&path)?;
            } else {
                continue;
            }
            let suite = path.file_stem().unwrap_or_default().to_string_lossy();
            let real = text.contains(concat!("#[", "ignore"))
                || text.contains(concat!("with_", "ignored"));
            let marks = [
                ("real", real),
                ("heavy", text.contains(concat!("heavy", "_"))),
            ];
            let marks: Vec<&str> = (marks.iter().filter(|mark| mark.1))
                .map(|mark| mark.0)
                .collect();
            suites.insert([name.to_owned(), suite.into_owned(), marks.join(", ")]);
        }
    }
    Ok(suites)
}

#[test]
fn the_table_of_suites_is_complete() -> Result<()> {
    let page = fs::read_to_string(repository().join("tests/README.md"))?;
    let (_, table) = page
        .split_once("|---|---|---|---|\n")
        .ok_or("no table of suites")?;
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let mut listed = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, package, suite, proves, also, _] = cells[..] else {
            return Err(format!("not four cells: {row}").into());
        };
        assert!(!proves.is_empty(), "{row}");
        listed.insert([package, suite, also].map(str::to_owned));
    }
    let suites = suites()?;
    let differ: Vec<_> = listed.symmetric_difference(&suites).collect();
    assert!(differ.is_empty(), "tests/README.md: {differ:?}");
    assert!(suites.len() > 50);
    Ok(())
}

/// Manifest of each published package of the workspace, with its directory.
fn published() -> Result<Vec<(PathBuf, toml::Table)>> {
    let root = repository();
    let workspace: toml::Table = toml::from_str(&fs::read_to_string(root.join("Cargo.toml"))?)?;
    let members = workspace["workspace"]["members"].as_array();
    let mut packages = Vec::new();
    for member in members.into_iter().flatten() {
        let directory = root.join(member.as_str().ok_or("a path")?);
        let text = fs::read_to_string(directory.join("Cargo.toml"))?;
        let manifest: toml::Table = toml::from_str(&text)?;
        if manifest["package"].get("publish").is_none() {
            packages.push((directory, manifest));
        }
    }
    Ok(packages)
}

#[test]
fn published_packages_are_described() -> Result<()> {
    let packages = published()?;
    assert!(packages.len() >= 14, "{} packages", packages.len());
    for (directory, manifest) in packages {
        let package = &manifest["package"];
        let text = |key: &str| package.get(key).and_then(|value| value.as_str());
        let name = text("name").ok_or("a name")?;
        assert!(
            text("description").is_some_and(|text| text.len() > 20),
            "{name}: description"
        );
        let readme = text("readme").ok_or(format!("{name} has no `readme`"))?;
        let readme = fs::read_to_string(directory.join(readme))
            .map_err(|e| format!("{name}: {readme}: {e}"))?;
        assert!(readme.starts_with("# "), "{name}: README without a title");
        if manifest.get("features").is_none() {
            continue;
        }
        let docs = package
            .get("metadata")
            .and_then(|metadata| metadata.get("docs"));
        let docs = docs.and_then(|docs| docs.get("rs"));
        let docs = docs.ok_or(format!(
            "{name} has features and no `[package.metadata.docs.rs]`"
        ))?;
        assert_eq!(
            docs.get("all-features"),
            Some(&toml::Value::Boolean(true)),
            "{name}"
        );
        let arguments = docs.get("rustdoc-args").and_then(|list| list.as_array());
        let arguments: Vec<&str> = (arguments.into_iter().flatten())
            .filter_map(|argument| argument.as_str())
            .collect();
        assert_eq!(arguments, ["--cfg", "docsrs"], "{name}");
    }
    Ok(())
}
