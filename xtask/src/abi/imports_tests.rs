//! Compares `Library::only_in` with the possible imports of programs compiled with real headers.

use std::collections::BTreeSet;

use gpustub_core::imports::VersionSpan;
use gpustub_core::library::Library;
use gpustub_core::version::{HeaderVersion, Version};

use super::recipes::{AbiRecipe, RECIPES};
use super::tests::components;

/// Names that programs compiled with the headers of a version can import, with any macros, and that the
/// library of that version also has.
struct VersionNames {
    version: Version,
    declared: BTreeSet<String>,
    /// `None`: unknown.
    exported: Option<BTreeSet<String>>,
}

fn names(recipe: &AbiRecipe, accepts: impl Fn(Version) -> bool) -> Vec<VersionNames> {
    recipe
        .evidence(&components(), accepts)
        .unwrap()
        .into_iter()
        .map(|evidence| VersionNames {
            version: evidence.version,
            declared: evidence.headers.functions.into_keys().collect(),
            exported: evidence.exports,
        })
        .collect()
}

fn only_in(library: &Library, name: &str, header: &str) -> Option<VersionSpan> {
    library.only_in(name, HeaderVersion::parse(header).unwrap())
}

/// Functions that the headers of a version declare and its library lacks, so that they are those of later versions.
const WITHOUT_EXPORT: [(&str, &str, &str); 2] = [
    ("cusparselt", "0.7", "cusparseLtGetErrorName"),
    ("cusparselt", "0.7", "cusparseLtGetErrorString"),
];

/// Asserts that no name that the headers declare is attributed to others. Returns the number of queries.
fn check_declared(recipe: &AbiRecipe, names: &[VersionNames]) -> usize {
    let library = Library::builtin(&recipe.id).unwrap();
    let mut queries = 0;
    for VersionNames {
        version, declared, ..
    } in names
    {
        for name in declared {
            for header in [version.to_string(), version.major.to_string()] {
                let only = only_in(library, name, &header);
                let is_later = WITHOUT_EXPORT.contains(&(&recipe.id, &header, name));
                assert_eq!(only.is_some(), is_later, "{} {header} {name}", recipe.id);
                queries += 1;
            }
        }
    }
    queries
}

/// Whether the list has a function in a version.
fn is_listed(library: &Library, name: &str, version: Version) -> bool {
    library.symbols.lookup(name).iter().any(|symbol| {
        let mut ranges = symbol.releases.iter();
        symbol.releases.is_empty() || ranges.any(|(from, to)| (*from..=*to).contains(&version))
    })
}

/// Asserts that every name that only other versions have is found, if the data has this version. Returns
/// their number.
fn check_missing(recipe: &AbiRecipe, versions: &[VersionNames]) -> usize {
    let library = Library::builtin(&recipe.id).unwrap();
    let all_declared: BTreeSet<&String> = versions.iter().flat_map(|v| &v.declared).collect();
    let mut count = 0;
    for VersionNames {
        version,
        declared,
        exported,
    } in versions
    {
        for &name in &all_declared {
            // Without its exports, a library is taken to keep what earlier headers of its major declare:
            // cufftXt.h of 12.3 lacks a function of 12.2 and 12.4. It also has what the list gives it:
            // nvmlDeviceGetLastBBXFlushTime was exported before a header declared it.
            let is_exported = match exported {
                Some(exported) => exported.contains(name),
                None => {
                    is_listed(library, name, *version)
                        || versions.iter().any(|earlier| {
                            earlier.version.major == version.major
                                && earlier.version < *version
                                && earlier.declared.contains(name)
                        })
                }
            };
            let is_known = library.abi.contains(name) || library.symbols.releases.contains(version);
            // A header may lack functions of its library, and a list functions that no library has.
            if declared.contains(name)
                || is_exported
                || !is_known
                || name.starts_with('_')
                || library.abi.is_undeclared(name)
                || library.symbols.lookup(name).is_empty()
            {
                continue;
            }
            let only = only_in(library, name, &version.to_string())
                .unwrap_or_else(|| panic!("{} {version}: {name}", recipe.id));
            let is_inside = only.since.is_none_or(|since| since <= *version)
                && only.until.is_none_or(|until| *version <= until);
            assert!(!is_inside, "{} {version}: {name} in {only}", recipe.id);
            count += 1;
        }
    }
    count
}

/// `minima`: minimum numbers of declared and of missing names for each library.
fn compare(accepts: impl Fn(&AbiRecipe, Version) -> bool, minima: &[(&str, usize, usize)]) {
    let mut counts = Vec::new();
    for recipe in RECIPES.iter() {
        let names = names(recipe, |version| accepts(recipe, version));
        let declared = check_declared(recipe, &names);
        let missing = check_missing(recipe, &names);
        counts.push((recipe.id.as_str(), declared, missing));
    }
    for (library, min_declared, min_missing) in minima {
        let is_reached = counts.iter().any(|(id, declared, missing)| {
            id == library && declared >= min_declared && missing >= min_missing
        });
        assert!(is_reached, "{library}: {counts:?}");
    }
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_imports_identify_the_headers_at_hand() {
    let minima = [
        ("cublas", 2400, 230),
        ("cublaslt", 190, 9),
        ("cuda", 5000, 140),
        ("cudart", 3200, 270),
        ("curand", 110, 0),
        ("nvjitlink", 50, 0),
        ("nvrtc", 190, 28),
    ];
    compare(|recipe, version| recipe.at_hand.contains(&version), &minima);
}

#[test]
#[ignore = "needs the headers of all versions: GPUSTUB_TEST_COMPONENTS (tests/run --all)"]
fn heavy_imports_identify_all_headers() {
    let minima = [
        ("cuda", 21000, 490),
        ("cudart", 13500, 490),
        ("hip", 3500, 50),
        ("hipblas", 7000, 500),
        ("hiprtc", 130, 7),
        ("nvrtc", 420, 28),
    ];
    compare(|_, _| true, &minima);
}
