//! Issue forms and packages are as GitHub, docs.rs and the registry expect them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use gpustub_tests::{Result, repository};

/// Value of a small part of YAML: block mappings and sequences of plain scalars.
#[derive(Debug, PartialEq)]
enum Yaml {
    Scalar(String),
    List(Vec<Yaml>),
    Map(BTreeMap<String, Yaml>),
}

impl Yaml {
    /// Reads a document. Anything that YAML could read in another way is an error.
    fn parse(text: &str) -> Result<Self> {
        let mut lines = Vec::new();
        for line in text.lines() {
            let content = line.trim_start_matches(' ');
            // An item of a list is a line of its own.
            let mut indent = line.len() - content.len();
            let mut rest = content;
            while let Some(item) = rest.strip_prefix("- ") {
                lines.push((indent, "-"));
                indent += 2;
                rest = item;
            }
            lines.push((indent, rest));
        }
        let mut lines = &lines[..];
        let value = Self::block(&mut lines, 0)?;
        match lines.first() {
            None => Ok(value),
            Some((_, line)) => Err(format!("wrong indentation: {line:?}").into()),
        }
    }

    fn block(lines: &mut &[(usize, &str)], indent: usize) -> Result<Self> {
        let mut list = Vec::new();
        let mut map = BTreeMap::new();
        while let [(at, line), rest @ ..] = *lines {
            if *at != indent {
                break;
            }
            *lines = rest;
            if *line == "-" {
                list.push(Self::block(lines, indent + 2)?);
                continue;
            }
            let (key, value) = line.split_once(':').ok_or(format!("no key: {line:?}"))?;
            let value = match value.strip_prefix(' ') {
                Some(value) => Self::scalar(value)?,
                None if value.is_empty() => Self::block(lines, indent + 2)?,
                None => return Err(format!("no space after the key: {line:?}").into()),
            };
            if map.insert(key.to_owned(), value).is_some() {
                return Err(format!("duplicate key {key}").into());
            }
        }
        match (list.is_empty(), map.is_empty()) {
            (false, true) => Ok(Self::List(list)),
            (true, false) => Ok(Self::Map(map)),
            _ => Err(format!("neither a list nor a map, before {:?}", lines.first()).into()),
        }
    }

    fn scalar(text: &str) -> Result<Self> {
        let special = text.starts_with(|c: char| "!&*-?[]{}|>@`\"'%#, \t".contains(c));
        if special || text.contains(": ") || text.contains(" #") || text.ends_with([':', ' ']) {
            return Err(format!("no plain scalar: {text:?}").into());
        }
        Ok(Self::Scalar(text.to_owned()))
    }

    fn get(&self, key: &str) -> Result<&Self> {
        let found = match self {
            Self::Map(map) => map.get(key),
            _ => None,
        };
        Ok(found.ok_or(format!("no `{key}` in {self:?}"))?)
    }

    fn text(&self, key: &str) -> Result<&str> {
        match self.get(key)? {
            Self::Scalar(text) => Ok(text),
            other => Err(format!("`{key}` is {other:?}").into()),
        }
    }

    fn list(&self, key: &str) -> Result<&[Self]> {
        match self.get(key)? {
            Self::List(list) => Ok(list),
            other => Err(format!("`{key}` is {other:?}").into()),
        }
    }
}

/// Keys and types are those of GitHub's documentation, "Syntax for GitHub's form schema".
fn form(form: &Yaml) -> Result<()> {
    form.text("name")?;
    form.text("description")?;
    let mut ids = BTreeSet::new();
    let mut asks_doctor = false;
    for part in form.list("body")? {
        let kind = part.text("type")?;
        assert!(["input", "textarea"].contains(&kind), "{kind}");
        let id = part.text("id")?;
        let is_id = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        assert!(id.chars().all(is_id) && ids.insert(id), "{id}");
        let label = part.get("attributes")?.text("label")?;
        asks_doctor |= label.contains("`cargo gpustub doctor --message-format json`");
        let required = part.get("validations")?.text("required")?;
        assert!(["true", "false"].contains(&required), "{required}");
    }
    assert!(asks_doctor, "no part asks for the output of doctor");
    Ok(())
}

#[test]
fn issue_forms_are_valid() -> Result<()> {
    let mut forms = 0;
    for entry in fs::read_dir(repository().join(".github/ISSUE_TEMPLATE"))? {
        let path = entry?.path();
        let failed = |e: String| format!("{}: {e}", path.display());
        let yaml = Yaml::parse(&fs::read_to_string(&path)?).map_err(|e| failed(e.0))?;
        if path.ends_with("config.yml") {
            yaml.text("blank_issues_enabled")?;
            for link in yaml.list("contact_links")? {
                let (_, url, _) = (link.text("name")?, link.text("url")?, link.text("about")?);
                assert!(
                    url.starts_with(&format!("{}/", url_of_repository()?)),
                    "{url}"
                );
            }
            continue;
        }
        form(&yaml).map_err(|e| failed(e.0))?;
        forms += 1;
    }
    assert!(forms >= 3, "{forms} forms");
    Ok(())
}

#[test]
fn yaml_is_read_or_refused() -> Result<()> {
    let text = "a: b\nlist:\n  - x: 1\n    y: 2\n  - x: 3\n";
    let yaml = Yaml::parse(text)?;
    assert_eq!(yaml.text("a")?, "b");
    assert_eq!(yaml.list("list")?[0].text("y")?, "2");
    assert_eq!(yaml.list("list")?.len(), 2);
    for wrong in [
        "a",
        "a:b",
        "a: b\n   c: d",
        "a: b\na: c",
        "a: 'b'",
        "a: b: c",
        "a: b #c",
        "a:",
    ] {
        assert!(Yaml::parse(wrong).is_err(), "{wrong}");
    }
    Ok(())
}

fn url_of_repository() -> Result<String> {
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(repository().join("Cargo.toml"))?)?;
    let url = &manifest["workspace"]["package"]["repository"];
    Ok(url.as_str().ok_or("a URL")?.to_owned())
}

/// Suites of the tree: package, name, and whether it has ignored and heavy tests.
fn suites() -> Result<BTreeSet<[String; 3]>> {
    let root = repository();
    let mut packages = Vec::new();
    for parent in ["", "crates"] {
        for entry in fs::read_dir(root.join(parent))? {
            let path = entry?.path();
            let is_package = path.join("tests").is_dir() && !path.ends_with("rpc");
            packages.extend(Some(path).filter(|_| is_package));
        }
    }
    let mut suites = BTreeSet::new();
    for package in packages {
        let manifest = fs::read_to_string(package.join("Cargo.toml"))?;
        let manifest: toml::Table = toml::from_str(&manifest)?;
        let name = manifest["package"]["name"].as_str().ok_or("a name")?;
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
    assert!(suites.len() > 70);
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
