//! Compares `[fallback]` and `[zero-out]` of the shipped manifests with the real C headers: results of
//! functions, and pointees that are zeroed.
//!
//! clang reads the headers. Its syntax tree contains the functions and their types; a second run over
//! assertions, in C, lets the compiler itself check sizes and classes of types.

mod claims;
pub mod declarations;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gpustub_core::library::{Fallback, Library, Returns};

use crate::recipes::{Headers, Options, Recipe, root, walk};
use declarations::Function;

/// A machine with words of 32 bits, and the C library of Debian's cross compiler for it.
const WORDS_OF_32_BITS: &[&str] = &[
    "--target=i686-linux-gnu",
    "-idirafter",
    "/usr/i686-linux-gnu/include",
];

/// `cargo xtask fallbacks`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let options = Options::parse("fallbacks", arguments)?;
    let mut right = true;
    for (id, recipe) in options.recipes()? {
        let report = compare(&id, &recipe, &options.components)?;
        println!("{id}: {}", report.summary);
        for problem in &report.problems {
            println!("  {problem}");
            right = false;
        }
    }
    Ok(right)
}

/// Contradictions between headers and a manifest.
pub struct Report {
    pub problems: Vec<String>,
    /// Human-readable summary of the comparison.
    summary: String,
}

/// Compares one manifest with those of its headers that are among the components.
pub fn compare(id: &str, recipe: &Recipe, components: &Path) -> Result<Report, String> {
    let library = Library::builtin(id).ok_or_else(|| format!("`{id}` is not shipped"))?;
    let mut problems = Vec::new();
    let mut declared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut all, mut claims_made) = (true, 0);
    for headers in &recipe.headers {
        let Some(directories) = include_directories(headers, components)? else {
            all = false;
            continue;
        };
        let version = headers.version.to_string();
        for (include, macros) in readings(recipe) {
            let source = declarations::source(include, macros);
            let functions = declarations::read(&source, &directories)
                .map_err(|e| format!("{id} {version}: {e}"))?;
            let mut claims = claims::Claims::new(source.clone(), &recipe.status);
            let mut words = claims::Claims::new(source, &recipe.status);
            for symbol in library.symbols.functions() {
                let name = &symbol.name[..];
                let Some(function) = declaration(&functions, &recipe.alike, name) else {
                    continue;
                };
                declared
                    .entry(name.to_owned())
                    .or_default()
                    .push(version.clone());
                let fallback = library.fallbacks.get(name);
                claims.function(name, function, fallback, 8);
                if library.has_32_bit {
                    words.function(name, function, fallback, 4);
                    words.words(name, function, fallback);
                }
            }
            claims_made += claims.len() + words.len();
            let mut wrong = claims.check(&directories, &[])?;
            wrong.extend(words.check(&directories, WORDS_OF_32_BITS)?);
            problems.extend(wrong.iter().map(|problem| format!("{version}: {problem}")));
        }
    }
    if all {
        problems.extend(undeclared(library, recipe, &declared));
    }
    problems.sort();
    problems.dedup();
    let functions = library.symbols.functions().count();
    let summary = format!(
        "{} of {functions} functions declared, {claims_made} claims compared{}",
        declared.len(),
        if all {
            ""
        } else {
            " (some headers are missing)"
        }
    );
    Ok(Report { problems, summary })
}

/// Combinations of headers and macros to read.
fn readings(recipe: &Recipe) -> impl Iterator<Item = (&[String], &[String])> {
    (recipe.include.iter()).flat_map(|include| {
        (recipe.defines.iter()).map(|macros| (include.as_slice(), macros.as_slice()))
    })
}

/// Names of the functions that a library's headers below a directory declare, sorted.
pub fn declared_names(recipe: &Recipe, directory: &Path) -> Result<Vec<String>, String> {
    let mut directories = include_below(directory)?;
    directories.push(root().join("xtask/include"));
    let mut names = BTreeSet::new();
    for (include, macros) in readings(recipe) {
        let source = declarations::source(include, macros);
        let functions = declarations::read(&source, &directories)
            .map_err(|e| format!("`{}`: {e}", directory.display()))?;
        names.extend(functions.into_keys());
    }
    Ok(names.into_iter().collect())
}

/// Include directories; `None` if a component is missing.
pub fn include_directories(
    headers: &Headers,
    components: &Path,
) -> Result<Option<Vec<PathBuf>>, String> {
    let mut directories = Vec::new();
    for directory in &headers.directories {
        let directory = components.join(directory);
        if !directory.is_dir() {
            return Ok(None);
        }
        directories.extend(include_below(&directory)?);
    }
    directories.push(root().join("xtask/include"));
    Ok(Some(directories))
}

