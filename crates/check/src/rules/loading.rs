//! Images that the loader rejects, or that crash before `main`: the faults that builds find in their own outputs.
//! Registrations of device code without a device link are findings of `missing-device-link`.

use gpustub_core::device_link::{LoadFacts, load_faults};
use gpustub_core::diag::{self, Code};
use gpustub_core::manifest::RuleLevel;
use gpustub_image::{ImageKind, REGISTER};

use super::device_link::is_final;
use super::stubs::is_elsewhere;
use crate::evidence::image_names;
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
    for image in gpu_images(package) {
        let facts = LoadFacts {
            is_program: image.facts.kind != ImageKind::Library,
            has_interpreter: image.facts.kind == ImageKind::Program,
            needed: image.needed().to_vec(),
            run_path: image.facts.link.runpath.clone(),
            ..LoadFacts::default()
        };
        let is_unreachable = |name: &str| {
            has_known_run_path(&image, name)
                && is_started(&image)
                && has_device_code(&image, name)
                && libraries.find(&image, name).is_none()
                && !is_elsewhere(&image, name)
        };
        for fault in load_faults(&facts, &|_| true, &is_unreachable) {
            findings.on_image(&UNLOADABLE_IMAGE, &image, fault.to_string(), fault.help());
        }
    }
}

/// Whether all directories of the run path are known, and none of them contains a library of this name, under any file
/// name. Without a run path, LD_LIBRARY_PATH or the loader's configuration is meant to lead to the libraries, as to those
/// that CMake installs by default. Symbolic links of a package are unknown.
fn has_known_run_path(image: &PackageImage<'_>, name: &str) -> bool {
    let Some(run_path) = &image.facts.link.runpath else {
        return false;
    };
    run_path
        .split(':')
        .filter(|entry| !entry.is_empty())
        .all(|entry| {
            let SearchDir::Inside(directory) = resolve_entry(image, entry) else {
                return false;
            };
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
            !is_empty
        })
}

/// Whether nothing may have loaded the image's libraries before. Who opens other libraries is unknown.
fn is_started(image: &PackageImage<'_>) -> bool {
    image.facts.kind == ImageKind::Program || is_final(image)
}

/// Whether a needed library has relocatable device code, and so belongs to the package. Of a single program, only
/// its references to a final are known.
fn has_device_code(image: &PackageImage<'_>, name: &str) -> bool {
    if image.package.kind == ContainerKind::File {
        let refers_to_final =
            (image.facts.imports.iter()).any(|import| import.name.starts_with(REGISTER));
        return refers_to_final && name.ends_with("_final.so");
    }
    image.package.images().any(|library| {
        let device = &library.facts.device;
        let is_system = library
            .member
            .directory()
            .split('/')
            .any(|part| part == "usr");
        image_names(&library).any(|known| known == name)
            && !(device.modules.is_empty() && device.links.is_empty())
            && !is_system
    })
}
