//! Compares `[fallback]` and `[zero-out]` of the shipped manifests with the real C headers: results of
//! functions, and pointees that are zeroed.
//!
//! clang reads the headers. Its syntax tree contains the functions and their types; a second run over
//! assertions, in C, lets the compiler itself check sizes and classes of types.

mod calls;
mod claims;
pub mod declarations;
pub mod outs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gpustub_cdecl::{Clang, Declarations};
use gpustub_core::library::{Library, Returns};

use crate::recipes::{Headers, Options, Recipe, root, walk};
use declarations::{DeclaredFunction, WINDOWS};

/// A machine with words of 32 bits, and the C library of Debian's cross compiler for it.
const WORDS_OF_32_BITS: &[&str] = &[
    "--target=i686-linux-gnu",
    "-idirafter",
    "/usr/i686-linux-gnu/include",
];

/// `cargo xtask fallbacks`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let options = Options::parse("fallbacks", arguments)?;
    let mut clean = true;
    for (id, recipe) in options.recipes()? {
        let report = compare(&id, &recipe, &options.components)?;
        println!("{id}: {}", report.summary);
        for problem in &report.problems {
            println!("  {problem}");
            clean = false;
        }
    }
    Ok(clean)
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
    let mut comparison = Comparison {
        library,
        recipe,
        problems: Vec::new(),
        declared: BTreeSet::new(),
        claims: 0,
    };
    let of_windows = (recipe.windows.iter()).flat_map(|windows| {
        windows
            .headers
            .iter()
            .map(|headers| (headers, &windows.include, WINDOWS))
    });
    let of_all = (recipe.headers.iter()).map(|headers| (headers, &recipe.include, &[][..]));
    let mut is_complete = true;
    for (headers, include, target) in of_all.chain(of_windows) {
        let Some(directories) = include_directories(headers, components)? else {
            is_complete = false;
            continue;
        };
        for (include, macros) in readings(include, &recipe.defines) {
            let source = declarations::source(include, macros);
            (comparison.version(&source, &directories, target))
                .map_err(|e| format!("{id} {}: {e}", headers.version))?
                .into_iter()
                .for_each(|problem| {
                    comparison
                        .problems
                        .push(format!("{}: {problem}", headers.version))
                });
        }
    }
    if let Some(not_zeroed) = &recipe.not_zeroed {
        match declared(recipe, components, &|_| true)? {
            Some(functions) => {
                let untouched = untouched(library, recipe, not_zeroed, &functions);
                comparison.problems.extend(untouched);
            }
            None => is_complete = false,
        }
    }
    Ok(comparison.finish(is_complete))
}

/// Declarations of the accepted functions in the newest headers; `None`: the recipe names none.
pub fn declared(
    recipe: &Recipe,
    components: &Path,
    accepts: &dyn Fn(&str) -> bool,
) -> Result<Option<Declarations>, String> {
    let Some(row) = recipe.headers.last().filter(|_| !recipe.include.is_empty()) else {
        return Ok(None);
    };
    let Some(directories) = include_directories(row, components)? else {
        return Ok(None);
    };
    let mut clang = Clang::new("clang");
    for directory in directories {
        clang = clang.directory(directory);
    }
    let mut headers = gpustub_cdecl::Headers::including(recipe.include.concat());
    headers.include.clone_from(&recipe.include);
    if !recipe.defines.is_empty() {
        headers.defines.clone_from(&recipe.defines);
    }
    let declarations = headers.read(&clang, &|name| recipe.accepts(name) && accepts(name));
    declarations.map(Some).map_err(|e| e.to_string())
}

