//! File names that an image passes to `dlopen` for GPU libraries.

use gpustub_core::code;
use gpustub_core::library::{Library, Role};
use gpustub_core::manifest::RuleLevel;

use crate::evidence::longer_load_name;
use crate::gpu_file::{GpuFile, gpu_file};
use crate::package::Image;
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

fn unversioned_dlopen_name(image: &Image<'_>, findings: &mut Findings) {
    for (text, gpu, library) in opened(image) {
        let Some(soname) = longer_load_name(library, text) else {
            continue;
        };
        // DT_NEEDED has already loaded the library by its soname, whatever the program opens.
        let needs = |name: &String| gpu_file(name).is_some_and(|other| other.stem == gpu.stem);
        let plain = gpu.role != Role::Toolkit && text.ends_with(".so");
        if plain && !image.needed().iter().any(needs) {
            findings.on_image(
                &UNVERSIONED_DLOPEN_NAME,
                image,
                format!("opens `{text}` but never the soname `{soname}`"),
                &format!("open `{soname}` first: the unversioned name exists only for linking"),
            );
        }
    }
}

fn unknown_load_name(image: &Image<'_>, findings: &mut Findings) {
    for (text, _, library) in opened(image) {
        let Some((_, version)) = text.split_once(".so.") else {
            continue;
        };
        let id = &library.id;
        // `libcudart.so.11` where all of 11 are `libcudart.so.11.0`. A program that also tries the
        // real name opens this one without effect.
        if let Some(real) = longer_load_name(library, text) {
            findings.on_image(
                &UNKNOWN_DLOPEN_NAME,
                image,
                format!("opens `{text}`, a name that no release of {id} has"),
                &format!("{id} {version} has `{real}`"),
            );
        }
    }
}

/// File names in an image that name GPU libraries with manifests and are not part of a longer name.
fn opened<'a>(image: &Image<'a>) -> impl Iterator<Item = (&'a str, GpuFile, &'static Library)> {
    let strings = image.facts.whole_strings.iter();
    strings.filter_map(|text| {
        let gpu = gpu_file(text)?;
        let library = gpu.library?;
        Some((text.as_str(), gpu, library))
    })
}
