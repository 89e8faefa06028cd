//! Relocatable device code: each object must have exactly one device link.
//!
//! When its image is loaded, each object calls a function that its device link defines. A device link
//! registers its code once all of its objects have called. [`gpustub_image::DeviceCode`] reads objects
//! and device links of an image.

mod process;

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::diag::{self, Code, Diagnostic, Level};
use gpustub_core::gpu_arch::{Arch, ArchKind};
use gpustub_core::manifest::RuleLevel;
use gpustub_core::text::join;
use gpustub_image::{HIP_SYMBOLS, Module};

use crate::evidence::{has_cudart, has_gpustub};
use crate::gpu_file::gpu_file;
use crate::package::{Content, Member, Package, PackageImage};
use crate::rule::{Check, Findings, Rule};
pub(super) use process::is_final;
use process::{ObjectIds, Processes, linked_objects, objects};

pub static MISSING_DEVICE_LINK: Rule = row(
    &diag::MISSING_DEVICE_LINK,
    RuleLevel::Deny,
    Check::Process(missing_device_link),
);
pub static INCOMPLETE_DEVICE_LINK: Rule = row(
    &diag::INCOMPLETE_DEVICE_LINK,
    RuleLevel::Deny,
    Check::Process(incomplete_device_link),
);
pub static DUPLICATE_DEVICE_LINK: Rule = row(
    &diag::DUPLICATE_DEVICE_LINK,
    RuleLevel::Deny,
    Check::Process(duplicate_device_link),
);
pub static UNSHARED_DEVICE_GLOBALS: Rule = row(
    &diag::UNSHARED_DEVICE_GLOBALS,
    RuleLevel::Warn,
    Check::Process(unshared_device_globals),
);
pub static MISSING_ARCH: Rule = row(
    &diag::MISSING_ARCH,
    RuleLevel::Deny,
    Check::Process(missing_arch),
);
pub static DEVICE_LINKED_ARCHIVE: Rule = row(
    &diag::DEVICE_LINKED_ARCHIVE,
    RuleLevel::Warn,
    Check::Package(device_linked_archive),
);
pub static CLANG_DEVICE_CODE: Rule = Rule {
    code: code!(
        "clang-device-code",
        "relocatable device code that only clang links"
    ),
    level: RuleLevel::Warn,
    check: Check::Package(clang_device_code),
};
pub static MIXED_CUDART: Rule = row(
    &diag::MIXED_CUDART,
    RuleLevel::Deny,
    Check::Process(mixed_cudart),
);

/// A rule for built images that shares its code with a diagnostic of `cargo gpustub plan`.
const fn row(code: &Code, level: RuleLevel, check: Check) -> Rule {
    let code = Code {
        id: code.id,
        summary: code.summary,
        explanation: code.explanation,
    };
    Rule { code, level, check }
}

fn missing_device_link(package: &Package, findings: &mut Findings) {
    let processes = Processes::from_package(package);
    for (image, holder, ids) in processes.unmatched(objects, linked_objects) {
        let names = listed(&ids);
        let message = if holder.member == image.member {
            format!("relocatable code of {names} has no device link in the process")
        } else {
            format!(
                "relocatable code of {names} in `{}` has no device link in the process",
                holder.member.path
            )
        };
        let help = if ids.iter().any(|id| is_hip(id)) {
            "device-link all objects of the process (`clang --hip-link`, or a final of gpustub), and link the result into it"
        } else {
            "run `nvcc -dlink` over all objects of the process, and link the result into it"
        };
        findings.on_image(&MISSING_DEVICE_LINK, &image, message, help);
    }
}

fn incomplete_device_link(package: &Package, findings: &mut Findings) {
    let processes = Processes::from_package(package);
    for (image, holder, ids) in processes.unmatched(counted_objects, objects) {
        let names = listed(&ids);
        let message = if holder.member == image.member {
            format!(
                "the device link expects {names}, which no loaded image contains; none of its kernels is registered"
            )
        } else {
            format!(
                "the device link in `{}` expects {names}, which no loaded image contains; none of its kernels is registered",
                holder.member.path
            )
        };
        let help = "repeat the device link over exactly the objects that are shipped";
        findings.on_image(&INCOMPLETE_DEVICE_LINK, &image, message, help);
    }
}

/// Ids of the objects that a device link waits for. Those of HIP register without each other.
fn counted_objects<'a>(image: &PackageImage<'a>) -> ObjectIds<'a> {
    let mut ids = linked_objects(image);
    ids.retain(|id| !is_hip(id));
    ids
}

/// Whether an object is of HIP, by its id.
fn is_hip(id: &str) -> bool {
    HIP_SYMBOLS.iter().any(|prefix| id.starts_with(prefix))
}

fn duplicate_device_link(package: &Package, findings: &mut Findings) {
    for (image, second, ids) in Processes::from_package(package).shared(false) {
        let (consequence, help) = if ids.iter().any(|id| is_hip(id)) {
            (
                "each of the two has its own device globals",
                "device-link it once, in the image that needs both",
            )
        } else {
            (
                "a process registers only one of the two",
                "device-link it once, in the image that needs both; or hide `__cudaRegisterLinkedBinary*` in each",
            )
        };
        let message = format!(
            "{} device-linked in this image and in `{}`; {consequence}",
            listed_with_verb(&ids),
            second.member.path
        );
        findings.on_image(&DUPLICATE_DEVICE_LINK, &image, message, help);
    }
}

fn unshared_device_globals(package: &Package, findings: &mut Findings) {
    for (image, second, ids) in Processes::from_package(package).shared(true) {
        let message = format!(
            "{} linked into this image and into `{}`; each copy has its own device globals",
            listed_with_verb(&ids),
            second.member.path
        );
        findings.push(UNSHARED_DEVICE_GLOBALS.finding(image.location(), message));
    }
}

