//! `cargo xtask reference`: generated files of `docs/`.

use std::fs;
use std::path::Path;

use gpustub_reference::pages;

use crate::abi::page;
use crate::invariants;

/// Writes the files, or with `--check` reports those that are out of date.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let check = match arguments {
        [] => false,
        [one] if one == "--check" => true,
        _ => return Err("only `--check` is expected".to_owned()),
    };
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let invariants = (invariants::PAGE, invariants::page()?);
    let tables = (page::PAGE, page::page());
    let mut clean = true;
    for (name, text) in pages().into_iter().chain([invariants, tables]) {
        let path = docs.join(name);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if check {
            println!("docs/{name} is out of date");
            clean = false;
        } else {
            fs::write(&path, text).map_err(|e| format!("could not write docs/{name}: {e}"))?;
            println!("wrote docs/{name}");
        }
    }
    Ok(clean)
}
