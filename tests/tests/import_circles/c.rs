//! Calls between the C files of the run time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_tests::Result;
use regex::Regex;

/// Files whose functions each file calls, in the directory of the run time and that of one system. The functions
/// that more than one file uses are those that the headers declare.
pub fn calls(directory: &Path, system: &str) -> Result<BTreeMap<PathBuf, BTreeSet<PathBuf>>> {
    let comment = Regex::new(r"(?s)/\*.*?\*/")?;
    let declaration = Regex::new(r"(?m)^INTERNAL [^;(]*?\b(\w+)\(")?;
    let definition = Regex::new(r"(?m)^[A-Za-z][\w *]*\b(\w+)\([^;{]*\)\s*\{")?;
    let call = Regex::new(r"\b(\w+)\(")?;

    let mut headers = String::new();
    let mut texts = BTreeMap::new();
    for directory in [directory.to_owned(), directory.join("os").join(system)] {
        for entry in fs::read_dir(directory)? {
            let file = entry?.path();
            if file.is_dir() {
                continue;
            }
            let text = fs::read_to_string(&file)?;
            if file.extension().is_some_and(|extension| extension == "c") {
                texts.insert(file, comment.replace_all(&text, "").into_owned());
            } else {
                headers.push_str(&text);
            }
        }
    }
    let shared: BTreeSet<&str> = declaration
        .captures_iter(&headers)
        .filter_map(|declaration| Some(declaration.get(1)?.as_str()))
        .collect();
    let mut definitions: BTreeMap<&str, &PathBuf> = BTreeMap::new();
    for (file, text) in &texts {
        for function in definition.captures_iter(text) {
            let name = function.get(1).map_or("", |name| name.as_str());
            if shared.contains(name) {
                definitions.insert(name, file);
            }
        }
    }
    for name in shared {
        if !definitions.contains_key(name) {
            return Err(format!("no file defines `{name}` of the headers").into());
        }
    }
    let called = |file: &PathBuf, text: &str| {
        call.captures_iter(text)
            .filter_map(|call| definitions.get(&call[1]))
            .filter(|definition| **definition != file)
            .map(|definition| (*definition).clone())
            .collect()
    };
    Ok(texts
        .iter()
        .map(|(file, text)| (file.clone(), called(file, text)))
        .collect())
}
