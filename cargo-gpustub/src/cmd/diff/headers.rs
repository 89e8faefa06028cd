//! Comparison of declarations in the headers of two versions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gpustub_cdecl::{Declarations, Headers, Reserved, differences};
use gpustub_core::library::Library;
use gpustub_workspace::error::Result;

use super::change::{Change, Differences};
use super::input::LibraryVersion;
use crate::c_headers::HeaderRequest;
use crate::cli::DiffHeaders;
use crate::shipped::with_soname;

/// Result of the comparison.
pub struct HeaderComparison {
    /// Number of functions that both libraries have and both headers declare.
    pub functions: usize,
    /// Differences of these functions, by name.
    pub differences: Differences,
    /// Functions with differences that the library handles, and no other.
    pub guarded: Differences,
    /// Functions that only one of the headers declares, and macros with another expansion.
    pub changes: Vec<Change>,
    /// Functions that both libraries have and of which the headers do not show the meaning: neither declares them, or
    /// macros of both replace them and their declarations differ.
    pub undeclared: Vec<String>,
}

/// Compares the declarations of functions that both libraries have. `None`: no headers are given.
pub fn compare(
    options: &DiffHeaders,
    old: &LibraryVersion,
    new: &LibraryVersion,
) -> Result<Option<HeaderComparison>> {
    if options.old_headers.is_empty() {
        return Ok(None);
    }
    let known = match (library(old), library(new)) {
        (Some(old), Some(new)) if old.id != new.id => None,
        (old, new) => old
            .or(new)
            .and_then(|library| Headers::for_library(&library.id)),
    };
    let (old_names, new_names) = (function_names(old), function_names(new));
    let is_exported = |name: &str| old_names.contains(name) || new_names.contains(name);
    let versions = [
        read(&options.old_headers, options, old, known, &is_exported)?,
        read(&options.new_headers, options, new, known, &is_exported)?,
    ];
    let shared_names = old_names.intersection(&new_names).copied();
    Ok(Some(compare_declarations(&versions, shared_names)))
}

/// The shipped library of a version.
fn library(version: &LibraryVersion) -> Option<&'static Library> {
    match (version.shipped, &version.soname) {
        (Some((library, _)), _) => Some(library),
        (None, Some(soname)) => with_soname(soname),
        (None, None) => None,
    }
}

fn function_names(version: &LibraryVersion) -> BTreeSet<&str> {
    version
        .functions
        .iter()
        .map(|symbol| symbol.name.as_str())
        .collect()
}

/// Reads the headers of one version.
fn read(
    paths: &[PathBuf],
    options: &DiffHeaders,
    version: &LibraryVersion,
    known: Option<&Headers>,
    is_exported: &dyn Fn(&str) -> bool,
) -> Result<Declarations> {
    let request = HeaderRequest {
        paths,
        include: &options.include,
        clang_arg: &options.clang_arg,
        windows_machine: version.windows_machine.as_deref(),
        known,
        option: "`--old-headers` or `--new-headers`",
        without: "only symbols are compared",
    };
    request.read(is_exported)
}

/// Compares the declarations of two versions.
fn compare_declarations<'a>(
    [old, new]: &[Declarations; 2],
    shared_names: impl Iterator<Item = &'a str>,
) -> HeaderComparison {
    let mut comparison = HeaderComparison {
        functions: 0,
        differences: BTreeMap::new(),
        guarded: BTreeMap::new(),
        changes: macro_changes(old, new),
        undeclared: Vec::new(),
    };
    for name in shared_names {
        match (old.functions.get(name), new.functions.get(name)) {
            (Some(old_function), Some(new_function)) => {
                let differences = differences(old_function, new_function, Reserved::Zero);
                let is_superseded = [old, new].map(|version| version.superseded.contains(name));
                if is_superseded == [true; 2] && !differences.is_empty() {
                    comparison.undeclared.push(name.to_owned());
                    continue;
                }
                comparison.functions += 1;
                // The newer library keeps the function for programs with the older headers.
                if differences.is_empty() || is_superseded == [false, true] {
                    continue;
                }
                let is_guarded = differences
                    .iter()
                    .all(|difference| difference.guard.is_some());
                let functions = if is_guarded {
                    &mut comparison.guarded
                } else {
                    &mut comparison.differences
                };
                functions.insert(name.to_owned(), differences);
            }
            (None, None) => comparison.undeclared.push(name.to_owned()),
            (old_function, _) => {
                // A function that is declared under the macro's other name is reported with the macro.
                if !old.plain.contains_key(name) && !new.plain.contains_key(name) {
                    let change = Change::Declared(name.to_owned(), old_function.is_some());
                    comparison.changes.push(change);
                }
            }
        }
    }
    comparison
}

/// Names in sources that the headers of the two versions bind to different functions.
fn macro_changes(old: &Declarations, new: &Declarations) -> Vec<Change> {
    let mut changes = Vec::new();
    for (name, old_function) in bindings(old) {
        let Some(new_function) = bound_function(new, name) else {
            continue;
        };
        if old_function != new_function {
            let declarations = old
                .functions
                .get(old_function)
                .zip(new.functions.get(new_function));
            let differences = declarations.map(|(old, new)| differences(old, new, Reserved::Zero));
            changes.push(Change::Macro(
                name.to_owned(),
                old_function.to_owned(),
                new_function.to_owned(),
                differences.unwrap_or_default(),
            ));
        }
    }
    changes
}

/// Pairs of a name in sources and the function that it is bound to.
fn bindings(version: &Declarations) -> impl Iterator<Item = (&str, &str)> {
    let macros = version
        .plain
        .iter()
        .map(|(name, function)| (name.as_str(), function.as_str()));
    let functions = version
        .functions
        .keys()
        .filter(|name| !version.plain.contains_key(*name))
        .map(|name| (name.as_str(), name.as_str()));
    macros.chain(functions)
}

/// The function that a name in sources is bound to.
fn bound_function<'a>(version: &'a Declarations, name: &'a str) -> Option<&'a str> {
    match version.plain.get(name) {
        Some(function) => Some(function),
        None => version.functions.contains_key(name).then_some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_found_by_soname() {
        fn library_id(soname: &str) -> Option<&'static str> {
            let version = LibraryVersion {
                name: "x".into(),
                functions: Vec::new(),
                soname: Some(soname.into()),
                windows_machine: None,
                shipped: None,
            };
            library(&version).map(|library| library.id.as_str())
        }
        assert_eq!(library_id("libcudart.so.12"), Some("cudart"));
        assert_eq!(library_id("libacme.so.3"), None);
    }
}
