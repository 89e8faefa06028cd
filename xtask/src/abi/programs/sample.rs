//! Functions in no ABI table: one for each calling shape.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpustub_cdecl::{self as headers, Clang, DeclaredFunction, Headers, Type, VOID};

use super::arguments::{Argument, Differences, Returned};
use super::shapes::shape;

/// Declares functions of no library, for the shapes that an API does not have.
pub const MADE_UP: &str = include_str!("../../../programs/shapes.h");

/// Whether [`MADE_UP`] declares a name.
fn is_made_up(name: &str) -> bool {
    name.starts_with("shape_")
}

/// Declarations in [`MADE_UP`].
pub fn made_up() -> Result<BTreeMap<String, DeclaredFunction>, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let clang = Clang::new("clang").directory(directory);
    let headers = Headers::including(["shapes.h"])
        .read(&clang, &is_made_up)
        .map_err(|e| e.to_string())?;
    Ok(headers.functions)
}

/// Names in sources that map to a function: those of macros, or its own unless a macro replaces that.
pub fn sources<'a>(headers: &'a headers::Declarations, name: &'a str) -> Vec<&'a str> {
    let mut sources = Vec::new();
    for (source, functions) in &headers.meant {
        if functions.contains(name) {
            sources.push(source.as_str());
        }
    }
    if !headers.meant.contains_key(name) && headers.functions.contains_key(name) {
        sources.push(name);
    }
    sources
}

/// One name for each shape of the functions that can be called with all of these headers: preferably a
/// real function, then the one with the most memory to guard.
pub fn sample<'a>(
    versions: impl Iterator<Item = &'a headers::Declarations> + Clone,
    may_be_sampled: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let mut best: BTreeMap<String, (_, &String)> = BTreeMap::new();
    for (name, declared) in versions.clone().flat_map(|version| &version.functions) {
        if is_variadic(declared)
            || versions
                .clone()
                .any(|version| sources(version, name).is_empty())
            || !may_be_sampled(name)
        {
            continue;
        }
        let arguments = Differences::default().arguments(declared);
        let guarded = arguments
            .iter()
            .filter(|argument| matches!(argument, Argument::Input(..) | Argument::Output(..)))
            .count();
        let is_real = !is_made_up(name);
        let rank = (is_real, guarded, Reverse(name));
        let shape = shape(&arguments, &Returned::new(declared));
        let representative = best.entry(shape).or_insert((rank, name));
        if rank > representative.0 {
            *representative = (rank, name);
        }
    }
    best.into_values().map(|(_, name)| name.clone()).collect()
}

fn is_variadic(declared: &DeclaredFunction) -> bool {
    match declared.types.get(declared.function) {
        // A single part is the result.
        Type::Function(parts) => parts.len() > 1 && parts.last() == Some(&VOID),
        _ => false,
    }
}
