//! Functions that files compiled against a library's headers import.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::diag::Origin;
use gpustub_core::library::Library;
use gpustub_image::ImageFacts;

use crate::gpu_file::{gpu_file, impersonated_library, is_vendor_file};
use crate::package::{Content, Package};

/// The names that each object file, static library and image of a package imports, and that the
/// library may define, by location, sorted by display path. Files of vendors, and images that were linked to
/// the library itself, are left out: they do not depend on a program's headers.
pub fn imports<'a>(package: &'a Package, library: &Library) -> Vec<(Origin, BTreeSet<&'a str>)> {
    let mut files = BTreeMap::<String, (Origin, BTreeSet<&str>)>::new();
    for member in &package.members {
        let (imports, origin) = match &member.content {
            Content::Object(facts) => {
                // A static library is one entry: its objects are compiled together.
                let origin = match &member.library {
                    Some(library) => package.location_of(library),
                    None => package.location(member),
                };
                (&facts.imports, origin)
            }
            Content::Image(facts) if needs_library(facts, library) => continue,
            Content::Image(facts) => (&facts.imports, package.location(member)),
            _ => continue,
        };
        let file = origin.display().into_owned();
        let name = file.rsplit(['/', '!']).next().unwrap_or_default();
        if is_vendor_file(name) || impersonated_library(name).is_some() {
            continue;
        }
        // A weak import may only test whether the library has the function.
        let mut names = imports
            .iter()
            .filter(|import| !import.weak)
            .map(|import| import.name.as_str())
            .peekable();
        if names.peek().is_some() {
            let (_, functions) = files.entry(file).or_insert((origin, BTreeSet::new()));
            functions.extend(names);
        }
    }
    files.into_values().collect()
}

fn needs_library(facts: &ImageFacts, library: &Library) -> bool {
    facts
        .link
        .needed
        .iter()
        .filter_map(|name| gpu_file(name)?.library)
        .any(|needed| needed.id == library.id)
}
