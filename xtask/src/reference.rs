//! `cargo xtask reference`: generated files of `docs/`.

pub mod budgets;
mod chart;
mod pages;

use std::fs;
use std::process::Command;

use crate::abi::page;
use crate::repository::{read, repository};

/// JSON schema of `GpuStub.toml`.
const SCHEMA: &str = "gpustub.schema.json";

/// Writes the files, or with `--check` reports those that are out of date.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let check = match arguments {
        [] => false,
        [option] if option == "--check" => true,
        _ => return Err("only `--check` is expected".to_owned()),
    };
    let mut clean = true;
    let schema = (format!("docs/{SCHEMA}"), schema()?);
    let tables = (format!("docs/{}", page::PAGE), page::page());
    for (name, text) in documents()?.into_iter().chain([schema, tables]) {
        let path = repository().join(&name);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if check {
            println!("{name} is out of date");
            clean = false;
        } else {
            fs::write(&path, text).map_err(|e| format!("could not write {name}: {e}"))?;
            println!("wrote {name}");
        }
    }
    Ok(clean)
}

/// Pages and pictures, by path from the root.
fn documents() -> Result<Vec<(String, String)>, String> {
    let pictures = [
        (chart::PICTURE, chart::svg()),
        (budgets::PICTURE, budgets::svg()?),
    ];
    let mut documents: Vec<_> = (pages::pages().into_iter().chain(pictures))
        .map(|(name, text)| (format!("docs/{name}"), text))
        .collect();
    let benchmarks = read(&repository().join(budgets::PAGE))?;
    documents.push((budgets::PAGE.to_owned(), budgets::page(&benchmarks)?));
    Ok(documents)
}

/// Output of `cargo gpustub schema`.
fn schema() -> Result<String, String> {
    let output = Command::new("cargo")
        .args(["run", "--quiet", "--package", "cargo-gpustub", "--"])
        .arg("schema")
        .output()
        .map_err(|e| format!("could not run cargo: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    String::from_utf8(output.stdout).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_current() {
        for (name, text) in documents().unwrap() {
            let current = fs::read_to_string(repository().join(&name)).unwrap_or_default();
            assert!(current == text, "{name}: run `cargo xtask reference`");
        }
    }
}
