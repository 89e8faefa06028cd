//! File names that an image passes to `dlopen` for GPU libraries.

use gpustub_core::code;
use gpustub_core::library::{Library, Role};
use gpustub_core::manifest::RuleLevel;

use crate::evidence::longer_load_name;
use crate::gpu_file::{GpuFile, gpu_file};
use crate::package::PackageImage;
use crate::rule::{Check, Findings, Rule};

pub static UNVERSIONED_DLOPEN_NAME: Rule = Rule {
    code: code!(
        "unversioned-dlopen-name",
        "driver library opened only by its unversioned name"
    ),
    level: RuleLevel::Warn,
    check: Check::Image(unversioned_dlopen_name),
};

pub static UNKNOWN_DLOPEN_NAME: Rule = Rule {
    code: code!(
        "unknown-dlopen-name",
        "GPU library opened by a name that no release has"
    ),
    level: RuleLevel::Warn,
    check: Check::Image(unknown_load_name),
};

fn unversioned_dlopen_name(image: &PackageImage<'_>, findings: &mut Findings) {
    for (name, gpu, library) in opened(image) {
        let Some(soname) = longer_load_name(library, name) else {
            continue;
        };
        // DT_NEEDED has already loaded the library by its soname, whatever the program opens.
        let is_needed = image
            .needed()
            .iter()
            .any(|needed| gpu_file(needed).is_some_and(|needed| needed.stem == gpu.stem));
        if gpu.role != Role::Toolkit && name.ends_with(".so") && !is_needed {
            findings.on_image(
                &UNVERSIONED_DLOPEN_NAME,
                image,
                format!("opens `{name}` but never the soname `{soname}`"),
                &format!("open `{soname}` first: the unversioned name exists only for linking"),
            );
        }
    }
}

fn unknown_load_name(image: &PackageImage<'_>, findings: &mut Findings) {
    for (name, _, library) in opened(image) {
        let Some((_, version)) = name.split_once(".so.") else {
            continue;
        };
        let id = &library.id;
        // `libcudart.so.11` where all of 11 are `libcudart.so.11.0`. A program that also tries the
        // real name opens this one without effect.
        if let Some(load_name) = longer_load_name(library, name) {
            findings.on_image(
                &UNKNOWN_DLOPEN_NAME,
                image,
                format!("opens `{name}`, a name that no release of {id} has"),
                &format!("{id} {version} has `{load_name}`"),
            );
        }
    }
}

/// File names in an image that name GPU libraries with manifests and are not part of a longer name.
fn opened<'a>(
    image: &PackageImage<'a>,
) -> impl Iterator<Item = (&'a str, GpuFile, &'static Library)> {
    image.facts.whole_strings.iter().filter_map(|name| {
        let gpu = gpu_file(name)?;
        let library = gpu.library?;
        Some((name.as_str(), gpu, library))
    })
}
