//! Checks of the repository's prose: comments, help texts, messages, pages and names.
//!
//! Every tracked text file is read. The rules are data, `xtask/data/prose.toml`; no file is exempt.

mod c;
mod hash_comments;
mod markdown;
mod rules;
mod rust;
mod text;
mod toml_strings;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::repository::{repository, tracked};
use rules::Rules;
use text::{Finding, Text};

/// Runs `cargo xtask prose`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let (counts, paths): (Vec<&String>, Vec<&String>) = arguments
        .iter()
        .partition(|argument| *argument == "--counts");
    let rules = Rules::read()?;
    let findings = findings(&rules, &paths)?;
    if counts.is_empty() {
        for finding in &findings {
            println!("{finding}");
        }
    } else {
        let mut by_rule: BTreeMap<&str, usize> = BTreeMap::new();
        for finding in &findings {
            *by_rule.entry(finding.rule.as_str()).or_default() += 1;
        }
        for (rule, count) in by_rule {
            println!("{count:6} {rule}");
        }
    }
    eprintln!("{} findings", findings.len());
    Ok(findings.is_empty())
}

/// Findings in the tracked files below `paths`, or in all files if there are none.
fn findings(rules: &Rules, paths: &[&String]) -> Result<Vec<Finding>, String> {
    let root = repository();
    let mut findings = Vec::new();
    for path in tracked(paths)? {
        // A file that is deleted and not committed yet, or is no text.
        let Ok(source) = fs::read_to_string(root.join(&path)) else {
            continue;
        };
        let texts = texts(&path, &source, rules)?;
        findings.extend(rules.check(&path, &texts));
    }
    Ok(findings)
}

/// Texts of a file, by its type.
fn texts(path: &str, source: &str, rules: &Rules) -> Result<Vec<Text>, String> {
    let is_template = path.ends_with(".hbs");
    let path = path.trim_end_matches(".hbs");
    let path = Path::new(path);
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    Ok(match extension {
        // A template is not Rust until it is rendered; its comments are like those of C.
        "rs" if is_template => c::texts(source),
        "rs" => rust::texts(source).map_err(|e| format!("{}: {e}", path.display()))?,
        "c" | "h" | "cc" | "cpp" | "cu" | "S" | "hip" | "dot" => c::texts(source),
        "md" => markdown::texts(source),
        "toml" => {
            let mut found = hash_comments::toml_texts(source);
            found.extend(toml_strings::texts(source, rules.toml_keys()));
            found
        }
        "sh" | "py" | "yml" | "yaml" | "abi" | "symbols" | "mk" | "json" | "list" | "zsh"
        | "map" => hash_comments::texts(source),
        // Messages of build files and of commands' output, next to comments.
        "cmake" | "txt" | "trycmd" => hash_comments::line_texts(source),
        "" if source.starts_with("#!") => hash_comments::line_texts(source),
        _ if is_template => hash_comments::line_texts(source),
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests;
