//! `cargo xtask book`: the pages of `docs/` as a book.

mod links;
mod page;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::repository::repository;
use links::Tree;
use page::Page;

/// Reports faults of links and of the table of contents.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("no argument is expected".to_owned());
    }
    let root = repository();
    let pages = read_pages(&root)?;
    let faults = links::faults(&pages, &Files(&root));
    for fault in &faults {
        println!("{fault}");
    }
    Ok(faults.is_empty())
}

/// The tree of the repository.
struct Files<'a>(&'a Path);

impl Tree for Files<'_> {
    fn is_file(&self, path: &str) -> bool {
        self.0.join(path).is_file()
    }

    fn is_directory(&self, path: &str) -> bool {
        self.0.join(path).is_dir()
    }
}

/// Markdown files of the repository, by path from the root with `/`.
fn read_pages(root: &Path) -> Result<BTreeMap<String, Page>, String> {
    let listed = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .args(["--", "*.md"])
        .output()
        .map_err(|e| format!("could not run git: {e}"))?;
    if !listed.status.success() {
        return Err(String::from_utf8_lossy(&listed.stderr).into_owned());
    }
    let listed = String::from_utf8(listed.stdout).map_err(|e| e.to_string())?;
    let mut pages = BTreeMap::new();
    for path in listed.lines() {
        // A deleted file is listed until the deletion is committed.
        if root.join(path).is_file() {
            pages.insert(path.to_owned(), Page::parse(&read(&root.join(path))?));
        }
    }
    Ok(pages)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("could not read {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_repository_lead_to_files_and_anchors() {
        let root = repository();
        let pages = read_pages(&root).unwrap();
        assert!(pages.contains_key("README.md") && pages.contains_key(links::SUMMARY));
        let faults = links::faults(&pages, &Files(&root));
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
