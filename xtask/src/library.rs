//! `cargo xtask library`: everything that is generated for one library, from its recipe.

mod skeleton;

use std::collections::BTreeSet;
use std::process::Command;

use crate::recipes::{Options, Recipe, root};
use crate::{abi, components, manifests};

/// Option that replaces an existing manifest. Without the file, which is in its list, xtask does not compile.
const REWRITE: &str = "--rewrite-manifest";

/// `cargo xtask library`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let (rewrite, others): (Vec<String>, Vec<String>) =
        (arguments.iter().cloned()).partition(|argument| argument == REWRITE);
    let options = Options::parse("library", &others)?;
    let [id] = &options.only[..] else {
        return Err("`library` takes the name of one library".to_owned());
    };
    let (_, recipe) = options.recipes()?.remove(0);
    let needed = components_of(id, &recipe)?;
    components::install(&needed, &options.components)?;
    let manifest = root().join("manifests").join(id).with_extension("toml");
    if !rewrite.is_empty() || !manifest.exists() {
        let text = skeleton::manifest(id, &recipe, &options.components)?;
        std::fs::write(&manifest, text).map_err(|e| format!("`{}`: {e}", manifest.display()))?;
        println!("wrote manifests/{id}.toml: review what its comments name");
    }
    let directory = options.components.display().to_string();
    let words = [id.clone(), "--components".to_owned(), directory];
    manifests::run(&words)?;
    let has_table = abi::recipe(id).is_ok();
    if has_table {
        abi::run(&words)?;
    }
    // These read the manifests that they were compiled with.
    let mut clean = true;
    clean &= xtask("errors", &words)?;
    manifests::write_list()?;
    if recipe.headers.is_empty() {
        println!(
            "the recipe of {id} has no `headers`: results and out-parameters are not compared"
        );
    } else {
        clean &= xtask("fallbacks", &words)?;
    }
    clean &= xtask("reference", &[])?;
    if !has_table {
        println!(
            "{id} has no ABI table: xtask/data/abi.toml describes the keys of `[abi]` in its recipe"
        );
    }
    Ok(clean)
}

/// Runs a task with the files that were written before. Returns whether it had no findings.
fn xtask(task: &str, arguments: &[String]) -> Result<bool, String> {
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--package", "xtask", "--", task])
        .args(arguments)
        .current_dir(root())
        .status()
        .map_err(|e| format!("could not run cargo: {e}"))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(format!("`cargo xtask {task}`: {status}")),
    }
}

/// All components of a library.
fn components_of(id: &str, recipe: &Recipe) -> Result<BTreeSet<String>, String> {
    let mut directories = manifests::components_of(id, recipe)?;
    let windows = recipe.windows.iter().flat_map(|windows| &windows.headers);
    for headers in recipe.headers.iter().chain(windows) {
        directories.extend(headers.directories.iter().cloned());
    }
    Ok(directories
        .iter()
        .map(|directory| components::component(directory))
        .collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::components::{LISTS, entries};
    use crate::recipes::read;

    #[test]
    fn lists_have_the_components_of_all_libraries() {
        let mut text = String::new();
        for (_, files) in LISTS {
            for file in files {
                text += &fs::read_to_string(root().join("tests/components").join(file)).unwrap();
            }
        }
        for (id, recipe) in read().unwrap() {
            let needed = components_of(&id, &recipe).unwrap();
            let listed: BTreeSet<&str> = entries(&text, &needed)
                .iter()
                .filter_map(|line| line.split_whitespace().next())
                .collect();
            let unlisted: Vec<&String> = needed
                .iter()
                .filter(|component| !listed.contains(component.as_str()))
                .collect();
            assert!(unlisted.is_empty(), "{id}: {unlisted:?}");
        }
    }
}
