//! Compares `Library::only_in` with the possible imports of programs compiled with real headers.

use std::collections::BTreeSet;

use gpustub_core::imports::Only;
use gpustub_core::library::Library;
use gpustub_core::version::{HeaderVersion, Version};

use super::recipes::{RECIPES, Recipe};
use super::tests::components;

/// Names that programs compiled with the headers of a version can import, with any macros, and that the
/// library of that version also has.
struct Names {
    version: Version,
    declared: BTreeSet<String>,
    /// `None`: unknown.
    exported: Option<BTreeSet<String>>,
}

fn names(recipe: &Recipe, wanted: impl Fn(Version) -> bool) -> Vec<Names> {
    let evidence = recipe.evidence(&components(), wanted).unwrap();
    let names = evidence.into_iter().map(|evidence| Names {
        version: evidence.version,
        declared: evidence.headers.functions.into_keys().collect(),
        exported: evidence.exports,
    });
    names.collect()
}

fn said(library: &Library, name: &str, header: &str) -> Option<Only> {
    library.only_in(name, HeaderVersion::parse(header).unwrap())
}

/// Asserts that no name that the headers declare is attributed to others. Returns the number of queries.
fn no_alarm(recipe: &Recipe, names: &[Names]) -> usize {
    let library = Library::builtin(&recipe.id).unwrap();
    let mut asked = 0;
    for Names {
        version, declared, ..
    } in names
    {
        for name in declared {
            for header in [version.to_string(), version.major.to_string()] {
                let said = said(library, name, &header);
                assert_eq!(said, None, "{} {header} {name}", recipe.id);
                asked += 1;
            }
        }
    }
    asked
}

/// Asserts that every name that only other versions have is found, if the data has this version. Returns
/// their number.
fn all_found(recipe: &Recipe, names: &[Names]) -> usize {
    let library = Library::builtin(&recipe.id).unwrap();
    let mut found = 0;
    for Names {
        version,
        declared,
        exported,
    } in names
    {
        let others = names.iter().flat_map(|other| &other.declared);
        let others: BTreeSet<&String> = others.collect();
        for name in others {
            let has = |names: &BTreeSet<String>| names.contains(name);
            // Without its exports, a library is taken to keep what earlier headers of its major declare:
            // cufftXt.h of 12.3 lacks a function of 12.2 and 12.4.
            let is_older = |of: Version| of.major == version.major && of < *version;
            let stays = exported.is_none()
                && (names.iter()).any(|other| is_older(other.version) && has(&other.declared));
            let is_known = library.abi.contains(name) || library.symbols.releases.contains(version);
            // A header may lack functions of its library, and a list functions that no library has.
            if has(declared)
                || exported.as_ref().is_some_and(has)
                || stays
                || !is_known
                || name.starts_with('_')
                || library.abi.is_undeclared(name)
                || library.symbols.lookup(name).is_empty()
            {
                continue;
            }
            let said = said(library, name, &version.to_string());
            let only = said.unwrap_or_else(|| panic!("{} {version}: {name}", recipe.id));
            let inside = only.since.is_none_or(|since| since <= *version)
                && only.until.is_none_or(|until| *version <= until);
            assert!(!inside, "{} {version}: {name} in {only}", recipe.id);
            found += 1;
        }
    }
    found
}

/// `least`: minimum numbers of queried and of found names for each library.
fn compare(wanted: impl Fn(&Recipe, Version) -> bool, least: &[(&str, usize, usize)]) {
    let counted: Vec<_> = RECIPES
        .iter()
        .map(|recipe| {
            let names = names(recipe, |version| wanted(recipe, version));
            (
                recipe.id.as_str(),
                no_alarm(recipe, &names),
                all_found(recipe, &names),
            )
        })
        .collect();
    let enough = least.iter().all(|(id, asked, found)| {
        let mut counted = counted.iter();
        counted.any(|counted| counted.0 == *id && counted.1 >= *asked && counted.2 >= *found)
    });
    assert!(enough, "{counted:?}");
}

#[test]
#[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
fn imports_identify_the_headers_at_hand() {
    let least = [
        ("cublas", 2400, 230),
        ("cublaslt", 190, 9),
        ("cuda", 5000, 140),
        ("cudart", 3200, 270),
        ("curand", 110, 0),
        ("nvjitlink", 50, 0),
        ("nvrtc", 190, 28),
    ];
    compare(|recipe, version| recipe.at_hand.contains(&version), &least);
}

#[test]
#[ignore = "needs the headers of all versions: GPUSTUB_TEST_COMPONENTS (tests/run --all)"]
fn heavy_imports_identify_all_headers() {
    let least = [
        ("cuda", 21000, 490),
        ("cudart", 13500, 490),
        ("hip", 3500, 50),
        ("hipblas", 7000, 500),
        ("hiprtc", 130, 7),
        ("nvrtc", 420, 28),
    ];
    compare(|_, _| true, &least);
}
