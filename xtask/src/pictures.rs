//! Pictures of the pages: `docs/images/*.svg`, and the table of budgets in `BENCHMARKS.md`.
//!
//! Each picture is made from text that tests compare with programs: the console blocks of a page, the
//! graph that `plan` prints, a figure's description. The SVG of a graph holds that text, since the
//! layout of Graphviz differs by version; all others are compared byte for byte.

mod colors;
mod graph;
mod plot;
mod screen;

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::repository;

/// Directory of the pictures.
const IMAGES: &str = "docs/images";

/// Contents of `xtask/data/pictures.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pictures {
    screen: Vec<screen::Screen>,
    graph: Vec<graph::Graph>,
    plot: plot::Plot,
}

/// A file, and its contents as they should be.
struct Output {
    path: String,
    text: String,
}

/// Runs `cargo xtask pictures`, which writes the files, or compares them (`--check`).
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let is_check = match arguments {
        [] => false,
        [one] if one == "--check" => true,
        _ => return Err("usage: cargo xtask pictures [--check]".into()),
    };
    let outdated = outdated()?;
    for output in &outdated {
        if is_check {
            eprintln!(
                "error: {} is out of date: run `cargo xtask pictures`",
                output.path
            );
        } else {
            let path = repository().join(&output.path);
            fs::write(path, &output.text).map_err(|e| format!("{}: {e}", output.path))?;
            println!("wrote {}", output.path);
        }
    }
    Ok(!is_check || outdated.is_empty())
}

/// Files that differ from what they should be.
fn outdated() -> Result<Vec<Output>, String> {
    let pictures: Pictures = toml::from_str(include_str!("../data/pictures.toml"))
        .map_err(|e| format!("xtask/data/pictures.toml: {e}"))?;
    let root = repository();
    let mut outputs = Vec::new();
    for screen in &pictures.screen {
        outputs.push(image(&screen.file, screen.render(&root)?));
    }
    outputs.extend(pictures.plot.render(&root)?);
    outputs.retain(|output| read(&root, &output.path).as_deref() != Ok(&output.text));
    for graph in &pictures.graph {
        let path = format!("{IMAGES}/{}", graph.file);
        let source = read(&root, &format!("{path}.dot"))?;
        let old = read(&root, &format!("{path}.svg")).unwrap_or_default();
        if !graph::is_current(&old, &source) {
            outputs.push(image(&graph.file, graph::render(&source)?));
        }
    }
    Ok(outputs)
}

fn image(file: &str, text: String) -> Output {
    Output {
        path: format!("{IMAGES}/{file}.svg"),
        text,
    }
}

fn read(root: &Path, path: &str) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_current() {
        let outdated = outdated().unwrap();
        let outdated: Vec<_> = outdated.iter().map(|output| &output.path).collect();
        assert!(
            outdated.is_empty(),
            "run `cargo xtask pictures`: {outdated:?}"
        );
    }
}
