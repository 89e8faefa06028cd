//! `cargo xtask reference`: generated files of `docs/`.

mod budgets;
mod chart;
mod pages;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::abi::page;

/// JSON schema of `GpuStub.toml`.
const SCHEMA: &str = "gpustub.schema.json";

/// Writes the files, or with `--check` reports those that are out of date.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let check = match arguments {
        [] => false,
        [option] if option == "--check" => true,
        _ => return Err("only `--check` is expected".to_owned()),
    };
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let tables = (page::PAGE, page::page());
    let schema = (SCHEMA, schema()?);
    let mut clean = true;
    let benchmarks = read(&docs.join(budgets::PAGE))?;
    let generated = [
        schema,
        tables,
        (chart::PICTURE, chart::svg()),
        (budgets::PICTURE, budgets::svg()),
        (budgets::PAGE, budgets::page(&benchmarks)?),
    ];
    for (name, text) in pages::pages().into_iter().chain(generated) {
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

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Output of `cargo gpustub schema`.
fn schema() -> Result<String, String> {
    let output = Command::new("cargo")
        .args(["run", "--quiet", "--package", "cargo-gpustub", "--"])
        .arg("schema")
        .output()
        .map_err(|e| format!("could not run cargo: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    String::from_utf8(output.stdout).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_current() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let benchmarks = read(&docs.join(budgets::PAGE)).unwrap();
        let generated = [
            (chart::PICTURE, chart::svg()),
            (budgets::PICTURE, budgets::svg()),
            (budgets::PAGE, budgets::page(&benchmarks).unwrap()),
        ];
        for (name, text) in pages::pages().into_iter().chain(generated) {
            let current = fs::read_to_string(docs.join(name)).unwrap_or_default();
            assert!(current == text, "docs/{name}: run `cargo xtask reference`");
        }
    }
}
