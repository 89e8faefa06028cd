//! Notes by which images name the libraries that they open, for tools that make packages.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::diag::listing;
use gpustub_core::manifest::RuleLevel;
use serde::Deserialize;

use crate::evidence::{has_run_time, is_from_vendor, opens_libraries};
use crate::gpu_file::{gpu_file, split};
use crate::package::Image;
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
fn noted_names(image: &Image<'_>) -> BTreeSet<String> {
    let notes = image.facts.dlopen_notes.iter();
    let notes = notes.filter_map(|text| serde_json::from_str::<Vec<Dependency>>(text).ok());
    notes.flatten().flat_map(|entry| entry.soname).collect()
}

fn missing_dlopen_note(image: &Image<'_>, findings: &mut Findings) {
    let noted = noted_names(image);
    let noted: BTreeSet<String> = noted.iter().filter_map(|name| stem(name)).collect();
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
    let needed: BTreeSet<String> = image.needed().iter().filter_map(|n| stem(n)).collect();
    let mut opened = BTreeMap::new();
    for text in &image.facts.strings {
        let file = text.rsplit('/').next().unwrap_or_default();
        let stem = stem(file).filter(|stem| !noted.contains(stem) && !needed.contains(stem));
        if let Some(stem) = stem {
            // The last of several names has a version.
            opened.insert(stem, format!("`{file}`"));
        }
    }
    let names: Vec<String> = opened.into_values().collect();
    if !names.is_empty() {
        findings.on_image(
            &MISSING_DLOPEN_NOTE,
            image,
            format!("opens {}, which no note names", listing(&names)),
            "add notes with the macro of `systemd/sd-dlopen.h`, or use stubs, which write them",
        );
    }
}

fn stale_dlopen_note(image: &Image<'_>, findings: &mut Findings) {
    // Without section headers, no strings are read.
    if image.facts.sections.is_empty() {
        return;
    }
    let names = noted_names(image);
    let stale = names.iter().filter(|name| gpu_file(name).is_some());
    let stale = stale.filter(|name| !may_open(image, name));
    let stale: Vec<String> = stale.map(|name| format!("`{name}`")).collect();
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
fn may_open(image: &Image<'_>, name: &str) -> bool {
    let Some((stem, _)) = split(name) else {
        return true;
    };
    let plain = format!("lib{stem}.so");
    let is_open = |rest: &str| rest.is_empty() || rest == "." || rest.starts_with(".%");
    image.facts.strings.iter().any(|text| {
        let mut rests = text.split(&plain).skip(1);
        text.contains(name) || rests.any(is_open)
    })
}

/// Stem of a GPU library's file name.
fn stem(name: &str) -> Option<String> {
    gpu_file(name).map(|gpu| gpu.stem)
}
