//! Notes by which images name the libraries that they open, for tools that make packages.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::diag::listing;
use gpustub_core::manifest::RuleLevel;
use serde::Deserialize;

use crate::evidence::{has_run_time, is_from_vendor, opens_libraries};
use crate::gpu_file::{gpu_file, split};
use crate::package::PackageImage;
use crate::rule::{Check, Findings, Rule};

pub static MISSING_DLOPEN_NOTE: Rule = Rule {
    code: code!(
        "missing-dlopen-note",
        "GPU library that is opened at run time, without a note that names it"
    ),
    level: RuleLevel::Allow,
    check: Check::Image(missing_dlopen_note),
};

pub static STALE_DLOPEN_NOTE: Rule = Rule {
    code: code!(
        "stale-dlopen-note",
        "note about a GPU library that the image does not open"
    ),
    level: RuleLevel::Warn,
    check: Check::Image(stale_dlopen_note),
};

/// Element of the array in a note; other keys are for other readers.
#[derive(Deserialize)]
struct Dependency {
    soname: Vec<String>,
}

/// Names in the notes of an image. Text that is not of the specified form counts as absent.
fn noted_names(image: &PackageImage<'_>) -> BTreeSet<String> {
    image
        .facts
        .dlopen_notes
        .iter()
        .filter_map(|note| serde_json::from_str::<Vec<Dependency>>(note).ok())
        .flatten()
        .flat_map(|dependency| dependency.soname)
        .collect()
}

fn missing_dlopen_note(image: &PackageImage<'_>, findings: &mut Findings) {
    let noted: BTreeSet<String> = noted_names(image)
        .iter()
        .filter_map(|name| stem(name))
        .collect();
    // Stubs name all libraries of their tables, and the image may use a part of them.
    if has_run_time(image) {
        if noted.is_empty() {
            findings.on_image(
                &MISSING_DLOPEN_NOTE,
                image,
                "stubs open GPU libraries, which no note names".into(),
                "set `dlopen-note = \"suggested\"` in GpuStub.toml, and build without GPUSTUB_DLOPEN_NOTES=off",
            );
        }
        return;
    }
    if !opens_libraries(image.facts) || is_from_vendor(image) {
        return;
    }
    let needed: BTreeSet<String> = image
        .needed()
        .iter()
        .filter_map(|name| stem(name))
        .collect();
    let mut opened_files = BTreeMap::new();
    for text in &image.facts.strings {
        let file = text.rsplit('/').next().unwrap_or_default();
        if let Some(stem) = stem(file)
            && !noted.contains(&stem)
            && !needed.contains(&stem)
        {
            // The last of several names has a version.
            opened_files.insert(stem, format!("`{file}`"));
        }
    }
    let names: Vec<String> = opened_files.into_values().collect();
    if !names.is_empty() {
        findings.on_image(
            &MISSING_DLOPEN_NOTE,
            image,
            format!("opens {}, which no note names", listing(&names)),
            "add notes with the macro of `systemd/sd-dlopen.h`, or use stubs, which write them",
        );
    }
}

fn stale_dlopen_note(image: &PackageImage<'_>, findings: &mut Findings) {
    // Without section headers, no strings are read.
    if image.facts.sections.is_empty() {
        return;
    }
    let stale: Vec<String> = noted_names(image)
        .iter()
        .filter(|name| gpu_file(name).is_some() && !may_open(image, name))
        .map(|name| format!("`{name}`"))
        .collect();
    if !stale.is_empty() {
        findings.on_image(
            &STALE_DLOPEN_NOTE,
            image,
            format!("a note names {}, which the image does not open", listing(&stale)),
            "remove the name from the note: packages would depend on a library that is never loaded",
        );
    }
}

/// Whether the image contains the name, or a beginning that formats or concatenation may complete.
fn may_open(image: &PackageImage<'_>, name: &str) -> bool {
    let Some((stem, _)) = split(name) else {
        return true;
    };
    let unversioned = format!("lib{stem}.so");
    image.facts.strings.iter().any(|text| {
        text.contains(name)
            || text
                .split(&unversioned)
                .skip(1)
                .any(|rest| rest.is_empty() || rest == "." || rest.starts_with(".%"))
    })
}

/// Stem of a GPU library's file name.
fn stem(name: &str) -> Option<String> {
    gpu_file(name).map(|gpu| gpu.stem)
}
