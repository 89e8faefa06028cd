//! Stubs: their names, their generator, and the images that they are linked into.

use std::path::{Path, PathBuf};

use gpustub_core::code;
use gpustub_core::manifest::RuleLevel;
use gpustub_image::ImageKind;

use crate::evidence::{gpu_library_exporting, has_gpustub, image_names, implib_library};
use crate::gpu_file::{gpu_file, impersonated_library};
use crate::package::{ContainerKind, Package, PackageImage};
use crate::rule::{Check, Findings, Rule};
use crate::search_dirs::{LoadedLibraries, SearchDir, resolve_entry};

pub static AMBIGUOUS_STUB_NAME: Rule = Rule {
    code: code!(
        "ambiguous-stub-name",
        "stub library whose name matches the real library"
    ),
    level: RuleLevel::Deny,
    check: Check::Image(ambiguous_stub_name),
};

pub static ABORTING_STUBS: Rule = Rule {
    code: code!(
        "aborting-stubs",
        "stubs that abort where the library is missing"
    ),
    level: RuleLevel::Warn,
    check: Check::Image(aborting_stubs),
};

pub static STUBS_IN_STATIC_EXECUTABLE: Rule = Rule {
    code: code!("stubs-in-static-executable", "stubs in a static executable"),
    level: RuleLevel::Deny,
    check: Check::Image(stubs_in_static_executable),
};

pub static MISSING_STUB_LIBRARY: Rule = Rule {
    code: code!(
        "missing-stub-library",
        "shared stubs that the loader does not find"
    ),
    level: RuleLevel::Deny,
    check: Check::Package(missing_stub_library),
};

fn missing_stub_library(package: &Package, findings: &mut Findings) {
    let libraries = LoadedLibraries::from_package(package);
    for image in package.images() {
        let missing: Vec<String> = image
            .needed()
            .iter()
            .filter(|name| name.starts_with("libgpustub_") && name.ends_with(".so"))
            .filter(|name| libraries.find(&image, name).is_none() && !is_elsewhere(&image, name))
            .map(|name| format!("`{name}`"))
            .collect();
        if !missing.is_empty() {
            findings.on_image(
                &MISSING_STUB_LIBRARY,
                &image,
                format!("no runpath entry leads to the stubs {}", missing.join(", ")),
                "ship the library in the directory of the image, linked with `-Wl,-rpath,$ORIGIN`",
            );
        }
    }
}

/// Whether the loader may find a library outside of the package. Of a single file, the directory on this
/// machine is known; the program that loads a single library is not, and may have loaded the stubs.
pub(super) fn is_elsewhere(image: &PackageImage<'_>, name: &str) -> bool {
    if image.package.kind == ContainerKind::File && image.facts.kind == ImageKind::Library {
        return true;
    }
    if image.package.kind != ContainerKind::File {
        return image.runpath().any(|entry| {
            matches!(
                resolve_entry(image, entry),
                SearchDir::Outside | SearchDir::Elsewhere
            )
        });
    }
    directories_on_disk(image)
        .iter()
        .any(|directory| directory.join(name).is_file())
}

/// Directories of this machine in the run path of an image that is a package by itself.
pub(super) fn directories_on_disk(image: &PackageImage<'_>) -> Vec<PathBuf> {
    // The loader expands $ORIGIN after it has resolved links.
    let Ok(file) = Path::new(&image.package.name).canonicalize() else {
        return Vec::new();
    };
    let origin = file.parent().unwrap_or(Path::new("/"));
    let entries = image.runpath().map(|entry| {
        let relative = ["$ORIGIN", "${ORIGIN}"]
            .iter()
            .find_map(|token| entry.strip_prefix(token));
        match relative {
            Some(relative) => origin.join(relative.trim_start_matches('/')),
            None => origin.join(entry),
        }
    });
    entries.collect()
}

fn ambiguous_stub_name(image: &PackageImage<'_>, findings: &mut Findings) {
    let has_stubs = implib_library(image).is_some()
        || (has_gpustub(image)
            && image
                .facts
                .exports
                .iter()
                .any(|name| gpu_library_exporting(name).is_some()));
    for name in image_names(image) {
        let Some(stem) = impersonated_library(name) else {
            continue;
        };
        let has_library_name = gpu_file(name).is_some();
        let is_named_stub = !has_library_name && name.to_ascii_lowercase().contains("stub");
        // A search for a part of a name that finds libcuda finds libcudart, in any process with a runtime.
        let matches_search = has_library_name || stem != "cuda";
        if (is_named_stub || has_stubs) && matches_search {
            findings.on_image(
                &AMBIGUOUS_STUB_NAME,
                image,
                format!("stub library `{name}` matches a search for `lib{stem}`"),
                &format!("rename file and soname to `libstub_{stem}.so`"),
            );
            return;
        }
    }
}

fn aborting_stubs(image: &PackageImage<'_>, findings: &mut Findings) {
    if let Some(library) = implib_library(image) {
        findings.on_image(
            &ABORTING_STUBS,
            image,
            format!("Implib.so stubs for `{library}` abort the program if the library is missing"),
            "declare the library in GpuStub.toml: its stubs return the API's own error",
        );
    }
}

fn stubs_in_static_executable(image: &PackageImage<'_>, findings: &mut Findings) {
    if image.facts.kind == ImageKind::Static && has_gpustub(image) {
        findings.on_image(
            &STUBS_IN_STATIC_EXECUTABLE,
            image,
            "stubs in a static executable cannot load the real libraries".into(),
            "link the C library dynamically: `-C target-feature=-crt-static`",
        );
    }
}
