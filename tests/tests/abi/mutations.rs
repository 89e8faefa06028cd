//! Adapters with one error each: the calls of `adapters.toml` must notice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gpustub_core::abi_table::Adapter;
use gpustub_core::library::Library;
use gpustub_core::version::{HeaderVersion, Version};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};
use serde::Deserialize;

use super::adapters::Adapters;
use super::programs::{CUDA, CUDART, HIP, HIPBLAS, HIPSPARSE, Programs, ROCBLAS, exported};
use super::{Outcome, expected, imported, try_adapters};

/// `tests/cases/adapter-mutations.toml`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutations {
    mutation: Vec<Mutation>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutation {
    /// Library of the program.
    #[serde(default = "runtime")]
    library: String,
    /// File below `templates/adapters`.
    file: String,
    /// Text to replace wherever the file has it.
    text: String,
    by: String,
    /// Version of the headers of a program that uses the adapter.
    headers: String,
}

fn runtime() -> String {
    CUDART.id.to_owned()
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
        let adapted = names
            .iter()
            .filter(|name| {
                let outcome = expected(shipped, name, declares, version, &exported);
                matches!(outcome, Outcome::Adapted)
            })
            .cloned()
            .collect();
        let problems = try_adapters(
            programs,
            adapters,
            dir,
            (caller, header),
            (&library, version),
            &adapted,
        )?;
        wrong.extend(problems);
    }
    Ok(wrong)
}

/// The errors of `tests/cases/adapter-mutations.toml`.
fn mutations() -> Result<Vec<Mutation>> {
    let text = fs::read_to_string(repository().join("tests/cases/adapter-mutations.toml"))?;
    let Mutations { mutation } = toml::from_str(&text)?;
    Ok(mutation)
}

#[test]
fn errors_of_the_list_change_adapters() -> Result<()> {
    for mutation in mutations()? {
        let file = repository().join("templates/adapters").join(&mutation.file);
        let text = fs::read_to_string(file)?;
        assert!(text.contains(&mutation.text), "{mutation:?}");
    }
    Ok(())
}

