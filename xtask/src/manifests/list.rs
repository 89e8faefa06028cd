//! List of the libraries in `manifests/src/lib.rs`, written from the files beside it.

use std::fs;

use crate::recipes::root;

const START: &str = "\nlibraries![\n";
const END: &str = "];\n";

/// Writes the list, or with `check` compares it. `Ok(false)`: it is out of date.
pub fn run(check: bool) -> Result<bool, String> {
    let path = root().join("manifests/src/lib.rs");
    let old = fs::read_to_string(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
    let new = with_list(&old, &entries()?).ok_or("manifests/src/lib.rs has no `libraries!`")?;
    if new == old {
        return Ok(true);
    }
    if check {
        println!("manifests/src/lib.rs does not list the libraries of manifests/");
        return Ok(false);
    }
    fs::write(&path, new).map_err(|e| format!("`{}`: {e}", path.display()))?;
    Ok(true)
}

/// Entry of each library with a manifest and a symbol list, sorted by id: `"cuda" abi,`.
fn entries() -> Result<Vec<String>, String> {
    let dir = root().join("manifests");
    let mut entries = Vec::new();
    for file in fs::read_dir(&dir).map_err(|e| format!("`{}`: {e}", dir.display()))? {
        let Ok(file) = file else { continue };
        let path = file.path();
        if path
            .extension()
            .is_none_or(|extension| extension != "symbols")
            || !path.with_extension("toml").is_file()
        {
            continue;
        }
        let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else {
            continue;
        };
        let mut entry = format!("    \"{id}\"");
        for kind in ["abi", "errors"] {
            if path.with_extension(kind).is_file() {
                entry += " ";
                entry += kind;
            }
        }
        entries.push(entry + ",\n");
    }
    entries.sort();
    Ok(entries)
}

/// `source` with these entries in its list; `None` if it has no list.
fn with_list(source: &str, entries: &[String]) -> Option<String> {
    let (before, rest) = source.split_once(START)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{START}{}{END}{after}", entries.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_all_libraries() {
        assert_eq!(run(true), Ok(true), "run `cargo xtask manifests`");
    }

    #[test]
    fn only_the_list_changes() {
        let source = "a\nlibraries![\n    \"x\",\n];\nb\n";
        let entries = ["    \"x\",\n".to_owned(), "    \"y\" abi,\n".to_owned()];
        let expected = "a\nlibraries![\n    \"x\",\n    \"y\" abi,\n];\nb\n";
        assert_eq!(with_list(source, &entries).as_deref(), Some(expected));
        assert_eq!(with_list("a\n", &entries), None);
    }
}
