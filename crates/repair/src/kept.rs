//! GPU libraries of the package that its images keep. A stub finds those of the system, so that a machine without them
//! would lose what the package brings.

use std::collections::BTreeSet;

use gpustub_check::evidence::{image_names, is_found_as, is_from_vendor};
use gpustub_check::gpu_file::GpuFile;
use gpustub_check::{ImageId, LoadGraph, PackageImage};
use gpustub_core::library::Role;

use crate::libraries::KnownLibraries;
use crate::package_plan::PlanOptions;

/// Names in DT_NEEDED that images find in the package, and keep.
pub struct KeptLibraries<'a> {
    names: BTreeSet<&'a str>,
    /// Libraries that the repair knows.
    pub known: &'a KnownLibraries,
}

impl<'a> KeptLibraries<'a> {
    /// Kept libraries of a package.
    pub fn find(graph: &'a LoadGraph<'_>, options: &'a PlanOptions) -> Self {
        let known = &options.known;
        let needed: BTreeSet<&str> = graph
            .entries()
            .filter(|(_, image)| !is_from_vendor(image))
            .flat_map(|(_, image)| image.needed().iter().chain(&image.facts.delayed))
            .map(String::as_str)
            .collect();
        let kept = needed.into_iter().filter(|name| {
            graph
                .entries()
                .filter(|(_, image)| is_found_as(image, name))
                .any(|(id, image)| {
                    // A user-defined library of the package is itself repaired.
                    let is_usable =
                        known.is_user_defined_image(image) || is_complete(graph, id, known);
                    stays(image, options) && is_usable
                })
        });
        Self {
            names: kept.collect(),
            known,
        }
    }

    /// Whether images keep the library that they need by this name.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether an image of the package defines functions after the repair: a vendor's, or a user-defined library, only if it
    /// is kept.
    pub fn provides(&self, image: &PackageImage<'_>) -> bool {
        !self.known.contains_image(image) || image_names(image).any(|name| self.contains(name))
    }
}

/// Whether the library works on every machine, and the user did not ask for the system's.
fn stays(image: &PackageImage<'_>, options: &PlanOptions) -> bool {
    let Some(file) = image_names(image).find_map(|name| options.known.file(name)) else {
        return true;
    };
    match file.role {
        Role::Loader => true,
        Role::Driver => file.is_portable(),
        Role::Toolkit => !(options.removes_copies && is_copy(&file)),
    }
}

/// Whether a tool grafted the file into the package.
pub fn is_copy(file: &GpuFile) -> bool {
    file.hashed && file.role != Role::Loader
}

/// Whether the package has all parts of a toolkit that the library needs.
fn is_complete(graph: &LoadGraph<'_>, library: ImageId, known: &KnownLibraries) -> bool {
    graph.loaded_with(library).into_iter().all(|loaded| {
        graph.image(loaded).needed().iter().all(|name| {
            known
                .file(name)
                .is_none_or(|file| file.role != Role::Toolkit)
                || graph.entries().any(|(_, image)| is_found_as(image, name))
        })
    })
}
