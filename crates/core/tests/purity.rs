//! Checks that the pipeline is a function of its arguments: no environment, file, process or clock,
//! and no order that changes from run to run.

use std::fs;
use std::path::{Path, PathBuf};

const NOT_HERE: [&str; 12] = [
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

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn core_depends_on_its_arguments_only() {
    let mut files = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    assert!(files.len() > 15, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let found = NOT_HERE.iter().find(|word| code.contains(**word));
            assert!(found.is_none(), "{}:{}: {line}", file.display(), number + 1);
        }
    }
}