/// Pointers to handles, numbers and text buffers of functions that return a status, which are neither zeroed nor in the recipe.
fn untouched(
    library: &Library,
    recipe: &Recipe,
    not_zeroed: &[String],
    declared: &Declarations,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut used = vec![false; not_zeroed.len()];
    for symbol in library.symbols.functions() {
        let name = &symbol.name[..];
        let declared_name = plain_name(&recipe.alike, name);
        let Some(function) =
            (declared.functions.get(name)).or_else(|| declared.functions.get(declared_name))
        else {
            continue;
        };
        let fallback = library.fallbacks.get(name).cloned().unwrap_or_default();
        if fallback.returns != Returns::Status {
            continue;
        }
        let is_zeroed = |argument: usize| {
            (fallback.outs.iter()).any(|out| usize::from(out.position) == argument)
        };
        for parameter in outs::out_parameters(function) {
            let argument = format!("{name} {}", parameter.argument);
            let rule = not_zeroed
                .iter()
                .position(|pattern| matches(pattern, &argument));
            match rule {
                Some(rule) => used[rule] = true,
                None if is_zeroed(parameter.argument) => {}
                None => problems.push(format!(
                    "{name}: argument {}: neither [zero-out] nor `not-zeroed` has it: `{parameter}`",
                    parameter.argument
                )),
            }
        }
    }
    for (pattern, used) in not_zeroed.iter().zip(used) {
        if !used {
            problems.push(format!(
                "`not-zeroed` has {pattern:?}, which no argument needs"
            ));
        }
    }
    problems
}

/// Comparison of a manifest with several versions of the headers.
struct Comparison<'r> {
    library: &'static Library,
    recipe: &'r Recipe,
    problems: Vec<String>,
    /// Functions that a version declares.
    declared: BTreeSet<&'static str>,
    claims: usize,
}

impl Comparison<'_> {
    /// The wrong claims about the functions of one source.
    fn version(
        &mut self,
        source: &str,
        directories: &[PathBuf],
        target: &[&str],
    ) -> Result<Vec<String>, String> {
        let Self {
            library, recipe, ..
        } = *self;
        let functions = declarations::read(source, directories, target)?;
        let mut claims = claims::Claims::new(source.to_owned(), &recipe.status);
        let mut words = claims::Claims::new(source.to_owned(), &recipe.status);
        let mut called = Vec::new();
        for symbol in library.symbols.functions() {
            let name = &symbol.name[..];
            let Some(function) = declaration(&functions, &recipe.alike, name) else {
                continue;
            };
            self.declared.insert(name);
            let fallback = library.fallbacks.get(name);
            claims.function(name, function, fallback, 8);
            if library.has_32_bit && target.is_empty() {
                words.function(name, function, fallback, 4);
                words.words(name, function, fallback);
            }
            if functions.contains_key(name) {
                called.push((name, function, fallback));
            }
        }
        self.claims += claims.len() + words.len();
        let mut problems = claims.check(directories, target)?;
        if words.len() > 0 {
            problems.extend(words.check(directories, WORDS_OF_32_BITS)?);
        }
        if library.load_names.get("windows").is_some() {
            self.claims += called.len();
            problems.extend(calls::wrong_words(source, directories, &called)?);
        }
        Ok(problems)
    }

    fn finish(mut self, is_complete: bool) -> Report {
        if is_complete {
            let undeclared = undeclared(self.library, self.recipe, &self.declared);
            self.problems.extend(undeclared);
        }
        self.problems.sort();
        self.problems.dedup();
        let functions = self.library.symbols.functions().count();
        let summary = format!(
            "{} of {functions} functions declared, {} claims compared{}",
            self.declared.len(),
            self.claims,
            if is_complete {
                ""
            } else {
                " (some headers are missing)"
            }
        );
        Report {
            problems: self.problems,
            summary,
        }
    }
}

/// Combinations of headers and macros to read.
fn readings<'r>(
    include: &'r [Vec<String>],
    defines: &'r [Vec<String>],
) -> impl Iterator<Item = (&'r [String], &'r [String])> {
    include
        .iter()
        .flat_map(|include| (defines.iter()).map(|macros| (include.as_slice(), macros.as_slice())))
}

/// Names of the functions that a library's headers below a directory declare, sorted. `target`: arguments of clang.
pub fn declared_names(
    recipe: &Recipe,
    include: &[Vec<String>],
    directory: &Path,
    target: &[&str],
) -> Result<Vec<String>, String> {
    let mut directories = include_below(directory)?;
    directories.push(root().join("xtask/include"));
    let mut names = BTreeSet::new();
    for (include, macros) in readings(include, &recipe.defines) {
        let source = declarations::source(include, macros);
        let functions = declarations::read(&source, &directories, target)
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

/// Every directory named `include`, or in source packages `inc`, below a directory.
fn include_below(directory: &Path) -> Result<Vec<PathBuf>, String> {
    walk(directory, |path| {
        path.is_dir() && (path.ends_with("include") || path.ends_with("inc"))
    })
}

/// Declaration of a function, or of one with an equivalent name.
fn declaration<'f>(
    functions: &'f BTreeMap<String, DeclaredFunction>,
    alike: &[String],
    name: &str,
) -> Option<&'f DeclaredFunction> {
    if let Some(function) = functions.get(name) {
        return Some(function);
    }
    if alike.is_empty() {
        return None;
    }
    let plain = plain_name(alike, name);
    let (_, function) = functions
        .iter()
        .find(|(declared, _)| plain_name(alike, declared) == plain)?;
    Some(function)
}

