//! Targets of links, and links that lead nowhere.

use std::collections::BTreeMap;

use super::page::Page;

/// Directory of the pages, as links from the root name it.
pub const DOCS: &str = "docs/";

/// Table of contents.
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// Files of the repository.
pub trait Tree {
    /// Whether a path from the root is a file.
    fn is_file(&self, path: &str) -> bool;
    /// Whether a path from the root is a directory.
    fn is_directory(&self, path: &str) -> bool;
}

/// Path from the root, and anchor, of a link in the page at `path`; `None` for a URL.
pub fn resolve<'a>(path: &str, target: &'a str) -> Option<(String, Option<&'a str>)> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (relative, anchor) = match target.split_once('#') {
        Some((relative, anchor)) => (relative, Some(anchor)),
        None => (target, None),
    };
    if relative.is_empty() {
        return Some((path.to_owned(), anchor));
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some((parts.join("/"), anchor))
}

/// URL in the repository of a link out of `docs/`.
pub fn url(path: &str, target: &str, tree: &dyn Tree) -> Option<String> {
    let (file, anchor) = resolve(path, target)?;
    if file.starts_with(DOCS) {
        return None;
    }
    let kind = if tree.is_directory(&file) {
        "tree"
    } else {
        "blob"
    };
    let anchor = anchor
        .map(|anchor| format!("#{anchor}"))
        .unwrap_or_default();
    Some(format!(
        "{}/{kind}/main/{file}{anchor}",
        env!("CARGO_PKG_REPOSITORY")
    ))
}

/// Links without a file or anchor; of the book, links that would break in it, HTML, and pages outside the table of
/// contents.
pub fn faults(pages: &BTreeMap<String, Page>, tree: &dyn Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, page) in pages {
        for link in &page.links {
            let Some((file, anchor)) = resolve(path, &link.target) else {
                continue;
            };
            let fault = match (pages.get(&file), anchor) {
                (Some(target), Some(anchor)) if !target.anchors.contains(anchor) => {
                    "no such heading"
                }
                (Some(_), _) => continue,
                (None, _) if tree.is_file(&file) => continue,
                (None, _) if tree.is_directory(&file) && !is_inner(path, &file) => continue,
                (None, _) => "no such file",
            };
            faults.push(format!("{path}: {}: {fault}", link.target));
        }
        if path.starts_with(DOCS) {
            let tags = page.tags.iter();
            faults.extend(
                tags.map(|tag| {
                    format!("{path}: {tag}: no reader sees an HTML tag outside of code")
                }),
            );
            let outer = page
                .fixed_targets()
                .filter(|target| url(path, target, tree).is_some());
            faults.extend(outer.map(|target| {
                format!("{path}: {target}: write it as `[text](target)`, which becomes a URL in the book")
            }));
        }
    }
    faults.extend(unlisted(pages));
    faults
}

/// Whether a page of the book links to a path of the book, where only pages and files are.
fn is_inner(path: &str, file: &str) -> bool {
    path.starts_with(DOCS) && file.starts_with(DOCS)
}

/// Pages that the table of contents does not list exactly once.
fn unlisted(pages: &BTreeMap<String, Page>) -> Vec<String> {
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for link in pages.get(SUMMARY).into_iter().flat_map(|page| &page.links) {
        if let Some((file, _)) = resolve(SUMMARY, &link.target) {
            *listed.entry(file).or_default() += 1;
        }
    }
    let docs = pages
        .keys()
        .filter(|path| path.starts_with(DOCS) && *path != SUMMARY);
    let unlisted = docs.filter(|path| listed.get(*path) != Some(&1));
    unlisted
        .map(|path| format!("{path}: {SUMMARY} has to list it once"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture;

    impl Tree for Fixture {
        fn is_file(&self, path: &str) -> bool {
            ["docs/a.md", "docs/ci/x.yml", "src/x.rs"].contains(&path)
        }

        fn is_directory(&self, path: &str) -> bool {
            ["src", "docs/ci"].contains(&path)
        }
    }

    fn pages(a: &str, summary: &str) -> BTreeMap<String, Page> {
        let texts = [
            ("docs/a.md", a),
            ("docs/design/b.md", "# B\n"),
            ("docs/SUMMARY.md", summary),
            ("README.md", "# Title\n"),
        ];
        texts
            .map(|(path, text)| (path.to_owned(), Page::parse(text)))
            .into()
    }

    #[test]
    fn links_lead_to_files_directories_and_headings() {
        let summary = "- [A](a.md)\n- [B](design/b.md)\n";
        let cases = [
            (
                "[x](design/b.md#b) [x](#a) [x](ci/x.yml) [x](../src/x.rs) [x](../src/)",
                None,
            ),
            ("[x](https://example.org/#y) [x](../README.md#title)", None),
            ("[x](b.md)", Some("b.md: no such file")),
            (
                "[x](../README.md#other)",
                Some("../README.md#other: no such heading"),
            ),
            ("[x](ci)", Some("ci: no such file")),
            (
                "[x](../../README.md)",
                Some("../../README.md: no such file"),
            ),
            (
                "x<y>",
                Some("<y>: no reader sees an HTML tag outside of code"),
            ),
            (
                "[x]\n\n[x]: ../src/x.rs",
                Some("../src/x.rs: write it as `[text](target)`, which becomes a URL in the book"),
            ),
        ];
        for (text, fault) in cases {
            let faults = faults(&pages(&format!("# A\n\n{text}\n"), summary), &Fixture);
            let expected: Vec<String> = fault
                .iter()
                .map(|fault| format!("docs/a.md: {fault}"))
                .collect();
            assert_eq!(faults, expected, "{text}");
        }
    }

    #[test]
    fn pages_are_listed_once() {
        let fault = "docs/design/b.md: docs/SUMMARY.md has to list it once";
        for summary in [
            "- [A](a.md)\n",
            "- [A](a.md)\n- [B](design/b.md)\n- [B](design/b.md)\n",
        ] {
            assert_eq!(faults(&pages("# A\n", summary), &Fixture), [fault]);
        }
    }

    #[test]
    fn links_out_of_the_book_become_urls() {
        let repository = env!("CARGO_PKG_REPOSITORY");
        let cases = [
            ("../../src/x.rs", Some("/blob/main/src/x.rs")),
            ("../../src", Some("/tree/main/src")),
            ("../../README.md#title", Some("/blob/main/README.md#title")),
            ("../a.md", None),
            ("#b", None),
            ("https://example.org", None),
        ];
        for (target, expected) in cases {
            let expected = expected.map(|path| format!("{repository}{path}"));
            assert_eq!(
                url("docs/design/b.md", target, &Fixture),
                expected,
                "{target}"
            );
        }
    }
}
