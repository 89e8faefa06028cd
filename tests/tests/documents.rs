//! Documents for contributors: the glossary.

use std::fs;

use gpustub_tests::{Result, repository};

fn read(path: &str) -> Result<String> {
    let text = fs::read_to_string(repository().join(path));
    Ok(text.map_err(|e| format!("{path}: {e}"))?)
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
