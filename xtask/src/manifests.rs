//! `manifests/*.symbols`, from the real packages of several versions.
//!
//! `tests/run --all --components-only` unpacks the packages below `target/components`; `recipes.toml`
//! names them. The manifests beside the lists (`*.toml`) are maintained by hand, and
//! `cargo xtask fallbacks` compares them with the headers.

pub mod diff;
mod list;
mod merge;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpustub_core::version::Version;
use gpustub_image::{SymbolRequirements as ReadOptions, read_library_symbols_file};

use crate::abi;
use crate::components;
use crate::fallbacks;
use crate::recipes::{Exports, Options, Recipe, find, installed, read_exports, root};
use merge::VersionSymbols;

/// `cargo xtask manifests`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let options = Options::parse("manifests", arguments)?;
    let mut same = true;
    for (id, recipe) in options.recipes()? {
        let needed = components_of(&id, &recipe)?;
        let is_requested = !options.only.is_empty();
        if !components::are_there(&id, &needed, &options.components, is_requested)? {
            continue;
        }
        let path = root().join("manifests").join(&id).with_extension("symbols");
        let text = generate(&id, &recipe, &options.components)?;
        if options.check {
            let old =
                std::fs::read_to_string(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
            let changes = diff::lines(&old, &text);
            if !changes.is_empty() {
                print!("--- manifests/{id}.symbols\n+++ regenerated\n{changes}");
                same = false;
            }
        } else {
            std::fs::write(&path, text).map_err(|e| format!("`{}`: {e}", path.display()))?;
        }
    }
    Ok(same & list::run(options.check)?)
}

/// Components of a library's symbol list and ABI table, without the headers that only fallbacks are compared with.
pub fn components_of(id: &str, recipe: &Recipe) -> Result<BTreeSet<String>, String> {
    let windows = recipe.windows.iter().flat_map(|windows| &windows.exports);
    let mut components = BTreeSet::new();
    for row in recipe.exports.iter().chain(windows) {
        components.extend(row.directory.clone());
        components.extend(row.declared_in.clone());
    }
    if let Ok(abi) = abi::recipe(id) {
        components.extend(abi.components()?);
    }
    Ok(components)
}

/// Writes the list of the libraries in `manifests/src/lib.rs`.
pub fn write_list() -> Result<(), String> {
    list::run(false).map(drop)
}

/// The text of a list. Needs the packages of all versions.
fn generate(id: &str, recipe: &Recipe, components: &Path) -> Result<String, String> {
    let mut versions: BTreeMap<Version, VersionSymbols> = BTreeMap::new();
    for exports in &recipe.exports {
        versions.insert(exports.version, evidence(recipe, exports, components)?);
    }
    // The headers that were compared for the ABI table.
    if let Ok(abi) = abi::recipe(id) {
        let mut undeclared = exported_names(versions.values());
        for &version in &abi.versions {
            let mut names = abi.declared_names(components, version)?;
            names.retain(|name| recipe.accepts(name));
            undeclared.retain(|name| !names.contains(name));
            versions.entry(version).or_default().declared = Some(names);
        }
        // Functions with the types of C++ are not declared in C.
        for &version in &abi.versions {
            let words = abi.words(components, version)?;
            let declared = &mut versions.entry(version).or_default().declared;
            let names = undeclared.iter().filter(|name| words.contains(*name));
            declared.get_or_insert_default().extend(names.cloned());
        }
    }
    merge::check_sizes(&versions)?;
    let mut list = merge::merge(versions.into_iter().collect());
    if recipe.soname.is_some() {
        list.soname.clone_from(&recipe.soname);
    }
    if let Some(windows) = &recipe.windows {
        let mut rows = Vec::new();
        for exports in &windows.exports {
            rows.push((exports.version, windows_names(recipe, exports, components)?));
        }
        merge::add_windows(&mut list, &rows);
    }
    let text = list.to_text();
    let (format, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let comment: String = recipe
        .comment
        .iter()
        .map(|line| format!("# {line}\n"))
        .collect();
    Ok(format!("{format}\n{comment}{rest}"))
}

/// Names of all functions that some libraries export.
fn exported_names<'v>(versions: impl Iterator<Item = &'v VersionSymbols>) -> BTreeSet<String> {
    versions
        .filter_map(|version| version.exports.as_ref())
        .flat_map(|exports| &exports.symbols)
        .map(|symbol| symbol.name.clone())
        .collect()
}

