//! GPU functions among the imports and exports of images.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::manifest::RuleLevel;

use crate::evidence::{gpu_library_exporting, has_gpustub, image_names, is_from_vendor};
use crate::gpu_file::{gpu_file, is_standalone, is_system};
use crate::package::{Image, Package};
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
        let provided = |function: &str| {
            let library = gpu_library_exporting(function);
            let needed = || image.needed().iter().filter_map(|name| gpu_file(name));
            library.is_none()
                || needed().any(|gpu| gpu.library.map(|l| &l.id) == library.map(|l| &l.id))
                || package.images().any(|other| {
                    let exports = &other.facts.exports;
                    exports
                        .binary_search_by(|e| e.as_str().cmp(function))
                        .is_ok()
                })
        };
        let imports = image.facts.imports.iter().filter(|import| !import.weak);
        let names = imports.map(|import| import.name.as_str());
        for (name, functions) in by_library(names.filter(|name| !provided(name))) {
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

fn exported_gpu_symbols(package: &Package, findings: &mut Findings) {
    // Needed file and GPU library whose functions an image of the package imports: these exports are used.
    let mut imported: BTreeSet<(&str, &str)> = BTreeSet::new();
    for image in package.images() {
        let imports = image.facts.imports.iter();
        for library in by_library(imports.map(|import| import.name.as_str())).into_keys() {
            let needed = image.needed().iter();
            imported.extend(needed.map(|name| (name.as_str(), library)));
        }
    }
    let is_used = |image: &Image<'_>, library| {
        let mut names = image_names(image);
        names.any(|own| imported.contains(&(own, library)))
    };
    // Stub libraries that are built and shipped together are all reported, or none.
    let used_stubs: BTreeSet<&str> = (package.images())
        .filter(|image| is_named_stub(image))
        .filter(|image| exported(image).into_keys().any(|name| is_used(image, name)))
        .map(|image| image.member.directory())
        .collect();
    for image in package.images() {
        let is_shipped_stub =
            is_named_stub(&image) && used_stubs.contains(image.member.directory());
        if is_from_vendor(&image) || is_stub_library(&image) || is_shipped_stub {
            continue;
        }
        for (name, functions) in exported(&image) {
            if is_used(&image, name) {
                continue;
            }
            findings.on_image(
                &EXPORTED_GPU_SYMBOLS,
                &image,
                format!("exported symbols of lib{name}: {}", listed(&functions)),
                "hide them with a version script, or `-Wl,--exclude-libs,ALL`",
            );
        }
    }
}

/// GPU functions that an image exports, by link name of their library.
fn exported<'a>(image: &Image<'a>) -> BTreeMap<&'static str, BTreeSet<&'a str>> {
    by_library(image.facts.exports.iter().map(String::as_str))
}

/// Whether the file name says that the image is a stub library: `libstub_nvrtc.so`.
fn is_named_stub(image: &Image<'_>) -> bool {
    let name = image.member.file_name();
    let name = name.strip_prefix("lib").unwrap_or(name);
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| matches!(word, "stub" | "stubs"))
}

/// Whether the image is a library of `type = "shared"` in GpuStub.toml: its exports are stubs only.
fn is_stub_library(image: &Image<'_>) -> bool {
    let ours = |name: &String| gpu_library_exporting(name).is_some() || name.starts_with("gpustub");
    has_gpustub(image) && image.facts.other_exports == 0 && image.facts.exports.iter().all(ours)
}

/// Whether the manifests list all functions of this library and of those that it needs.
fn is_leaf(name: &str) -> bool {
    match gpu_file(name) {
        Some(gpu) => is_standalone(&gpu.stem),
        None => is_system(name),
    }
}

/// GPU functions among these names, by link name of their library.
fn by_library<'a>(
    names: impl Iterator<Item = &'a str>,
) -> BTreeMap<&'static str, BTreeSet<&'a str>> {
    let mut found = BTreeMap::<_, BTreeSet<_>>::new();
    for name in names {
        let library =
            gpu_library_exporting(name).filter(|l| !DEFINED_BY_USERS.contains(&l.id.as_str()));
        if let Some(link) = library.and_then(|library| library.link_names.first()) {
            found.entry(link.as_str()).or_default().insert(name);
        }
    }
    found
}

/// The first three names, and the number of the others.
fn listed(names: &BTreeSet<&str>) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(3)
        .map(|name| format!("`{name}`"))
        .collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