/// Makes the errors in the adapters of a library. Returns how many there are, and those that no call noticed.
fn errors_one_by_one(programs: &Programs) -> Result<(usize, Vec<Mutation>)> {
    let adapters = Adapters::read()?;
    let dir = scratch()?;
    let dir = dir.path();
    programs.write(dir)?;
    let shipped = Library::builtin(programs.id).expect("a shipped library");
    let symbols = programs.symbols(dir, shipped)?;
    let mode = programs.modes[0];
    let mut by_header: BTreeMap<Version, Vec<Mutation>> = BTreeMap::new();
    let mut mutations = mutations()?;
    mutations.retain(|mutation| mutation.library == programs.id);
    let count = mutations.len();
    for mutation in mutations {
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
    Ok((count, unnoticed))
}

#[test]
#[ignore = "slow: compiles the adapters for each error (tests/run --all)"]
fn heavy_errors_in_adapters_are_noticed() -> Result<()> {
    let (count, unnoticed) = errors_one_by_one(&CUDART)?;
    assert!(count > 10 && unnoticed.is_empty(), "{unnoticed:#?}");
    Ok(())
}

#[test]
#[ignore = "needs clang and packages of suites that move on: ./tests/run --all"]
fn heavy_errors_in_adapters_of_rocm_libraries_are_noticed() -> Result<()> {
    for programs in [HIPBLAS, HIPSPARSE] {
        let (count, unnoticed) = errors_one_by_one(&programs)?;
        assert!(count > 3 && unnoticed.is_empty(), "{unnoticed:#?}");
    }
    Ok(())
}

/// Makes the adapter that a file names return success without a call.
fn make_breakable(sources: &Path, file: &Path) -> Result<()> {
    let header = sources.join("adapters.h");
    let text = fs::read_to_string(&header)?;
    let (call, definition) = ("return code arguments;", "#define DEFINE_ADAPTER(");
    assert!(text.contains(call) && text.contains(definition), "{text}");
    let is_broken = format!(
        "#include <stdio.h>\n\
         static inline int is_broken(const char *name)\n{{\n\
         \x20   char broken[256] = {{0}};\n\
         \x20   FILE *file = fopen(\"{}\", \"r\");\n\
         \x20   size_t size = file ? fread(broken, 1, sizeof broken - 1, file) : 0;\n\
         \x20   if (file)\n        fclose(file);\n\
         \x20   return size && !strcmp(broken, name);\n}}\n{definition}",
        file.display()
    );
    let broken = "return is_broken(#function \"_\" #code) ? 0 : code arguments;";
    let text = text
        .replace(call, broken)
        .replacen(definition, &is_broken, 1);
    fs::write(&header, text)?;
    Ok(())
}

/// Functions of a program, and the adapters in C that they have on each library.
fn adapters_in_use(
    programs: &Programs,
    dir: &Path,
    header: Version,
    names: &BTreeSet<String>,
) -> Result<BTreeMap<(String, String), Vec<usize>>> {
    let shipped = Library::builtin(programs.id).expect("a shipped library");
    let declares = HeaderVersion::parse(&header.to_string());
    let mut adapters: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (index, (version, library)) in programs.libraries(dir).into_iter().enumerate() {
        let version_code = i32::try_from(version.code())?;
        let exported = exported(&library)?;
        for name in names {
            let entries = shipped.abi.entries(name, declares);
            let Some(entry) = entries
                .iter()
                .find(|entry| entry.from <= version_code && version_code < entry.below)
            else {
                continue;
            };
            let is_exported = entry
                .name
                .as_ref()
                .is_some_and(|name| exported.contains(name));
            if let Some(Adapter::Code(code)) = &entry.adapter
                && is_exported
            {
                let key = (name.clone(), code.clone());
                adapters.entry(key).or_default().push(index);
            }
        }
    }
    Ok(adapters)
}

/// Breaks each adapter that a program can use once. Returns how many there are, and those that no call noticed.
fn broken_one_by_one(programs: &Programs) -> Result<(usize, Vec<String>)> {
    let adapters = Adapters::read()?;
    let dir = scratch()?;
    let dir = dir.path();
    programs.write(dir)?;
    let shipped = Library::builtin(programs.id).expect("a shipped library");
    let symbols = programs.symbols(dir, shipped)?;
    let libraries = programs.libraries(dir);
    let file = dir.join("broken");
    let (mut count, mut unnoticed) = (0, Vec::new());
    for header in programs.headers() {
        for mode in programs.modes {
            let caller = programs.caller(dir, header, *mode, true, &symbols)?;
            let names = imported(&caller, &symbols)?;
            let stubs = programs.stubs(dir, header, *mode, true, &symbols)?;
            make_breakable(&stubs.sources, &file)?;
            let caller = Programs::link(caller.parent().unwrap_or(dir), &stubs)?;
            for ((name, code), indices) in adapters_in_use(programs, dir, header, &names)? {
                fs::write(&file, format!("{name}_{code}"))?;
                count += 1;
                for index in indices {
                    let (version, library) = &libraries[index];
                    let names = BTreeSet::from([name.clone()]);
                    let (caller, library) = ((&*caller, header), (&**library, *version));
                    if try_adapters(programs, &adapters, dir, caller, library, &names)?.is_empty() {
                        unnoticed.push(format!("{name}: {code}, {header}{} on {version}", mode.0));
                    }
                }
                fs::remove_file(&file)?;
            }
        }
    }
    println!("{}: {count} adapters were broken", programs.id);
    Ok((count, unnoticed))
}

#[test]
#[ignore = "slow: runs each adapter on each library (tests/run --all)"]
fn heavy_each_broken_adapter_is_noticed() -> Result<()> {
    for programs in [CUDART, CUDA] {
        let (count, unnoticed) = broken_one_by_one(&programs)?;
        assert!(
            count > 20 && unnoticed.is_empty(),
            "{count}: {unnoticed:#?}"
        );
    }
    Ok(())
}

#[test]
#[ignore = "needs clang and packages of suites that move on: ./tests/run --all"]
fn heavy_each_broken_adapter_of_hip_is_noticed() -> Result<()> {
    let (count, unnoticed) = broken_one_by_one(&HIP)?;
    assert!(
        count > 20 && unnoticed.is_empty(),
        "{count}: {unnoticed:#?}"
    );
    Ok(())
}

#[test]
#[ignore = "needs clang and packages of suites that move on: ./tests/run --all"]
fn heavy_each_broken_adapter_of_rocm_libraries_is_noticed() -> Result<()> {
    for programs in [HIPBLAS, HIPSPARSE, ROCBLAS] {
        let (count, unnoticed) = broken_one_by_one(&programs)?;
        assert!(
            count > 10 && unnoticed.is_empty(),
            "{count}: {unnoticed:#?}"
        );
    }
    Ok(())
}