fn missing_arch(package: &Package, findings: &mut Findings) {
    let processes = Processes::from_package(package);
    for (image_id, image) in processes.linking() {
        let code = &image.facts.device;
        for arch in code
            .linked
            .iter()
            .filter(|arch| arch.kind() == ArchKind::Real)
        {
            let lacking: Vec<&Module> = code
                .links
                .iter()
                .filter_map(|id| processes.module(image_id, id))
                .filter(|module| {
                    !module.archs.is_empty()
                        && !module.archs.iter().any(|compiled| compiled.serves(*arch))
                })
                .collect();
            let Some(first) = lacking.first() else {
                continue;
            };
            let ids: ObjectIds<'_> = lacking.iter().map(|module| module.id.as_str()).collect();
            findings.on_image(
                &MISSING_ARCH,
                &image,
                format!(
                    "the device link for {arch} lacks the code of {}, which is compiled for {}",
                    listed(&ids),
                    archs(&first.archs)
                ),
                "compile and device-link for the same architectures",
            );
        }
    }
}

fn device_linked_archive(package: &Package, findings: &mut Findings) {
    // Number of objects, and presence of a device link, by the archive's path in the package.
    let mut archives: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    for member in &package.members {
        let Content::Object(object) = &member.content else {
            continue;
        };
        let Some(path) = &member.library else {
            continue;
        };
        let (object_count, has_link) = archives.entry(path).or_default();
        *object_count += object.device.modules.len();
        *has_link |= !object.device.links.is_empty();
    }
    for (path, (object_count, has_link)) in archives {
        if object_count > 0 && has_link {
            let message = format!(
                "the archive contains {object_count} objects of relocatable device code and a device link"
            );
            // Unlike that of a plan: the archive may be no input of a device link.
            let finding = Diagnostic {
                level: Level::Warning,
                ..DEVICE_LINKED_ARCHIVE.finding(package.location_of(path), message)
            };
            let help = "remove the device link: the program has its own over all its archives";
            findings.push(finding.help(help));
        }
    }
}

fn clang_device_code(package: &Package, findings: &mut Findings) {
    // Objects by the file that they are in: an archive, or the object itself.
    let mut files: BTreeMap<&str, (&Member, usize, BTreeSet<&str>)> = BTreeMap::new();
    for member in &package.members {
        let Content::Object(object) = &member.content else {
            continue;
        };
        // OpenMP's host code runs without a device link.
        let Some(code) = object.offload.as_ref().filter(|code| !code.is_openmp) else {
            continue;
        };
        let path = member.library.as_deref().unwrap_or(&member.path);
        let (_, count, archs) = files.entry(path).or_insert((member, 0, BTreeSet::new()));
        *count += 1;
        archs.extend(code.archs.iter().map(String::as_str));
    }
    for (first, count, archs) in files.into_values() {
        let archs = Vec::from_iter(archs);
        let code = match &archs[..] {
            [] => "device code".to_owned(),
            archs => format!("device code for {}", join(archs, ", ")),
        };
        let name = first.path.rsplit('!').next().unwrap_or_default();
        let message = match (&first.library, count) {
            (None, _) => format!("the object has {code} that only clang links"),
            (Some(_), 1) => format!("`{name}` has {code} that only clang links"),
            (Some(_), _) => {
                format!(
                    "`{name}` and {} more have {code} that only clang links",
                    count - 1
                )
            }
        };
        let location = match &first.library {
            Some(library) => package.location_of(library),
            None => package.location(first),
        };
        let help = "link with clang (`--offload-link`, for -fgpu-rdc of older releases `--hip-link`), or compile CUDA code with nvcc -rdc=true";
        findings.push(CLANG_DEVICE_CODE.finding(location, message).help(help));
    }
}

fn mixed_cudart(package: &Package, findings: &mut Findings) {
    let processes = Processes::from_package(package);
    for (image, holder, ids) in processes.apart() {
        let (Some(first), Some(second)) = (runtime(&image), runtime(&holder)) else {
            continue;
        };
        if first == second && first != STATIC_RUNTIME {
            continue;
        }
        findings.on_image(
            &MIXED_CUDART,
            &image,
            format!(
                "this image registers {} with {first}, but `{}` launches with {second}",
                listed(&ids),
                holder.member.path
            ),
            "compile both with `-cudart none`, and link the stubs of cudart",
        );
    }
}

const STATIC_RUNTIME: &str = "its own static CUDA runtime";

/// The CUDA runtime that an image calls; `None` if unknown.
fn runtime(image: &PackageImage<'_>) -> Option<&'static str> {
    if has_cudart(image) {
        return Some(STATIC_RUNTIME);
    }
    let needs_cudart = image
        .needed()
        .iter()
        .any(|name| gpu_file(name).is_some_and(|gpu| gpu.stem == "cudart"));
    if needs_cudart || has_gpustub(image) {
        // Stubs load the same library.
        Some("the shared CUDA runtime")
    } else {
        None
    }
}

fn listed(ids: &BTreeSet<&str>) -> String {
    let first = ids.first().copied().unwrap_or_default();
    match ids.len() {
        0 | 1 => format!("`{first}`"),
        count => format!("`{first}` and {} more", count - 1),
    }
}

/// [`listed`], with the verb.
fn listed_with_verb(ids: &BTreeSet<&str>) -> String {
    let verb = if ids.len() > 1 { "are" } else { "is" };
    format!("{} {verb}", listed(ids))
}

fn archs(archs: &BTreeSet<Arch>) -> String {
    archs
        .iter()
        .map(Arch::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
