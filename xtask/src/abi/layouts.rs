//! `templates/adapters/*.h`, from the headers of all versions: layouts of the structs that adapters copy.
//!
//! `xtask/data/layouts.toml` names the structs. The packages are those of `cargo xtask abi`.

mod copies;
mod data;
mod layout;
mod numbers;
#[cfg(test)]
mod shipped_tests;
#[cfg(test)]
mod tests;
mod text;

use std::path::{Path, PathBuf};

use super::numbers::libraries;
use super::recipes::recipe;
use crate::manifests::diff;
use crate::recipes::{Options, root};
use data::Struct;
use layout::{Layout, Sample};

/// `cargo xtask adapters`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let options = Options::parse("adapters", arguments)?;
    let mut same = true;
    for (id, structs) in data::read()? {
        if options.wants(&id) {
            let text = header(&id, &structs, &options.components)?;
            same &= write(&id, &text, options.check)?;
        }
    }
    for id in libraries()? {
        if options.wants(&id) {
            let text = numbers::header(&id, &options.components)?;
            same &= write(&format!("{id}_numbers"), &text, options.check)?;
        }
    }
    Ok(same)
}

/// Writes a header, or compares it. Returns whether it is the same.
fn write(name: &str, text: &str, check: bool) -> Result<bool, String> {
    let path = path(name);
    if !check {
        std::fs::write(&path, text).map_err(|e| format!("`{}`: {e}", path.display()))?;
        return Ok(true);
    }
    let old = std::fs::read_to_string(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
    let changes = diff::lines(&old, text);
    if !changes.is_empty() {
        print!("--- templates/adapters/{name}.h\n+++ regenerated\n{changes}");
    }
    Ok(changes.is_empty())
}

fn path(name: &str) -> PathBuf {
    root()
        .join("templates/adapters")
        .join(name)
        .with_extension("h")
}

/// The generated header of a library.
fn header(id: &str, structs: &[Struct], components: &Path) -> Result<String, String> {
    let recipe = recipe(id)?;
    let mut samples: Vec<Vec<Sample>> = structs.iter().map(|_| Vec::new()).collect();
    for &version in &recipe.versions {
        let include = recipe.include(components, version)?;
        let version_samples = layout::read(recipe, version, &include, structs)?;
        for (samples, of_version) in samples.iter_mut().zip(version_samples) {
            samples.extend(of_version);
        }
    }
    let mut sections = Vec::new();
    for (row, samples) in structs.iter().zip(samples) {
        let section = section(row, samples).map_err(|e| format!("{id}: {}: {e}", row.name))?;
        sections.push(section);
    }
    Ok(text::header(id, &recipe.row.header, &sections))
}

/// The part of a header for one struct.
fn section(row: &Struct, samples: Vec<Sample>) -> Result<String, String> {
    let layouts = Layout::from_samples(row, samples)?;
    let pairs = copies::pairs(row, &layouts)?;
    text::section(&row.name, &layouts, &pairs)
}