/// A name without the marks of the first pattern that it matches.
fn plain_name<'n>(alike: &[String], name: &'n str) -> &'n str {
    alike
        .iter()
        .find_map(|pattern| unmarked(pattern, name))
        .unwrap_or(name)
}

/// Text that `*` matches if `name` matches `pattern`, in which `#` is a number.
fn unmarked<'n>(pattern: &str, name: &'n str) -> Option<&'n str> {
    let (prefix, suffix) = pattern.split_once('*')?;
    let mut rest = name.strip_prefix(prefix)?;
    for mark in suffix.chars().rev() {
        let shorter = match mark {
            '#' => rest.trim_end_matches(|c: char| c.is_ascii_digit()),
            _ => rest.strip_suffix(mark).unwrap_or(rest),
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
fn undeclared(library: &Library, recipe: &Recipe, declared: &BTreeSet<&str>) -> Vec<String> {
    if recipe.headers.is_empty() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut used = vec![false; recipe.undeclared.len()];
    for symbol in library.symbols.functions() {
        let name = &symbol.name[..];
        if declared.contains(name) {
            continue;
        }
        let rule = (recipe.undeclared.iter()).position(|pattern| matches(pattern, name));
        let fallback = library.fallbacks.get(name);
        if let Some(rule) = rule {
            used[rule] = true;
        } else if fallback.is_none_or(|fallback| fallback.returns == Returns::Status) {
            problems.push(format!(
                "{name}: no header declares it, and neither [fallback] nor `undeclared` names it"
            ));
        }
    }
    for (pattern, used) in recipe.undeclared.iter().zip(used) {
        if !used {
            problems.push(format!(
                "recipes.toml: `undeclared` has {pattern:?}, which no function needs"
            ));
        }
    }
    problems
}

/// Whether a name matches `pattern`: `*` is any text, `?` one character.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.chars().next() {
        None => name.is_empty(),
        Some('*') => (0..=name.len()).any(|index| matches(&pattern[1..], &name[index..])),
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
        assert_eq!(unmarked("p*", "pncclSend"), Some("ncclSend"));
        assert_eq!(
            unmarked("__*_#_#", "__nvJitLinkCreate_13_10"),
            Some("nvJitLinkCreate")
        );
        assert_eq!(unmarked("__*_#_#", "nvJitLinkCreate"), None);
        assert_eq!(unmarked("__*_#_#", "__nvJitLinkAPI"), None);
    }

    #[test]
    fn patterns() {
        assert!(matches("cublas?bdmm", "cublasSbdmm"));
        assert!(matches("*Reset*", "ncclReset") && matches("a*", "a"));
        assert!(!matches("cublas?bdmm", "cublasbdmm") && !matches("a", "ab"));
    }

    #[test]
    #[ignore = "slow: ./tests/run --all"]
    #[expect(
        clippy::disallowed_methods,
        reason = "the test says where the packages are"
    )]
    fn heavy_shipped_fallbacks_fit_the_headers_that_are_there() {
        let directory = std::env::var_os("GPUSTUB_TEST_COMPONENTS")
            .expect("GPUSTUB_TEST_COMPONENTS names the directory of unpacked packages");
        let recipes = std::sync::Mutex::new(crate::recipes::read().unwrap().into_iter());
        let next = || recipes.lock().unwrap().next();
        let compare_recipes = || {
            while let Some((id, recipe)) = next() {
                let report = compare(&id, &recipe, directory.as_ref()).unwrap();
                assert_eq!(report.problems, Vec::<String>::new(), "{id}");
            }
        };
        // Minutes, which are the longest test of this program.
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().unwrap().get() {
                scope.spawn(compare_recipes);
            }
        });
    }
}
