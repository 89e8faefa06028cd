//! GPU libraries bundled in a package, or missing from it.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::diag::listing;
use gpustub_core::library::{Preload, Role};
use gpustub_core::manifest::RuleLevel;

use crate::evidence::has_gpustub;
use crate::gpu_file::{GpuFile, gpu_file, split};
use crate::package::{ContainerKind, Member, Package, PackageImage};
use crate::rule::{Check, Findings, Rule};
use crate::search_dirs::{LoadedLibraries, SearchDir, resolve_entry};
use crate::wheel::WheelMetadata;

pub static BUNDLED_DRIVER: Rule = Rule {
    code: code!("bundled-driver", "driver library bundled in a package"),
    level: RuleLevel::Deny,
    check: Check::Package(bundled_driver),
};

pub static MISSING_NVRTC_BUILTINS: Rule = Rule {
    code: code!(
        "missing-nvrtc-builtins",
        "libnvrtc bundled without libnvrtc-builtins"
    ),
    level: RuleLevel::Deny,
    check: Check::Package(missing_nvrtc_builtins),
};

pub static MISSING_REQUIRES_DIST: Rule = Rule {
    code: code!(
        "missing-requires-dist",
        "wheel without `Requires-Dist` for the wheel that its runpath names"
    ),
    level: RuleLevel::Deny,
    check: Check::Package(missing_requires_dist),
};

pub static OVERSIZED_FILE: Rule = Rule {
    code: code!("oversized-file", "file larger than the limit of its index"),
    level: RuleLevel::Warn,
    check: Check::Package(oversized_file),
};

/// The library that an image is, by its file name or its soname.
fn identity(image: &PackageImage<'_>) -> Option<GpuFile> {
    gpu_file(image.member.file_name()).or_else(|| gpu_file(image.facts.link.soname.as_deref()?))
}

fn bundled_driver(package: &Package, findings: &mut Findings) {
    // A driver's library that is checked as a single file is not bundled.
    if package.kind == ContainerKind::File {
        return;
    }
    let may_be_system =
        package.kind == ContainerKind::Directory && WheelMetadata::from_package(package).is_none();
    for image in package.all_images() {
        let Some(gpu) = identity(&image) else {
            continue;
        };
        if gpu.role != Role::Driver
            || gpu.is_portable()
            || is_stub(&image)
            || (may_be_system && is_installed(&image))
        {
            continue;
        }
        let library = if image.is_pe() {
            image.member.file_name().to_owned()
        } else {
            format!("lib{}", gpu.stem)
        };
        findings.on_image(
            &BUNDLED_DRIVER,
            &image,
            format!("{library} of the driver is bundled"),
            "exclude the library: the machine's driver provides it",
        );
    }
}

/// Whether the image is for linkers, or consists of gpustub's stubs.
fn is_stub(image: &PackageImage<'_>) -> bool {
    image
        .member
        .directory()
        .split('/')
        .any(|name| name == "stubs")
        || has_gpustub(image)
}

/// Whether the file name is that of the driver's installer, `libcuda.so.550.163.01`. A bundled copy
/// is named `libcuda.so.1`, which is a link where the driver is installed.
fn is_installed(image: &PackageImage<'_>) -> bool {
    let name = image.member.file_name();
    split(name).is_some_and(|(_, version)| version.contains('.'))
        && gpu_file(name).is_some_and(|gpu| !gpu.hashed)
}

fn missing_nvrtc_builtins(package: &Package, findings: &mut Findings) {
    if package.kind == ContainerKind::File {
        return;
    }
    let mut directories_by_prefix: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for image in package.all_images() {
        // Stubs under the name of the library find both files elsewhere.
        let Some(gpu) = identity(&image).filter(|gpu| gpu.stem == "nvrtc" && !has_gpustub(&image))
        else {
            continue;
        };
        let preloads = gpu.library.map_or(&[][..], |library| {
            if image.is_pe() {
                &library.windows.preload
            } else {
                &library.preload
            }
        });
        for Preload { file: prefix, .. } in preloads {
            let directories = directories_by_prefix
                .entry(prefix)
                .or_insert_with(|| directories_with(package, prefix));
            if !directories.contains(image.member.directory()) {
                findings.on_image(
                    &MISSING_NVRTC_BUILTINS,
                    &image,
                    format!("`{prefix}*`, opened at run time, is missing beside this library"),
                    "bundle the file under its own name, or require the vendor's wheel",
                );
            }
        }
    }
}

/// Directories with a file whose name has this prefix, and no hash of a bundling tool.
fn directories_with<'a>(package: &'a Package, prefix: &str) -> BTreeSet<&'a str> {
    package
        .members
        .iter()
        .filter(|member| {
            let name = member.file_name();
            name.starts_with(prefix) && gpu_file(name).is_none_or(|gpu| !gpu.hashed)
        })
        .map(Member::directory)
        .collect()
}

/// Projects with any of these in their name may require the vendor's wheels.
const PARTS_OF_GPU_PROJECTS: [&str; 8] = [
    "nvidia",
    "cuda",
    "cupy",
    "torch",
    "jax",
    "tensorflow",
    "rocm",
    "cu1",
];

fn missing_requires_dist(package: &Package, findings: &mut Findings) {
    let Some(wheel) = WheelMetadata::from_package(package).filter(|wheel| wheel.has_metadata)
    else {
        return;
    };
    if wheel.requires.iter().any(|project| {
        PARTS_OF_GPU_PROJECTS
            .iter()
            .any(|part| project.contains(part))
    }) {
        return;
    }
    let libraries = LoadedLibraries::from_package(package);
    for image in package.images() {
        let names: Vec<&String> = image
            .needed()
            .iter()
            .filter(|name| {
                gpu_file(name).is_some_and(|gpu| gpu.role == Role::Toolkit)
                    && libraries.find(&image, name).is_none()
            })
            .collect();
        let vendor_entry = image
            .runpath()
            .find(|entry| match resolve_entry(&image, entry) {
                SearchDir::Inside(path) => {
                    path.starts_with("nvidia/") && !libraries.layout().has_directory(&path)
                }
                _ => false,
            });
        if let Some(entry) = vendor_entry
            && !names.is_empty()
        {
            findings.on_image(
                &MISSING_REQUIRES_DIST,
                &image,
                format!(
                    "METADATA has no `Requires-Dist` for {}, searched in `{entry}`",
                    listing(&names)
                ),
                "add Requires-Dist for the vendor's wheels",
            );
        }
    }
}

/// The default limits of the indexes, in units of 1024 x 1024 bytes: 100 for wheels
/// (pypi/support#2580), 10 for crates.
const MAX_SIZES: &[(&str, u64, &str)] = &[
    (".whl", 100 << 20, "the Python index limit of 100 MiB"),
    (".crate", 10 << 20, "the crate registry limit of 10 MiB"),
];

fn oversized_file(package: &Package, findings: &mut Findings) {
    for (extension, max_size, limit_of_index) in MAX_SIZES {
        if package.name.ends_with(extension) && package.size > *max_size {
            let message = format!(
                "file size {} MiB exceeds {limit_of_index}",
                package.size >> 20
            );
            let help = "leave out libraries that other packages ship, or request a higher limit from the index";
            findings.push(
                OVERSIZED_FILE
                    .finding(package.location_of(""), message)
                    .help(help),
            );
        }
    }
}