/// Names of one version that the list accepts.
fn evidence(recipe: &Recipe, row: &Exports, components: &Path) -> Result<VersionSymbols, String> {
    let library = match (&row.installed, &row.directory, &row.file, &row.declared_in) {
        (Some(file), None, None, None) => installed(file)?,
        (None, Some(directory), Some(file), None) => find(&components.join(directory), file)?,
        (None, None, None, Some(directory)) => {
            let directory = components.join(directory);
            let mut names = fallbacks::declared_names(recipe, &recipe.include, &directory, &[])?;
            names.retain(|name| recipe.accepts(name));
            return Ok(VersionSymbols {
                declared: Some(names.into_iter().collect()),
                ..VersionSymbols::default()
            });
        }
        _ => {
            let version = row.version;
            return Err(format!(
                "recipes.toml: {version}: `in` and `file`, `installed` or `declared-in`"
            ));
        }
    };
    let mut exports = read_exports(&library)?;
    exports
        .symbols
        .retain(|symbol| recipe.accepts(&symbol.name));
    if recipe.without_versions {
        for symbol in &mut exports.symbols {
            symbol.version = None;
        }
    }
    for symbol in &mut exports.symbols {
        symbol.copied = recipe.copied.contains(&symbol.name);
        let update = (recipe.updates.iter()).find(|update| update.function == symbol.name);
        symbol.updates = update.is_some();
        symbol.callback = update.and_then(|update| update.callback);
    }
    Ok(VersionSymbols {
        exports: Some(exports),
        ..VersionSymbols::default()
    })
}