/// Every directory named `include` below a directory.
fn include_below(directory: &Path) -> Result<Vec<PathBuf>, String> {
    walk(directory, |path| path.is_dir() && path.ends_with("include"))
}

/// Declaration of a function, or of one with an equivalent name.
fn declaration<'f>(
    functions: &'f BTreeMap<String, Function>,
    alike: &[String],
    name: &str,
) -> Option<&'f Function> {
    if let Some(function) = functions.get(name) {
        return Some(function);
    }
    let plain = |name: &str| -> Option<String> {
        (alike.iter().find_map(|pattern| shared(pattern, name))).map(str::to_owned)
    };
    let wanted = plain(name).unwrap_or_else(|| name.to_owned());
    let same = |other: &&String| plain(other).as_deref().unwrap_or(other) == wanted;
    let other = (!alike.is_empty())
        .then(|| functions.keys().find(same))
        .flatten()?;
    functions.get(other)
}

/// Text that `*` matches if `name` matches `pattern`, in which `#` is a number.
fn shared<'n>(pattern: &str, name: &'n str) -> Option<&'n str> {
    let (before, mut after) = pattern.split_once('*')?;
    let mut rest = name.strip_prefix(before)?;
    while let Some(last) = after.chars().next_back() {
        after = &after[..after.len() - last.len_utf8()];
        let shorter = match last {
            '#' => rest.trim_end_matches(|c: char| c.is_ascii_digit()),
            other => rest.strip_suffix(other).unwrap_or(rest),
        };
        if shorter.len() == rest.len() {
            return None;
        }
        rest = shorter;
    }
    Some(rest)
}

/// Functions without declaration must have been reviewed: they have a row of their own, or match the
/// recipe's rule; and each pattern of the rule is needed.
fn undeclared(
    library: &Library,
    recipe: &Recipe,
    declared: &BTreeMap<String, Vec<String>>,
) -> Vec<String> {
    if recipe.headers.is_empty() {
        return Vec::new();
    }
    let decided = |fallback: Option<&Fallback>| {
        fallback.is_some_and(|fallback| fallback.returns != Returns::Status)
    };
    let mut problems = Vec::new();
    let mut used = vec![false; recipe.undeclared.len()];
    for symbol in library.symbols.functions() {
        let name = &symbol.name[..];
        if declared.contains_key(name) {
            continue;
        }
        let rule = (recipe.undeclared.iter()).position(|pattern| matches(pattern, name));
        if let Some(rule) = rule {
            used[rule] = true;
        } else if !decided(library.fallbacks.get(name)) {
            problems.push(format!(
                "{name}: no header declares it, and neither [fallback] nor `undeclared` names it"
            ));
        }
    }
    let idle = (recipe.undeclared.iter().zip(used)).filter(|(_, used)| !used);
    problems.extend(idle.map(|(pattern, _)| {
        format!("recipes.toml: `undeclared` has {pattern:?}, which no function needs")
    }));
    problems
}

/// Whether a name matches `pattern`: `*` is any text, `?` one character.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.chars().next() {
        None => name.is_empty(),
        Some('*') => (0..=name.len()).any(|skip| matches(&pattern[1..], &name[skip..])),
        Some('?') => !name.is_empty() && matches(&pattern[1..], &name[1..]),
        Some(_) => {
            !name.is_empty() && pattern[..1] == name[..1] && matches(&pattern[1..], &name[1..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_one_function() {
        assert_eq!(shared("p*", "pncclSend"), Some("ncclSend"));
        assert_eq!(
            shared("__*_#_#", "__nvJitLinkCreate_13_10"),
            Some("nvJitLinkCreate")
        );
        assert_eq!(shared("__*_#_#", "nvJitLinkCreate"), None);
        assert_eq!(shared("__*_#_#", "__nvJitLinkAPI"), None);
    }

    #[test]
    fn patterns() {
        assert!(matches("cublas?bdmm", "cublasSbdmm"));
        assert!(matches("*Reset*", "ncclReset") && matches("a*", "a"));
        assert!(!matches("cublas?bdmm", "cublasbdmm") && !matches("a", "ab"));
    }

    #[test]
    #[ignore = "needs the real headers: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
    #[expect(
        clippy::disallowed_methods,
        reason = "the test says where the packages are"
    )]
    fn shipped_fallbacks_fit_the_headers_that_are_there() {
        let directory = std::env::var_os("GPUSTUB_TEST_COMPONENTS")
            .expect("GPUSTUB_TEST_COMPONENTS names the directory of unpacked packages");
        for (id, recipe) in crate::recipes::read().unwrap() {
            let report = compare(&id, &recipe, directory.as_ref()).unwrap();
            assert_eq!(report.problems, Vec::<String>::new(), "{id}");
        }
    }
}
