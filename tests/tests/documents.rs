//! Documents for contributors: ARCHITECTURE.md, the glossary.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::succeed;
use gpustub_tests::{Result, repository};

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

/// The graph of `docs/device-link.md`, in Graphviz' language.
#[test]
fn graph_of_the_page_is_printed_for_graphviz() -> Result<()> {
    let graph = "B*:shared; A*:shared -> B; C*:shared -> B; exe:bin -> A,C";
    assert!(read("docs/device-link.md")?.contains(graph));
    let mut plan = gpustub(&["plan", "--graph", "-", "--format", "dot"])?;
    let mut plan = plan.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    plan.stdin
        .take()
        .ok_or("no input")?
        .write_all(graph.as_bytes())?;
    let printed = String::from_utf8(plan.wait_with_output()?.stdout)?;
    assert_eq!(printed, read("tests/cases/graph.dot")?);
    Ok(())
}
