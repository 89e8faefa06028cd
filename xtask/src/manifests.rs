//! `manifests/*.symbols`, from the real packages of several versions.
//!
//! `tests/run --all --components-only` unpacks the packages below `target/components`; `recipes.toml`
//! names them. The manifests beside the lists (`*.toml`) are maintained by hand, and
//! `cargo xtask fallbacks` compares them with the headers.

pub mod diff;
mod list;
mod merge;

use std::collections::BTreeSet;
use std::path::Path;

use gpustub_core::symbols::SymbolList;
use gpustub_image::{
    SymbolRequirements as ReadOptions, read_library_symbols_file, read_symbols_file,
};

use crate::fallbacks;
use crate::recipes::{Exports, Options, Recipe, find, installed, root};
use merge::VersionSymbols;

/// `cargo xtask manifests`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let options = Options::parse("manifests", arguments)?;
    let mut same = true;
    for (id, recipe) in options.recipes()? {
        let path = root().join("manifests").join(&id).with_extension("symbols");
        let text = generate(&recipe, &options.components)?;
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

/// The text of a list. Needs the packages of all versions.
fn generate(recipe: &Recipe, components: &Path) -> Result<String, String> {
    let mut versions = Vec::new();
    for exports in &recipe.exports {
        versions.push((exports.version, evidence(recipe, exports, components)?));
    }
    merge::check_sizes(&versions)?;
    let mut list = merge::merge(versions);
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

/// Names of one version that the list accepts.
fn evidence(recipe: &Recipe, row: &Exports, components: &Path) -> Result<VersionSymbols, String> {
    let library = match (&row.installed, &row.directory, &row.file, &row.declared_in) {
        (Some(file), None, None, None) => installed(file)?,
        (None, Some(directory), Some(file), None) => find(&components.join(directory), file)?,
        (None, None, None, Some(directory)) => {
            let directory = components.join(directory);
            let mut names = fallbacks::declared_names(recipe, &recipe.include, &directory, &[])?;
            names.retain(|name| recipe.accepts(name));
            return Ok(VersionSymbols::Declared(names));
        }
        _ => {
            let version = row.version;
            return Err(format!(
                "recipes.toml: {version}: `in` and `file`, `installed` or `declared-in`"
            ));
        }
    };
    let mut exports = read(&library)?;
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
    Ok(VersionSymbols::Exports(exports))
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

/// Reads the exports of a library.
pub fn read(library: &Path) -> Result<SymbolList, String> {
    read_symbols_file(library, ReadOptions::default())
        .map_err(|error| format!("{error}\n  help: {}", error.help()))
}

#[cfg(test)]
mod tests {
    use gpustub_core::library::Library;
    use gpustub_core::version::Version;

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
        let VersionSymbols::Exports(exports) = evidence(recipe, row, components)? else {
            return Ok(None);
        };
        let real = merge::merge(vec![(row.version, VersionSymbols::Exports(exports))]);
        let (real, listed) = (names_in(&real, row.version), names_in(shipped, row.version));
        let removed = listed.difference(&real).map(|name| format!("-{name}"));
        let added = real.difference(&listed).map(|name| format!("+{name}"));
        Ok(Some(removed.chain(added).collect()))
    }

    /// Functions that a list has in a version, and data with its size.
    fn names_in(list: &SymbolList, version: Version) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let data = list.symbols.iter().filter(|symbol| symbol.is_copied());
        for symbol in list.functions_on("linux").chain(data) {
            let is_present = symbol
                .releases
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&version));
            if is_present || symbol.releases.is_empty() {
                names.insert(match symbol.is_copied() {
                    true => format!("{}[{}]", symbol.name, symbol.size),
                    false => symbol.name.clone(),
                });
            }
        }
        names
    }

    /// Libraries all of whose packages are ones that only `tests/run --all` unpacks.
    const LARGE: [&str; 4] = ["cusparselt", "hipblaslt", "nvshmem", "rocblas"];

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
    #[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
    fn shipped_lists_have_the_functions_of_windows() {
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
            let text = generate(&recipe, &components()).unwrap();
            let changes = diff::lines(&shipped, &text);
            assert!(
                changes.is_empty(),
                "`cargo xtask manifests` changes {id}:\n{changes}"
            );
        }
    }
}
