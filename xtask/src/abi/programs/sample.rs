//! Functions in no ABI table: one for each calling shape.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpustub_cdecl::{self as headers, Clang, Declared, Headers, Type, VOID};

use super::arguments::{Argument, Differences, Returned};
use super::shapes::shape;

/// Declares functions of no library, for the shapes that an API does not have.
pub const MADE_UP: &str = include_str!("../../../programs/shapes.h");

/// Whether [`MADE_UP`] declares a name.
fn is_made_up(name: &str) -> bool {
    name.starts_with("shape_")
}

/// Declarations in [`MADE_UP`].
pub fn made_up() -> Result<BTreeMap<String, Declared>, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let clang = Clang::new("clang").directory(directory);
    let read = Headers::including(["shapes.h"]).read(&clang, &is_made_up);
    Ok(read.map_err(|e| e.to_string())?.functions)
}

/// Names in sources that map to a function: those of macros, or its own unless a macro replaces that.
pub fn sources<'a>(read: &'a headers::Version, name: &'a str) -> Vec<&'a str> {
    let macros = read.meant.iter();
    let macros = macros.filter(|(_, meant)| meant.contains(name));
    let mut sources: Vec<&str> = macros.map(|(source, _)| source.as_str()).collect();
    if !read.meant.contains_key(name) && read.functions.contains_key(name) {
        sources.push(name);
    }
    sources
}

/// One name for each shape of the functions that can be called with all of these headers: preferably a
/// real function, then the one with the most memory to guard.
pub fn sample<'a>(
    reads: impl Iterator<Item = &'a headers::Version> + Clone,
    is_unchanged: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let mut best: BTreeMap<String, (_, &String)> = BTreeMap::new();
    let functions = reads.clone().flat_map(|read| &read.functions);
    for (name, declared) in functions {
        let is_called = |read| !sources(read, name).is_empty();
        if is_variadic(declared) || !reads.clone().all(is_called) || !is_unchanged(name) {
            continue;
        }
        let arguments = Differences::default().arguments(declared);
        let is_guarded = |of: &&Argument| matches!(of, Argument::Input(..) | Argument::Output(..));
        let guarded = arguments.iter().filter(is_guarded).count();
        let is_real = !is_made_up(name);
        let rank = (is_real, guarded, Reverse(name));
        let shape = shape(&arguments, &Returned::new(declared));
        let known = best.entry(shape).or_insert((rank, name));
        if rank > known.0 {
            *known = (rank, name);
        }
    }
    best.into_values().map(|(_, name)| name.clone()).collect()
}

fn is_variadic(declared: &Declared) -> bool {
    match declared.types.get(declared.function) {
        // A single part is the result.
        Type::Function(parts) => parts.len() > 1 && parts.last() == Some(&VOID),
        _ => false,
    }
}
