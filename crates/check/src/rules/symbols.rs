//! GPU functions among the imports and exports of images.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::manifest::RuleLevel;

use crate::evidence::{
    gpu_libraries_exporting, gpu_library_exporting, gpu_library_meant, has_gpustub, image_names,
    is_from_vendor,
};
use crate::gpu_file::{gpu_file, is_standalone, is_system};
use crate::package::{Package, PackageImage};
use crate::rule::{Check, Findings, Rule};

pub static UNRESOLVED_GPU_SYMBOL: Rule = Rule {
    code: code!("unresolved-gpu-symbol", "GPU function without a provider"),
    level: RuleLevel::Deny,
    check: Check::Package(unresolved),
};

pub static EXPORTED_GPU_SYMBOLS: Rule = Rule {
    code: code!(
        "exported-gpu-symbols",
        "exported GPU functions that other libraries can bind to"
    ),
    level: RuleLevel::Warn,
    check: Check::Package(exported_gpu_symbols),
};

/// Libraries whose users also define the functions, by headers of OpenCL's drivers and of NVTX.
const DEFINED_BY_USERS: [&str; 2] = ["opencl", "nvtx"];

fn unresolved(package: &Package, findings: &mut Findings) {
    for image in package.images() {
        if is_from_vendor(&image) || !image.needed().iter().all(|name| is_leaf(name)) {
            continue;
        }
        let undefined = image
            .facts
            .imports
            .iter()
            .filter(|import| !import.weak && !is_provided(&image, &import.name))
            .map(|import| import.name.as_str());
        for (name, functions) in by_library(&image, undefined) {
            findings.on_image(
                &UNRESOLVED_GPU_SYMBOL,
                &image,
                format!(
                    "undefined symbols of lib{name}: {}; no DT_NEEDED library provides them",
                    listed(&functions),
                ),
                "declare the library in GpuStub.toml, so that its stubs are linked into the image",
            );
        }
    }
}

/// Whether the image needs the library of a GPU function, or an image of the package exports the function.
fn is_provided(image: &PackageImage<'_>, function: &str) -> bool {
    let mut libraries = gpu_libraries_exporting(function).peekable();
    if libraries.peek().is_none() {
        return true;
    }
    let needs_library = libraries.any(|library| {
        image
            .needed()
            .iter()
            .filter_map(|name| gpu_file(name)?.library)
            .any(|needed| needed.id == library.id)
    });
    needs_library
        || image.package.images().any(|provider| {
            provider
                .facts
                .exports
                .binary_search_by(|export| export.as_str().cmp(function))
                .is_ok()
        })
}

/// Pairs of a needed file and a GPU library whose functions an image imports.
type UsedExports<'a> = BTreeSet<(&'a str, &'static str)>;

fn exported_gpu_symbols(package: &Package, findings: &mut Findings) {
    let mut used = UsedExports::new();
    for image in package.images() {
        let imports = image.facts.imports.iter();
        for library in by_library(&image, imports.map(|import| import.name.as_str())).into_keys() {
            used.extend(image.needed().iter().map(|name| (name.as_str(), library)));
        }
    }
    // Stub libraries that are built and shipped together are all reported, or none.
    let mut stub_directories = BTreeSet::new();
    for image in package.images() {
        if is_named_stub(&image)
            && exported(&image)
                .into_keys()
                .any(|library| is_used(&used, &image, library))
        {
            stub_directories.insert(image.member.directory());
        }
    }
    for image in package.images() {
        let is_shipped_stub =
            is_named_stub(&image) && stub_directories.contains(image.member.directory());
        if is_from_vendor(&image) || is_stub_library(&image) || is_shipped_stub {
            continue;
        }
        for (library, functions) in exported(&image) {
            if is_used(&used, &image, library) {
                continue;
            }
            findings.on_image(
                &EXPORTED_GPU_SYMBOLS,
                &image,
                format!("exported symbols of lib{library}: {}", listed(&functions)),
                "hide them with a version script, or `-Wl,--exclude-libs,ALL`",
            );
        }
    }
}

/// Whether an image of the package uses functions of a library that this one exports.
fn is_used(used: &UsedExports<'_>, image: &PackageImage<'_>, library: &'static str) -> bool {
    image_names(image).any(|name| used.contains(&(name, library)))
}

/// GPU functions that an image exports, by link name of their library.
fn exported<'a>(image: &PackageImage<'a>) -> BTreeMap<&'static str, BTreeSet<&'a str>> {
    by_library(image, image.facts.exports.iter().map(String::as_str))
}

/// Whether the file name says that the image is a stub library: `libstub_nvrtc.so`.
fn is_named_stub(image: &PackageImage<'_>) -> bool {
    let file_name = image.member.file_name();
    file_name
        .strip_prefix("lib")
        .unwrap_or(file_name)
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| matches!(word, "stub" | "stubs"))
}

/// Whether the image is a library of `type = "shared"` in GpuStub.toml: its exports are stubs only.
fn is_stub_library(image: &PackageImage<'_>) -> bool {
    has_gpustub(image)
        && image.facts.other_exports == 0
        && image
            .facts
            .exports
            .iter()
            .all(|name| gpu_library_exporting(name).is_some() || name.starts_with("gpustub"))
}

/// Whether the manifests list all functions of this library and of those that it needs.
fn is_leaf(name: &str) -> bool {
    match gpu_file(name) {
        Some(gpu) => is_standalone(&gpu.stem),
        None => is_system(name),
    }
}

/// GPU functions among these names of an image, by link name of their library.
fn by_library<'a>(
    image: &PackageImage<'_>,
    names: impl Iterator<Item = &'a str>,
) -> BTreeMap<&'static str, BTreeSet<&'a str>> {
    let mut functions = BTreeMap::<_, BTreeSet<_>>::new();
    for name in names {
        let library = gpu_library_meant(image, name)
            .filter(|library| !DEFINED_BY_USERS.contains(&library.id.as_str()));
        if let Some(link_name) = library.and_then(|library| library.link_names.first()) {
            functions
                .entry(link_name.as_str())
                .or_default()
                .insert(name);
        }
    }
    functions
}

/// The first three names, and the number of the others.
fn listed(names: &BTreeSet<&str>) -> String {
    let first: Vec<String> = names
        .iter()
        .take(3)
        .map(|name| format!("`{name}`"))
        .collect();
    match names.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
