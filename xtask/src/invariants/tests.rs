use std::collections::BTreeSet;

use super::*;
use crate::TASKS;
use crate::repository::tracked;

fn text(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

/// Tests that rows of `invariants.toml` may name.
struct Tests {
    paths: Vec<String>,
    traps: toml::Table,
}

impl Tests {
    fn read() -> Self {
        Self {
            paths: tracked(&[]).unwrap(),
            traps: toml::from_str(&text("tests/traps/cases.toml")).unwrap(),
        }
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
            return TASKS.iter().any(|task| task.name == name);
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
        let source = text(file);
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
fn named_tests_exist() {
    let rows = read().unwrap();
    let all = Tests::read();
    let architecture = text("ARCHITECTURE.md").to_lowercase();
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
}

#[test]
fn missing_tests_are_found() {
    let all = Tests::read();
    for test in [
        "trap arguments/missing",
        "trap missing-trap*",
        "cargo xtask missing",
        "tests/tests/missing.rs",
        "tests/tests/docu",
        "xtask/src/invariants/tests.rs::missing_tests",
        "xtask/src/invariants/tests.rs::text",
        "tests/tests/missing.rs::missing_tests_are_found",
    ] {
        assert!(!all.contains(test), "{test}");
    }
    for test in [
        "trap arguments",
        "trap vectors/*",
        "cargo xtask reference",
        "tests/tests",
        "xtask/src/invariants/tests.rs::missing_tests*",
        "xtask/src/invariants/tests.rs::missing_tests_are_found",
    ] {
        assert!(all.contains(test), "{test}");
    }
}

#[test]
fn page_is_current() {
    let path = repository().join("docs").join(PAGE);
    let found = fs::read_to_string(path).unwrap_or_default();
    assert!(found == page().unwrap(), "run `cargo xtask reference`");
}

#[test]
fn rows_are_grouped_by_area() {
    let row = |id: &str, area: &str, note: Option<&str>| Invariant {
        id: id.to_owned(),
        area: area.to_owned(),
        claim: format!("Claim of {id}."),
        tests: vec!["a.rs::b".to_owned(), "trap c".to_owned()],
        note: note.map(str::to_owned),
    };
    let rows = [
        row("one", "rpc", None),
        row("two", "rpc", Some("slow")),
        row("three", "device links", None),
    ];
    let page = render(&rows);
    let body = page.split_once("\n## ").map_or("", |(_, body)| body);
    let tests = "- `a.rs::b`\n- `trap c`";
    assert_eq!(
        body,
        format!(
            "RPC\n\n### one\n\nClaim of one.\n\nTests:\n\n{tests}\n\
             \n### two\n\nClaim of two.\n\nTests (slow):\n\n{tests}\n\
             \n## Device links\n\n### three\n\nClaim of three.\n\nTests:\n\n{tests}\n"
        )
    );
}
