//! Comparison of declarations in the headers of two versions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gpustub_cdecl::{Headers, Reserved, Version, differences};
use gpustub_core::library::Library;
use gpustub_workspace::error::Result;

use super::change::{Change, Differences};
use super::side::Side;
use crate::c_headers::Request;
use crate::cli::DiffHeaders;
use crate::shipped::with_soname;

/// Result of the comparison.
pub struct Compared {
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
pub fn compare(options: &DiffHeaders, old: &Side, new: &Side) -> Result<Option<Compared>> {
    if options.old_headers.is_empty() {
        return Ok(None);
    }
    let known = match (library(old), library(new)) {
        (Some(a), Some(b)) if a.id != b.id => None,
        (a, b) => a
            .or(b)
            .and_then(|library| Headers::for_library(&library.id)),
    };
    let names = |side: &Side| -> BTreeSet<String> {
        let names = side.functions.iter();
        names.map(|symbol| symbol.name.clone()).collect()
    };
    let names = [names(old), names(new)];
    let is_theirs = |name: &str| names.iter().any(|names| names.contains(name));
    let read = |paths| read(paths, options, known, &is_theirs);
    let versions = [read(&options.old_headers)?, read(&options.new_headers)?];
    let both = names[0].intersection(&names[1]);
    Ok(Some(compare_declarations(&versions, both)))
}

/// The shipped library that a side is a version of.
fn library(side: &Side) -> Option<&'static Library> {
    match (side.shipped, &side.soname) {
        (Some((id, ..)), _) => Library::builtin(id),
        (None, Some(soname)) => with_soname(soname),
        (None, None) => None,
    }
}

/// Reads the headers of one side.
fn read(
    paths: &[PathBuf],
    options: &DiffHeaders,
    known: Option<&Headers>,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Version> {
    let request = Request {
        paths,
        include: &options.include,
        clang_arg: &options.clang_arg,
        known,
        option: "`--old-headers` or `--new-headers`",
        without: "only symbols are compared",
    };
    request.read(wanted)
}

/// Compares the declarations of two versions.
fn compare_declarations<'a>(
    versions: &[Version; 2],
    both: impl Iterator<Item = &'a String>,
) -> Compared {
    let [old, new] = versions;
    let mut found = Compared {
        functions: 0,
        differences: BTreeMap::new(),
        guarded: BTreeMap::new(),
        changes: Vec::new(),
        undeclared: Vec::new(),
    };
    for (name, was) in sources(old) {
        let Some(is) = meaning(new, name) else {
            continue;
        };
        if was != is {
            let declared = old.functions.get(was).zip(new.functions.get(is));
            let differences = declared.map(|(a, b)| differences(a, b, Reserved::Zero));
            let [name, was, is] = [name, was, is].map(str::to_owned);
            let change = Change::Macro(name, was, is, differences.unwrap_or_default());
            found.changes.push(change);
        }
    }
    for name in both {
        match (old.functions.get(name), new.functions.get(name)) {
            (Some(was), Some(is)) => {
                let differences = differences(was, is, Reserved::Zero);
                let is_superseded = [old, new].map(|version| version.superseded.contains(name));
                if is_superseded == [true; 2] && !differences.is_empty() {
                    found.undeclared.push(name.clone());
                    continue;
                }
                found.functions += 1;
                // The newer library keeps the function for programs with the older headers.
                if differences.is_empty() || is_superseded == [false, true] {
                    continue;
                }
                let is_guarded = differences.iter().all(|found| found.guard.is_some());
                let of = if is_guarded {
                    &mut found.guarded
                } else {
                    &mut found.differences
                };
                of.insert(name.clone(), differences);
            }
            (None, None) => found.undeclared.push(name.clone()),
            (was, _) => {
                // Declared under the macro's other name: reported above.
                let is_moved = |v: &Version| v.plain.contains_key(name);
                if !is_moved(old) && !is_moved(new) {
                    let change = Change::Declared(name.clone(), was.is_some());
                    found.changes.push(change);
                }
            }
        }
    }
    found
}

/// Pairs of a name in sources and the function that it is bound to.
fn sources(version: &Version) -> impl Iterator<Item = (&str, &str)> {
    let macros = version.plain.iter().map(|(a, b)| (a.as_str(), b.as_str()));
    let own = version.functions.keys().map(String::as_str);
    let own = own.filter(|name| !version.plain.contains_key(*name));
    macros.chain(own.map(|name| (name, name)))
}

/// The function that a name in sources is bound to.
fn meaning<'a>(version: &'a Version, name: &'a str) -> Option<&'a str> {
    match version.plain.get(name) {
        Some(other) => Some(other),
        None => version.functions.contains_key(name).then_some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_found_by_soname() {
        let side = |soname: &str| Side {
            name: "x".into(),
            functions: Vec::new(),
            soname: Some(soname.into()),
            shipped: None,
        };
        let id = |soname| library(&side(soname)).map(|library| library.id.as_str());
        assert_eq!(id("libcudart.so.12"), Some("cudart"));
        assert_eq!(id("libacme.so.3"), None);
    }
}
