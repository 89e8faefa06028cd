//! Images that use a library only because another image of the process needs it. The loader binds functions
//! without a version to any library of the process, so an image works without the library in its own
//! `DT_NEEDED` until the other image is repaired.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::evidence::is_from_vendor;
use gpustub_check::gpu_file::gpu_file;
use gpustub_check::{Image, ImageId, LoadGraph};
use gpustub_image::Import;

use crate::libraries::{Functions, Required};
use crate::names::is_stub_file;

/// Functions of a replaced library that an image uses through others.
#[derive(Debug, Default)]
pub struct PassedOn {
    /// The libraries, which the image does not need itself.
    pub required: Vec<Required>,
    /// Images that need them.
    pub through: BTreeSet<ImageId>,
    /// One of the functions.
    pub function: String,
}

/// Images that use the replaced libraries of others, by the libraries that each edited image needs.
pub fn find(
    graph: &LoadGraph<'_>,
    edited: &BTreeMap<ImageId, Vec<Required>>,
) -> BTreeMap<ImageId, PassedOn> {
    let functions = edited.iter().map(|(&id, all)| (id, Functions::new(all)));
    let functions: BTreeMap<ImageId, Functions> = functions.collect();
    let mut found = BTreeMap::new();
    for (root, _) in graph.entries() {
        let process = graph.loaded_with(root);
        let others: Vec<ImageId> = process
            .iter()
            .copied()
            .filter(|id| edited.contains_key(id))
            .collect();
        if others.is_empty() {
            continue;
        }
        let exports = process.iter().map(|&id| graph.image(id));
        let exports = exports.filter(|image| !is_from_vendor(image));
        let exports: BTreeSet<&str> = exports
            .flat_map(|image| image.facts.exports.iter().map(String::as_str))
            .collect();
        for &id in &process {
            let image = graph.image(id);
            if is_from_vendor(&image) || is_stub_file(image.member.file_name()) {
                continue;
            }
            for import in &image.facts.imports {
                if is_own(&image, edited.get(&id), functions.get(&id), import)
                    || (import.version.is_none() && exports.contains(import.name.as_str()))
                {
                    continue;
                }
                for &other in others.iter().filter(|&&other| other != id) {
                    if let Some(one) = provider(&edited[&other], &functions[&other], import) {
                        add(found.entry(id).or_default(), one, other, import);
                    }
                }
            }
        }
    }
    found
}

/// Whether a library that the image needs itself has the function.
fn is_own(
    image: &Image<'_>,
    required: Option<&Vec<Required>>,
    functions: Option<&Functions>,
    import: &Import,
) -> bool {
    if let Some(version) = &import.version {
        return image.needed().contains(&version.file);
    }
    let (required, functions) = match (required, functions) {
        (Some(required), Some(functions)) => (&required[..], functions),
        // An image that is not edited keeps what it needs.
        _ => {
            let libraries = image
                .needed()
                .iter()
                .filter_map(|name| gpu_file(name)?.library);
            let mut libraries = libraries.map(|library| library.symbols.lookup(&import.name));
            return libraries.any(|symbols| !symbols.is_empty());
        }
    };
    provider(required, functions, import).is_some()
}

/// The required library that has the function.
fn provider<'r>(
    required: &'r [Required],
    functions: &Functions,
    import: &Import,
) -> Option<&'r Required> {
    required.iter().find(|one| {
        let is_named = import.version.as_ref().is_none_or(|version| {
            one.files.contains(&version.file) || one.nodes.contains(&version.node)
        });
        is_named && functions.owner(one.library, &import.name).is_some()
    })
}

fn add(passed: &mut PassedOn, one: &Required, through: ImageId, import: &Import) {
    passed.through.insert(through);
    if passed.function.is_empty() {
        passed.function.clone_from(&import.name);
    }
    let file = import.version.as_ref().map(|version| version.file.clone());
    let mut required = passed.required.iter_mut();
    match required.find(|other| other.library.id == one.library.id) {
        Some(other) => {
            let new = file.filter(|file| !other.files.contains(file));
            other.files.extend(new);
        }
        None => passed.required.push(Required {
            library: one.library,
            files: file.into_iter().collect(),
            nodes: BTreeSet::new(),
            majors: one.majors.clone(),
        }),
    }
}
