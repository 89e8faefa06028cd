//! `cargo xtask book`: the pages of `docs/` as a book.

mod links;
mod page;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::repository::{read, repository};
use links::{DOCS, Tree, resolve};
use page::Page;

/// Builds the book, or with `--check` only reports faults of links and of the table of contents.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let check = match arguments {
        [] => false,
        [option] if option == "--check" => true,
        _ => return Err("only `--check` is expected".to_owned()),
    };
    let root = repository();
    let pages = read_pages(&root)?;
    let faults = links::faults(&pages, &Files(&root));
    for fault in &faults {
        println!("{fault}");
    }
    if check || !faults.is_empty() {
        return Ok(faults.is_empty());
    }
    let book = root.join("target/book");
    if book.exists() {
        fs::remove_dir_all(&book)
            .map_err(|e| format!("could not remove {}: {e}", book.display()))?;
    }
    copy(&root.join("docs"), &book.join("docs"), DOCS, &pages)?;
    write(&book.join("book.toml"), &read(&root.join("book.toml"))?)?;
    let output = book.join("html");
    build(&book, &output)?;
    let missing = missing_ids(&pages, &output)?;
    for link in &missing {
        println!("{link}");
    }
    if missing.is_empty() {
        println!("wrote target/book/html/index.html");
    }
    Ok(missing.is_empty())
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

/// Copies a directory. In pages, links to files outside `docs/` become URLs.
fn copy(
    from: &Path,
    to: &Path,
    prefix: &str,
    pages: &BTreeMap<String, Page>,
) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|e| format!("could not create {}: {e}", to.display()))?;
    let entries =
        fs::read_dir(from).map_err(|e| format!("could not read {}: {e}", from.display()))?;
    for entry in entries {
        let entry = entry.map_err(|e| e.to_string())?;
        let name = entry
            .file_name()
            .into_string()
            .map_err(|name| format!("{}: not UTF-8", name.display()))?;
        let (source, path) = (entry.path(), format!("{prefix}{name}"));
        if source.is_dir() {
            copy(&source, &to.join(&name), &format!("{path}/"), pages)?;
        } else if let Some(page) = pages.get(&path) {
            let text = page.rewrite(&read(&source)?, |target| {
                links::url(&path, target, &Files(&repository()))
            });
            write(&to.join(&name), &text)?;
        } else {
            fs::copy(&source, to.join(&name)).map_err(|e| format!("could not copy {path}: {e}"))?;
        }
    }
    Ok(())
}

/// Runs mdBook.
fn build(book: &Path, output: &Path) -> Result<(), String> {
    let mut mdbook = Command::new("mdbook");
    mdbook.arg("build").arg(book).arg("--dest-dir").arg(output);
    let status = mdbook.status().map_err(|e| {
        format!(
            "could not run mdbook: {e}\n  help: install it with `cargo install mdbook --locked`"
        )
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("mdbook failed: {status}"))
    }
}

/// Links whose anchor is no id of the page that mdBook wrote.
fn missing_ids(pages: &BTreeMap<String, Page>, output: &Path) -> Result<Vec<String>, String> {
    let mut written: BTreeMap<String, String> = BTreeMap::new();
    let mut missing = Vec::new();
    for (path, page) in pages.iter().filter(|(path, _)| path.starts_with(DOCS)) {
        for link in &page.links {
            let Some((target, Some(anchor))) = resolve(path, &link.target) else {
                continue;
            };
            let Some(file) = target
                .strip_prefix(DOCS)
                .and_then(|target| target.strip_suffix(".md"))
            else {
                continue;
            };
            if !written.contains_key(file) {
                let html = read(&output.join(format!("{file}.html")))?;
                written.insert(file.to_owned(), html);
            }
            if !written[file].contains(&format!("id=\"{anchor}\"")) {
                missing.push(format!("{path}: mdBook gave {file}.html no id `{anchor}`"));
            }
        }
    }
    Ok(missing)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("could not write {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use gpustub_workspace::codes;

    use super::*;

    #[test]
    fn links_of_the_repository_lead_to_files_and_anchors() {
        let root = repository();
        let pages = read_pages(&root).unwrap();
        assert!(pages.contains_key("README.md") && pages.contains_key(links::SUMMARY));
        let faults = links::faults(&pages, &Files(&root));
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn configuration_names_the_repository_and_the_site() {
        let text = read(&repository().join("book.toml")).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let html = &table["output"]["html"];
        // Diagnostics link to a page of the published book, which has a heading for each code.
        let site = html["site-url"].as_str().unwrap();
        let pages = read_pages(&repository()).unwrap();
        for code in codes::all_codes() {
            let url = codes::url(code);
            let (file, anchor) = url.split_once('#').unwrap();
            let (host, file) = file.split_once(site).unwrap();
            assert_eq!(host, "https://gpustub.github.io");
            let page = format!("{DOCS}{}", file.replace(".html", ".md"));
            assert!(pages[&page].anchors.contains(anchor), "{url}");
        }
        let url = env!("CARGO_PKG_REPOSITORY");
        assert_eq!(html["git-repository-url"].as_str(), Some(url));
        let edit = format!("{url}/edit/main/{{path}}");
        assert_eq!(html["edit-url-template"].as_str(), Some(&*edit));
    }
}