/// Functions that the library of one version has on Windows.
fn windows_names(
    recipe: &Recipe,
    row: &Exports,
    components: &Path,
) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    match (&row.directory, &row.file, &row.declared_in, &recipe.windows) {
        (Some(directory), Some(file), None, _) => {
            let library = find(&components.join(directory), file)?;
            let exports = read_library_symbols_file(&library, ReadOptions::default())
                .map_err(|error| error.to_string())?;
            names.extend(exports.functions().map(|symbol| symbol.name.clone()));
        }
        (None, None, Some(directory), Some(windows)) => {
            let directory = components.join(directory);
            names.extend(fallbacks::declared_names(
                recipe,
                &windows.include,
                &directory,
                fallbacks::declarations::WINDOWS,
            )?);
        }
        _ => return Err("recipes.toml: `windows`: `in` and `file`, or `declared-in`".to_owned()),
    }
    names.retain(|name| recipe.accepts(name));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use gpustub_core::library::Library;
    use gpustub_core::symbols::SymbolList;

    use super::*;

    #[expect(
        clippy::disallowed_methods,
        reason = "the test says where the packages are"
    )]
    fn components() -> std::path::PathBuf {
        std::env::var_os("GPUSTUB_TEST_COMPONENTS")
            .expect("GPUSTUB_TEST_COMPONENTS names the directory of unpacked packages")
            .into()
    }

    /// Differences between a shipped list and one version of the library: enough to find a wrong list
    /// without the packages of all versions. `None` if the version is not among the components.
    fn differences(
        recipe: &Recipe,
        shipped: &SymbolList,
        row: &Exports,
        components: &Path,
    ) -> Result<Option<Vec<String>>, String> {
        let directory = row.directory.as_ref().map(|path| components.join(path));
        if row.declared_in.is_some() || directory.is_some_and(|path| !path.is_dir()) {
            return Ok(None);
        }
        let real = merge::merge(vec![(row.version, evidence(recipe, row, components)?)]);
        let (real, listed) = (names_in(&real, row.version), names_in(shipped, row.version));
        let removed = listed.difference(&real).map(|name| format!("-{name}"));
        let added = real.difference(&listed).map(|name| format!("+{name}"));
        Ok(Some(removed.chain(added).collect()))
    }

    /// Functions that a list has in a version, and data with its size.
    fn names_in(list: &SymbolList, version: Version) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        // Of a function with several version nodes each row counts.
        let symbols = list.symbols.iter().filter(|symbol| {
            symbol.is_on("linux") && (!symbol.kind.is_data() || symbol.is_copied())
        });
        for symbol in symbols {
            let is_present = symbol
                .releases
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&version));
            if is_present || symbol.releases.is_empty() {
                names.insert(if symbol.is_copied() {
                    format!("{}[{}]", symbol.name, symbol.size)
                } else {
                    symbol.name.clone()
                });
            }
        }
        names
    }

    /// Libraries all of whose packages are ones that only `tests/run --all` unpacks.
    const LARGE: [&str; 15] = [
        "cudss",
        "cusparselt",
        "custatevec",
        "cutensor",
        "cutensormg",
        "cutensornet",
        "hipblaslt",
        "migraphx",
        "miopen",
        "nvshmem",
        "rccl",
        "rocblas",
        "rocsolver",
        "rocsparse",
        "roctracer",
    ];

    /// Compares at least one version of every other library.
    #[test]
    #[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
    fn shipped_lists_agree_with_the_packages_that_are_there() {
        for (id, recipe) in crate::recipes::read().unwrap() {
            let shipped = &Library::builtin(&id).unwrap().symbols;
            let mut compared = 0;
            for exports in &recipe.exports {
                let version = exports.version;
                if let Some(changes) =
                    differences(&recipe, shipped, exports, &components()).unwrap()
                {
                    assert!(changes.is_empty(), "{id} {version}: {changes:?}");
                    compared += 1;
                }
            }
            assert!(
                compared > 0 || LARGE.contains(&&id[..]),
                "{id}: no package is there"
            );
        }
    }

    /// A DLL that lacks a function of the list answers as an older library does.
    #[test]
    #[ignore = "slow: ./tests/run --all"]
    fn heavy_shipped_lists_have_the_functions_of_windows() {
        let mut compared = BTreeSet::new();
        for (id, recipe) in crate::recipes::read().unwrap() {
            let shipped = &Library::builtin(&id).unwrap().symbols;
            for row in recipe.windows.iter().flat_map(|windows| &windows.exports) {
                let directory = row.directory.as_ref().or(row.declared_in.as_ref()).unwrap();
                if !components().join(directory).is_dir() {
                    continue;
                }
                compared.insert(id.clone());
                let names = windows_names(&recipe, row, &components()).unwrap();
                for name in &names {
                    assert!(
                        !shipped.lookup(name).is_empty(),
                        "{id} {}: {name}",
                        row.version
                    );
                }
                for symbol in shipped.functions().filter(|symbol| !symbol.is_on("linux")) {
                    assert!(
                        names.contains(&symbol.name),
                        "{id} {}: {}",
                        row.version,
                        symbol.name
                    );
                }
            }
        }
        assert_eq!(
            compared,
            BTreeSet::from(["cuda", "cudart"].map(str::to_owned))
        );
    }

    #[test]
    #[ignore = "needs the real packages of all versions: tests/run --all"]
    fn heavy_shipped_lists_are_those_of_the_real_packages() {
        for (id, recipe) in crate::recipes::read().unwrap() {
            let path = root().join("manifests").join(&id).with_extension("symbols");
            let shipped = std::fs::read_to_string(&path).unwrap();
            let text = generate(&id, &recipe, &components()).unwrap();
            let changes = diff::lines(&shipped, &text);
            assert!(
                changes.is_empty(),
                "`cargo xtask manifests` changes {id}:\n{changes}"
            );
        }
    }
}
