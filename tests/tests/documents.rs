//! Documents for contributors: ARCHITECTURE.md, the invariants, the glossary.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::{Result, repository};
use serde::Deserialize;

fn read(path: &str) -> Result<String> {
    let text = fs::read_to_string(repository().join(path));
    Ok(text.map_err(|e| format!("{path}: {e}"))?)
}

/// Paths of all files of the tree.
fn tracked() -> Result<Vec<String>> {
    let mut command = Command::new("git");
    command.current_dir(repository());
    command.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listed = succeed(&mut command)?.stdout;
    Ok(listed.lines().map(str::to_owned).collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invariants {
    invariant: Vec<Invariant>,
}

/// A row of `invariants.toml`, whose comment describes the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invariant {
    id: String,
    area: String,
    claim: String,
    tests: Vec<String>,
    note: Option<String>,
}

/// Tests that rows of `invariants.toml` may name.
struct Tests {
    paths: Vec<String>,
    traps: toml::Table,
    /// Source of the tasks of `cargo xtask`.
    tasks: String,
}

impl Tests {
    fn read() -> Result<Self> {
        Ok(Self {
            paths: tracked()?,
            traps: toml::from_str(&read("tests/traps/cases.toml")?)?,
            tasks: read("xtask/src/main.rs")?,
        })
    }

    fn contains(&self, test: &str) -> bool {
        let (stem, is_prefix) = match test.strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (test, false),
        };
        if let Some(trap) = stem.strip_prefix("trap ") {
            let matches = |name: &String| name == trap || is_prefix && name.starts_with(trap);
            return self.traps.keys().any(matches);
        }
        if let Some(task) = stem.strip_prefix("cargo xtask ") {
            let name = task.split(' ').next().unwrap_or_default();
            return self.tasks.contains(&format!("name: \"{name}\","));
        }
        let Some((file, function)) = stem.split_once("::") else {
            let directory = format!("{stem}/");
            let matches = |path: &String| path == stem || path.starts_with(&directory);
            return !is_prefix && self.paths.iter().any(matches);
        };
        if !self.paths.iter().any(|path| path == file) {
            return false;
        }
        let end = if is_prefix { "" } else { "(" };
        let function = format!("fn {function}{end}");
        let source = read(file).unwrap_or_default();
        // The next function after the attribute is the test.
        let mut is_test = false;
        source.lines().map(str::trim_start).any(|line| {
            is_test |= line == "#[test]";
            let is_function = line.starts_with("fn ");
            let found = is_test && line.starts_with(&function);
            is_test &= !is_function;
            found
        })
    }
}

