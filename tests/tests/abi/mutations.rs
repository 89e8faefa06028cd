//! Adapters with one error each: the calls of `adapters.toml` must notice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gpustub_core::library::Library;
use gpustub_core::version::{HeaderVersion, Version};
use gpustub_tests::{Result, repository, scratch};
use serde::Deserialize;

use super::adapters::Adapters;
use super::programs::{CUDART, Programs, exported};
use super::{End, expected, imported, try_adapters};

/// `tests/cases/adapter-mutations.toml`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutations {
    mutation: Vec<Mutation>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutation {
    /// File below `templates/adapters`.
    file: String,
    /// Text to replace wherever the file has it.
    text: String,
    by: String,
    /// Version of the headers of a program that uses the adapter.
    headers: String,
}

/// Wrong results of the calls of a caller, on all libraries.
fn problems(
    programs: &Programs,
    adapters: &Adapters,
    dir: &Path,
    (caller, header): (&Path, Version),
    names: &BTreeSet<String>,
) -> Result<Vec<String>> {
    let shipped = Library::builtin(programs.id).expect("a shipped library");
    let mut wrong = Vec::new();
    for (version, library) in programs.libraries(dir) {
        let exported = exported(&library)?;
        let declares = HeaderVersion::parse(&header.to_string());
        let is_adapted = |name: &&String| {
            let end = expected(shipped, name, declares, version, &exported);
            matches!(end, End::Adapted)
        };
        let adapted = names.iter().filter(is_adapted).cloned().collect();
        let found = try_adapters(
            programs,
            adapters,
            dir,
            (caller, header),
            (&library, version),
            &adapted,
        )?;
        wrong.extend(found);
    }
    Ok(wrong)
}

#[test]
#[ignore = "slow: compiles the adapters for each error (tests/run --all)"]
fn heavy_errors_in_adapters_are_noticed() -> Result<()> {
    let text = fs::read_to_string(repository().join("tests/cases/adapter-mutations.toml"))?;
    let Mutations { mutation: all } = toml::from_str(&text)?;
    let adapters = Adapters::read()?;
    let programs = &CUDART;
    let dir = scratch()?;
    let dir = dir.path();
    programs.write(dir)?;
    let shipped = Library::builtin(programs.id).expect("a shipped library");
    let symbols = programs.symbols(dir, shipped)?;
    let mode = programs.modes[0];
    let mut by_header: BTreeMap<Version, Vec<&Mutation>> = BTreeMap::new();
    for mutation in &all {
        let header = Version::parse(&mutation.headers).ok_or("no version")?;
        by_header.entry(header).or_default().push(mutation);
    }
    let mut unnoticed = Vec::new();
    for (header, mutations) in by_header {
        let caller = programs.caller(dir, header, mode, true, &symbols)?;
        let names = imported(&caller, &symbols)?;
        let wrong = problems(programs, &adapters, dir, (&caller, header), &names)?;
        assert!(wrong.is_empty(), "{header}: {wrong:?}");
        let stubs = programs.stubs(dir, header, mode, true, &symbols)?;
        for mutation in mutations {
            let file = stubs.sources.join(format!("adapters_{}", mutation.file));
            let original = fs::read_to_string(&file)?;
            let changed = original.replace(&mutation.text, &mutation.by);
            assert_ne!(original, changed, "{mutation:?}");
            fs::write(&file, changed)?;
            let caller = Programs::link(caller.parent().unwrap_or(dir), &stubs)?;
            let wrong = problems(programs, &adapters, dir, (&caller, header), &names)?;
            if wrong.is_empty() {
                unnoticed.push(mutation);
            }
            fs::write(&file, original)?;
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
    Ok(())
}
