//! Imports of published programs (`tests/majors/*.toml`), and their extraction from wheels.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use gpustub_core::library::Library;
use gpustub_core::version::HeaderVersion;
use gpustub_tests::command::succeed;
use gpustub_tests::components::{component, only_entry};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, elf, files_below, repository};
use serde::{Deserialize, Serialize};

/// Program or wheel.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name and version, as on the page.
    pub name: String,
    /// Origin of the imports, if not a wheel, or remarks on the wheel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Component with the wheel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wheel: Option<String>,
    #[serde(default)]
    pub imports: Vec<Imports>,
}

/// Functions that the images of a program import from one library.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Imports {
    pub library: String,
    /// Version of the headers, if the program or the soname of its library has one.
    #[serde(rename = "header-version", skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    pub functions: BTreeSet<String>,
}

impl Imports {
    pub fn shipped(&self) -> &'static Library {
        Library::builtin(&self.library).expect("a shipped library")
    }

    pub fn version(&self) -> Option<HeaderVersion> {
        HeaderVersion::parse(self.header.as_deref()?)
    }
}

fn directory() -> PathBuf {
    repository().join("tests/majors")
}

/// All programs, with the files that describe them, sorted by name.
pub fn programs() -> Result<Vec<(PathBuf, Program)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory())? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        let program =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        found.push((path, program));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// Imports of the images in a wheel.
pub fn imports(wheel: &str) -> Result<Vec<Imports>> {
    let wheel = only_entry(&component(wheel)?)?;
    let dir = scratch()?;
    let mut unzip = Command::new("unzip");
    unzip.args(["-q", "-o"]).arg(&wheel).arg("*.so*").arg("-d");
    succeed(unzip.arg(dir.path()))?;
    let mut found: BTreeMap<(String, Option<String>), BTreeSet<String>> = BTreeMap::new();
    for image in files_below(dir.path())? {
        if !fs::read(&image)?.starts_with(b"\x7fELF") {
            continue;
        }
        let needed = elf::needed(&image)?;
        for row in elf::symbols("--dyn-syms", &image)? {
            let name = row.name.split('@').next().unwrap_or_default();
            if row.section == "UND"
                && let Some(key) = origin(name, &needed)
            {
                found.entry(key).or_default().insert(name.to_owned());
            }
        }
    }
    let found = found.into_iter();
    let mut all: Vec<Imports> = found
        .map(|((library, header), functions)| Imports {
            library,
            header,
            functions,
        })
        .collect();
    all.sort();
    Ok(all)
}

/// Library of a function, and the version of its headers: the major of the needed soname, unless two majors
/// share it. `None`: no shipped list has the function.
fn origin(name: &str, needed: &[String]) -> Option<(String, Option<String>)> {
    let shipped = Library::builtin_ids().filter_map(Library::builtin);
    let exporting: Vec<&Library> = shipped
        .filter(|library| !library.symbols.lookup(name).is_empty())
        .collect();
    let majors = |library: &Library| -> Option<Vec<u32>> {
        let names = library.load_names.get("linux")?;
        let names = names.iter().filter(|name| needed.contains(&name.name));
        let majors: Vec<u32> = names.filter_map(|name| name.major).collect();
        (!majors.is_empty()).then_some(majors)
    };
    let mut needed_ones = exporting.iter().filter(|library| majors(library).is_some());
    let library = *needed_ones.next().or(exporting.first())?;
    let header = match majors(library).as_deref() {
        Some([major]) => Some(major.to_string()),
        _ => None,
    };
    Some((library.id.clone(), header))
}
