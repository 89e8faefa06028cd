//! Checks that the pipeline is a function of its arguments: no environment, file, process or clock,
//! and no order that changes from run to run.

use std::fs;
use std::path::{Path, PathBuf};

const FORBIDDEN: [&str; 12] = [
    "std::env",
    "std::fs",
    "std::process",
    "std::time",
    "std::net",
    "std::thread",
    "std::io",
    "HashMap",
    "HashSet",
    "println!",
    "option_env!",
    "cfg(target",
];

fn add_sources(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_sources(&path, files);
        } else {
            files.push(path);
        }
    }
}

#[test]
fn core_depends_on_its_arguments_only() {
    let mut files = Vec::new();
    add_sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    assert!(files.len() > 15, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            assert!(
                !FORBIDDEN.iter().any(|word| code.contains(word)),
                "{}:{}: {line}",
                file.display(),
                number + 1
            );
        }
    }
}