/// Rows of `invariants.toml` have unique ids, areas that ARCHITECTURE.md has, and tests that exist.
#[test]
fn invariants_name_tests_that_exist() -> Result<()> {
    let Invariants { invariant: rows } = toml::from_str(&read("tests/invariants.toml")?)?;
    let all = Tests::read()?;
    let architecture = read("ARCHITECTURE.md")?.to_lowercase();
    let mut ids = BTreeSet::new();
    let mut areas: Vec<&str> = Vec::new();
    let mut wrong = Vec::new();
    for row in &rows {
        let Invariant { id, area, .. } = row;
        let mut require = |holds: bool, message: &str| {
            if !holds {
                wrong.push(format!("{id}: {message}"));
            }
        };
        let is_kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        require(id.chars().all(is_kebab), "id is not kebab-case");
        require(ids.insert(id), "duplicate id");
        if areas.last() != Some(&area.as_str()) {
            require(!areas.contains(&area.as_str()), "area is in two blocks");
            let paragraph = format!("\n\n**{area}.** ");
            require(
                architecture.contains(&paragraph),
                "area is not in ARCHITECTURE.md",
            );
            areas.push(area);
        }
        require(row.claim.ends_with('.'), "claim is not a sentence");
        require(row.note.as_deref() != Some(""), "empty note");
        require(!row.tests.is_empty(), "no test");
        for test in &row.tests {
            require(all.contains(test), &format!("`{test}` does not exist"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows.len() > 50, "{} rows were read", rows.len());
    Ok(())
}

#[test]
fn missing_tests_are_found() -> Result<()> {
    let all = Tests::read()?;
    for test in [
        "trap arguments/missing",
        "trap missing*",
        "cargo xtask missing",
        "tests/tests/missing.rs",
        "tests/tests/docu",
        "tests/tests/documents.rs::missing_tests",
        "tests/tests/documents.rs::tracked",
        "tests/tests/missing.rs::missing_tests_are_found",
    ] {
        assert!(!all.contains(test), "{test}");
    }
    for test in [
        "trap arguments",
        "trap vectors/*",
        "cargo xtask reference",
        "tests/tests",
        "tests/tests/documents.rs::missing_tests*",
        "tests/tests/documents.rs::missing_tests_are_found",
    ] {
        assert!(all.contains(test), "{test}");
    }
    Ok(())
}

/// Files and directories that a page names in code spans and links: `src/main.rs`, `docs/`. Names with
/// placeholders are left out.
fn paths(page: &str) -> Vec<&str> {
    let spans = page
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let links = page.split("](").skip(1);
    let links = links.filter_map(|rest| rest.split([')', '#']).next());
    let ends = [
        "/", ".rs", ".c", ".h", ".S", ".toml", ".hbs", ".md", ".py", ".trycmd",
    ];
    let is_path = |name: &&str| {
        ends.iter().any(|end| name.ends_with(end)) && !name.contains(['<', '*', '{', ' ', '$'])
    };
    spans.chain(links).filter(is_path).collect()
}

/// ARCHITECTURE.md is short, and its paths exist, as do those of the pages below `docs/design`. A path may be
/// relative to any directory.
#[test]
fn architecture_names_paths_that_exist() -> Result<()> {
    let architecture = read("ARCHITECTURE.md")?;
    let lines = architecture.lines().count();
    assert!(lines <= 150, "ARCHITECTURE.md has {lines} lines");
    assert!(
        paths(&architecture).len() > 100,
        "{:?}",
        paths(&architecture)
    );
    let tracked = tracked()?;
    let mut pages: Vec<&str> = tracked.iter().map(String::as_str).collect();
    pages.retain(|path| path.starts_with("docs/design/") || *path == "ARCHITECTURE.md");
    // Users' files, and a build directory.
    let of_users = ["GpuStub.toml", "Cargo.toml", "build.rs"];
    let mut wrong = Vec::new();
    for page in pages {
        let text = read(page)?;
        for path in paths(&text) {
            let end = format!("/{}", path.trim_start_matches("../"));
            let inner = |file: &String| {
                let file = format!("/{file}");
                file.ends_with(&end) || end.ends_with('/') && file.contains(&end)
            };
            if !of_users.contains(&path) && !tracked.iter().any(inner) {
                wrong.push(format!("{page}: {path}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The glossary has at most 60 terms, sorted, each with its source. Words of ours say why they exist.
#[test]
fn glossary_is_sorted_and_has_sources() -> Result<()> {
    let page = read("docs/glossary.md")?.replace("\n  ", " ");
    let mut terms: Vec<String> = Vec::new();
    let lines = page.lines().skip_while(|line| !line.starts_with("- "));
    for line in lines.take_while(|line| !line.is_empty()) {
        let entry = line
            .strip_prefix("- **")
            .and_then(|rest| rest.split_once("**: "));
        let (term, text) = entry.ok_or_else(|| format!("not an entry: {line}"))?;
        let (text, source) = text
            .split_once(" Source: ")
            .ok_or_else(|| format!("{term}: no source"))?;
        assert!(text.ends_with('.') && source.ends_with('.'), "{line}");
        let is_ours = source == "gpustub.";
        assert_eq!(is_ours, text.contains(" No existing word fits: "), "{term}");
        terms.push(term.to_lowercase());
    }
    assert!((40..=60).contains(&terms.len()), "{} terms", terms.len());
    assert!(terms.is_sorted_by(|a, b| a < b), "{terms:?}");
    Ok(())
}
