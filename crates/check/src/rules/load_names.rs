//! The file names under which an image opens GPU libraries by itself.

use gpustub_core::diag::Code;
use gpustub_core::library::{Library, Role};
use gpustub_core::manifest::RuleLevel;

use crate::evidence::longer_load_name;
use crate::gpu_file::{GpuFile, gpu_file};
use crate::package::Image;
use crate::rule::{Check, Findings, Rule};

pub static UNVERSIONED_DLOPEN_NAME: Rule = Rule {
    code: Code {
        id: "unversioned-dlopen-name",
        summary: "driver library opened only by its unversioned name",
        explanation: "\
`libcuda.so` without a number comes with packages for development. Machines that only run programs
have `libcuda.so.1`, and on some the unversioned name leads to another file
(https://github.com/microsoft/WSL/issues/8587, https://github.com/triton-lang/triton/issues/3862).
Ask for the soname first. Names are looked for in x86-64 files, where it can be told whether code
puts together another one.

    dlopen(\"libcuda.so.1\", RTLD_NOW);      /* then, if need be, \"libcuda.so\" */",
    },
    level: RuleLevel::Warn,
    check: Check::Image(unversioned_dlopen_name),
};

pub static UNKNOWN_DLOPEN_NAME: Rule = Rule {
    code: Code {
        id: "unknown-dlopen-name",
        summary: "GPU library opened by a name that no release has",
        explanation: "\
The numbers after `.so` are not always the toolkit's major: every CUDA 11 has `libcudart.so.11.0`,
and a program that opens `libcudart.so.11` finds nothing anywhere
(https://github.com/vllm-project/vllm/pull/6335). Only versions that gpustub's manifests know are
judged.

    dlopen(\"libcudart.so.11.0\", RTLD_NOW);  /* not libcudart.so.11 */",
    },
    level: RuleLevel::Warn,
    check: Check::Image(unknown_load_name),
};

fn unversioned_dlopen_name(image: &Image<'_>, findings: &mut Findings) {
    for (text, gpu, library) in opened(image) {
        let Some(soname) = longer_load_name(library, text) else {
            continue;
        };
        // By its soname it is there already, whatever the program opens.
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
        // `libcudart.so.11` where all of 11 are `libcudart.so.11.0`. Who tries that too has one more
        // that finds nothing.
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

/// The file names by which an image opens GPU libraries with manifests, and beside which it has no longer
/// ones.
fn opened<'a>(image: &Image<'a>) -> impl Iterator<Item = (&'a str, GpuFile, &'static Library)> {
    let strings = image.facts.whole_strings.iter();
    strings.filter_map(|text| {
        let gpu = gpu_file(text)?;
        let library = gpu.library?;
        Some((text.as_str(), gpu, library))
    })
}
