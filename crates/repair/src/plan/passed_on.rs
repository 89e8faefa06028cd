//! Images that use a library only because another image of the process needs it. The loader binds functions
//! without a version to any library of the process, so an image works without the library in its own
//! `DT_NEEDED` until the other image is repaired.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::evidence::is_from_vendor;
use gpustub_check::{ImageId, LoadGraph, PackageImage};
use gpustub_image::Import;

use crate::kept::KeptLibraries;
use crate::libraries::{Functions, KnownLibraries, Requirement};
use crate::names::is_stub_file;

/// Functions of a replaced library that an image uses through others.
#[derive(Debug, Default)]
pub struct PassedOn {
    /// The libraries, which the image does not need itself.
    pub requirements: Vec<Requirement>,
    /// Images that need them.
    pub through: BTreeSet<ImageId>,
    /// One of the functions.
    pub function: String,
}

impl PassedOn {
    /// Adds a library that the image imports a function of, and uses through another image.
    fn add(&mut self, requirement: &Requirement, through: ImageId, import: &Import) {
        self.through.insert(through);
        if self.function.is_empty() {
            self.function.clone_from(&import.name);
        }
        let file = import.version.as_ref().map(|version| version.file.clone());
        match self
            .requirements
            .iter_mut()
            .find(|known| known.library.id == requirement.library.id)
        {
            Some(known) => {
                let new_file = file.filter(|file| !known.files.contains(file));
                known.files.extend(new_file);
            }
            None => self.requirements.push(Requirement {
                library: requirement.library,
                files: file.into_iter().collect(),
                nodes: BTreeSet::new(),
                majors: requirement.majors.clone(),
            }),
        }
    }
}

/// Images that use the replaced libraries of others, by the libraries that each edited image needs. Not those of Windows, whose
/// imports name a DLL each.
pub fn find(
    graph: &LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    known: &KnownLibraries,
    requirements: &BTreeMap<ImageId, Vec<Requirement>>,
) -> BTreeMap<ImageId, PassedOn> {
    let functions: BTreeMap<ImageId, Functions> = requirements
        .iter()
        .map(|(&id, requirements)| (id, Functions::new(requirements)))
        .collect();
    let mut users: BTreeMap<ImageId, PassedOn> = BTreeMap::new();
    for (root, _) in graph.entries() {
        let process = graph.loaded_with(root);
        let edited: Vec<ImageId> = process
            .iter()
            .copied()
            .filter(|id| requirements.contains_key(id))
            .collect();
        if edited.is_empty() {
            continue;
        }
        let exports: BTreeSet<&str> = process
            .iter()
            .map(|&id| graph.image(id))
            .filter(|image| kept.provides(image))
            .flat_map(|image| image.facts.exports.iter().map(String::as_str))
            .collect();
        for &id in &process {
            let image = graph.image(id);
            if image.is_pe() || is_from_vendor(&image) || is_stub_file(image.member.file_name()) {
                continue;
            }
            for import in &image.facts.imports {
                let provided = requirements.get(&id).zip(functions.get(&id));
                if needs_library_of(&image, provided, known, import)
                    || (import.version.is_none() && exports.contains(import.name.as_str()))
                {
                    continue;
                }
                for &through in edited.iter().filter(|&&edited_id| edited_id != id) {
                    if let Some(requirement) =
                        provider(&requirements[&through], &functions[&through], import)
                    {
                        users
                            .entry(id)
                            .or_default()
                            .add(requirement, through, import);
                    }
                }
            }
        }
    }
    users
}

/// Whether a library that the image needs itself has the function. `replaced` are those that its edit replaces.
fn needs_library_of(
    image: &PackageImage<'_>,
    replaced: Option<(&Vec<Requirement>, &Functions)>,
    known: &KnownLibraries,
    import: &Import,
) -> bool {
    if let Some(version) = &import.version {
        return image.needed().contains(&version.file);
    }
    let is_replaced = |name: &String| {
        replaced.is_some_and(|(requirements, _)| {
            let mut requirements = requirements.iter();
            requirements.any(|requirement| requirement.files.contains(name))
        })
    };
    let has_stub = |(requirements, functions): (&Vec<Requirement>, &Functions)| {
        provider(requirements, functions, import).is_some()
    };
    // An image keeps what its edit does not replace.
    replaced.is_some_and(has_stub)
        || image
            .needed()
            .iter()
            .filter(|name| !is_replaced(name))
            .filter_map(|name| known.file(name)?.library)
            .any(|library| !library.symbols.lookup(&import.name).is_empty())
}

/// The required library that has the function.
fn provider<'r>(
    requirements: &'r [Requirement],
    functions: &Functions,
    import: &Import,
) -> Option<&'r Requirement> {
    requirements.iter().find(|requirement| {
        let is_named = import.version.as_ref().is_none_or(|version| {
            requirement.files.contains(&version.file) || requirement.nodes.contains(&version.node)
        });
        is_named && functions.owner(requirement.library, &import.name).is_some()
    })
}
