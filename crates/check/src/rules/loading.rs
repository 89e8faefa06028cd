//! Images that the loader rejects, or that crash before `main`: the faults that builds find in their own outputs.
//! Registrations of device code without a device link are findings of `missing-device-link`.

use std::path::Path;

use gpustub_core::device_link::{LoadFacts, load_faults};
use gpustub_core::diag::{self, Code};
use gpustub_core::manifest::RuleLevel;
use gpustub_image::{ImageKind, registered_object};

use super::device_link::is_final;
use super::stubs::{directories_on_disk, is_elsewhere};
use crate::evidence::image_names;
use crate::gpu_file::{gpu_file, is_system};
use crate::gpu_relation::gpu_images;
use crate::package::{ContainerKind, Package, PackageImage};
use crate::rule::{Check, Findings, Rule};
use crate::search_dirs::{LoadedLibraries, SearchDir, installed, resolve_entry};

pub static UNLOADABLE_IMAGE: Rule = Rule {
    code: Code {
        id: diag::UNLOADABLE_IMAGE.id,
        summary: diag::UNLOADABLE_IMAGE.summary,
        explanation: diag::UNLOADABLE_IMAGE.explanation,
    },
    level: RuleLevel::Deny,
    check: Check::Package(unloadable_image),
};

fn unloadable_image(package: &Package, findings: &mut Findings) {
    let libraries = LoadedLibraries::from_package(package);
    for image in gpu_images(package).filter(|image| !image.is_pe()) {
        let facts = LoadFacts {
            is_program: image.facts.kind != ImageKind::Library,
            has_interpreter: image.facts.kind == ImageKind::Program,
            needed: image.needed().to_vec(),
            run_path: image.facts.link.runpath.clone(),
            ..LoadFacts::default()
        };
        let is_unreachable = |name: &str| {
            has_known_run_path(&image, name, &libraries)
                && is_started(&image)
                && (has_device_code(&image, name) || is_missing_part(&image, name))
                && libraries.find(&image, name).is_none()
                && !is_outside(&image, name)
        };
        for fault in load_faults(&facts, &|_| true, &is_unreachable) {
            findings.on_image(&UNLOADABLE_IMAGE, &image, fault.to_string(), fault.help());
        }
    }
}

/// Whether all directories of the run path are known, and none of them contains a library of this name, under any file
/// name. Without a run path, LD_LIBRARY_PATH or the loader's configuration is meant to lead to the libraries, as to those
/// that CMake installs by default; not to those of a final that others find by theirs.
fn has_known_run_path(
    image: &PackageImage<'_>,
    name: &str,
    libraries: &LoadedLibraries<'_>,
) -> bool {
    let Some(run_path) = &image.facts.link.runpath else {
        return is_final(image) && is_found(image, libraries);
    };
    if image.package.kind == ContainerKind::File {
        return run_path.split(':').all(|entry| entry.starts_with('$'))
            && directories_on_disk(image)
                .iter()
                .all(|directory| directory.is_dir());
    }
    run_path
        .split(':')
        .filter(|entry| !entry.is_empty())
        .all(|entry| {
            let SearchDir::Inside(directory) = resolve_entry(image, entry) else {
                return false;
            };
            // The reader follows no links.
            let is_link = image.package.kind == ContainerKind::Directory
                && Path::new(&image.package.name)
                    .join(&directory)
                    .join(name)
                    .is_file();
            let mut is_empty = true;
            for library in image.package.images() {
                let path = installed(&library.member.path);
                if path.rsplit_once('/').map_or("", |(parent, _)| parent) == directory {
                    is_empty = false;
                    if image_names(&library).any(|known| known == name) {
                        return false;
                    }
                }
            }
            !is_empty && !is_link
        })
}

/// Whether another image finds this one by a run path.
fn is_found(image: &PackageImage<'_>, libraries: &LoadedLibraries<'_>) -> bool {
    image.package.images().any(|user| {
        let mut needed = user.needed().iter();
        needed.any(|name| {
            image_names(image).any(|known| known == name)
                && libraries
                    .find(&user, name)
                    .is_some_and(|member| member == image.member)
        })
    })
}

/// Whether the loader may find a library outside of the package. No program that loads a final loads the libraries
/// of the final before.
fn is_outside(image: &PackageImage<'_>, name: &str) -> bool {
    if image.package.kind == ContainerKind::File && is_final(image) {
        let directories = directories_on_disk(image);
        return directories
            .iter()
            .any(|directory| directory.join(name).is_file());
    }
    is_elsewhere(image, name)
}

/// Whether nothing may have loaded the image's libraries before. Who opens other libraries is unknown.
fn is_started(image: &PackageImage<'_>) -> bool {
    image.facts.kind == ImageKind::Program || is_final(image)
}

/// Whether a needed library of the package has relocatable device code.
fn has_device_code(image: &PackageImage<'_>, name: &str) -> bool {
    image.package.images().any(|library| {
        let device = &library.facts.device;
        image_names(&library).any(|known| known == name)
            && !(device.modules.is_empty() && device.links.is_empty())
            && !is_of_distribution(&library)
    })
}

/// Whether a needed library that the package lacks belongs to it: it has objects that a final device-links, or is the
/// final that an image refers to.
fn is_missing_part(image: &PackageImage<'_>, name: &str) -> bool {
    // Libraries of distributions have a version in their names, those that a build links mostly none.
    let is_other = is_system(name)
        || !name.ends_with(".so")
        || gpu_file(name).is_some()
        || name.starts_with("libgpustub_");
    let mut images = image.package.images();
    if is_other
        || is_of_distribution(image)
        || images.any(|library| image_names(&library).any(|known| known == name))
    {
        return false;
    }
    let devices = || image.package.images().map(|library| &library.facts.device);
    if is_final(image) {
        let mut links = image.facts.device.links.iter();
        return links
            .any(|id| devices().all(|device| device.modules.iter().all(|known| known.id != *id)));
    }
    let mut calls = image
        .facts
        .imports
        .iter()
        .filter_map(|import| registered_object(&import.name))
        .filter(|_| name.ends_with("_final.so"));
    calls.any(|id| devices().all(|device| !device.links.contains(id)))
}

/// Whether the loader of a distribution finds the image in its directories.
fn is_of_distribution(image: &PackageImage<'_>) -> bool {
    let mut parts = image.member.directory().split('/');
    parts.any(|part| part == "usr")
}
