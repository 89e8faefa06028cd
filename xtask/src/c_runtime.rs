//! `cargo xtask c-runtime`: names of the C and C++ run time, which no stub may have.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::repository::repository;

/// `data/c-runtime.toml`, which describes the keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    c: Vec<String>,
    cxx: Vec<String>,
    other: String,
    also: Vec<String>,
    prefixes: Vec<String>,
}

const FILE: &str = "manifests/c-runtime.names";

const HEAD: &str = "\
# Names of the C and C++ run time, written by `cargo xtask c-runtime`; sorted. `*` at the end: all names that begin so.
";

/// Writes the file, or with `--check` compares it.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let check = match arguments {
        [] => false,
        [option] if option == "--check" => true,
        _ => return Err("only `--check` is expected".to_owned()),
    };
    let sources: Sources = toml::from_str(include_str!("../data/c-runtime.toml"))
        .map_err(|e| format!("c-runtime.toml: {e}"))?;
    let path = repository().join(FILE);
    let text = HEAD.to_owned() + &names(&sources)?.concat();
    if fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(true);
    }
    if check {
        println!("{FILE} is out of date");
        return Ok(false);
    }
    fs::write(&path, text).map_err(|e| format!("{FILE}: {e}"))?;
    println!("wrote {FILE}");
    Ok(true)
}

/// Lines of the file, after its head.
fn names(sources: &Sources) -> Result<Vec<String>, String> {
    let common: BTreeSet<String> = exports(&sources.other)?.into_iter().collect();
    let mut names: BTreeSet<String> = sources.also.iter().cloned().collect();
    for file in &sources.c {
        for name in exports(file)? {
            if name.contains('_') || common.contains(&name) {
                names.insert(name);
            }
        }
    }
    for file in &sources.cxx {
        names.extend(exports(file)?);
    }
    let prefixes: Vec<&str> = sources.prefixes.iter().map(String::as_str).collect();
    names.retain(|name| {
        let is_covered = prefixes.iter().any(|prefix| name.starts_with(prefix));
        // A version node has a name with a dot.
        !is_covered && !name.contains('.')
    });
    let mut lines: Vec<(&str, String)> = Vec::new();
    for name in &names {
        lines.push((name, format!("{name}\n")));
    }
    for prefix in prefixes {
        lines.push((prefix, format!("{prefix}*\n")));
    }
    lines.sort_unstable();
    Ok(lines.into_iter().map(|(_, line)| line).collect())
}

/// Names that a library defines for new programs.
fn exports(file: &str) -> Result<Vec<String>, String> {
    let list = gpustub_image::read_symbols_file(Path::new(file), Default::default())
        .map_err(|e| e.to_string())?;
    Ok(list
        .symbols
        .into_iter()
        .filter(|symbol| !symbol.compat)
        .map(|symbol| symbol.name)
        .collect())
}
