//! Number and majors of the CUDA runtimes in a process.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::library::Role;
use gpustub_core::manifest::RuleLevel;

use crate::evidence::{has_cudart, is_from_vendor};
use crate::gpu_file::gpu_file;
use crate::gpu_relation::{ImageId, LoadGraph};
use crate::package::{Package, PackageImage};
use crate::rule::{Check, Findings, Rule};

pub static STATIC_CUDART: Rule = Rule {
    code: code!(
        "static-cudart",
        "static CUDA runtime in a program or library"
    ),
    level: RuleLevel::Warn,
    check: Check::Image(static_cudart),
};

pub static MULTIPLE_CUDARTS: Rule = Rule {
    code: code!("multiple-cudarts", "several CUDA runtimes in one process"),
    level: RuleLevel::Warn,
    check: Check::Process(multiple_cudarts),
};

pub static MULTIPLE_MAJORS: Rule = Rule {
    code: code!("multiple-majors", "several toolkit majors in one process"),
    level: RuleLevel::Deny,
    check: Check::Process(multiple_majors),
};

fn static_cudart(image: &PackageImage<'_>, findings: &mut Findings) {
    if has_cudart(image) {
        findings.on_image(
            &STATIC_CUDART,
            image,
            "a static CUDA runtime is linked into this image".into(),
            "compile with `-cudart none`, and link the stubs of cudart",
        );
    }
}

fn multiple_cudarts(package: &Package, findings: &mut Findings) {
    for (image, (first, second)) in conflicts(package, two_cudarts) {
        findings.on_image(
            &MULTIPLE_CUDARTS,
            &image,
            format!("two CUDA runtimes in one process: {first} and {second}"),
            "compile all with `-cudart none`, and link the stubs of cudart",
        );
    }
}

fn multiple_majors(package: &Package, findings: &mut Findings) {
    for (image, (first, second)) in conflicts(package, two_majors) {
        findings.on_image(
            &MULTIPLE_MAJORS,
            &image,
            format!("two toolkit majors in one process: {first} and {second}"),
            "build all images against one major, or link the stubs of gpustub",
        );
    }
}

/// Descriptions of two libraries that conflict in one process.
pub(crate) type Conflict = (String, String);

/// Two CUDA runtimes among images that are loaded together, the first of which is a static copy.
fn two_cudarts(process: &[PackageImage<'_>]) -> Option<Conflict> {
    let mut static_copies = process
        .iter()
        .filter(|image| has_cudart(image))
        .map(|image| format!("a static copy in `{}`", image.member.path));
    let first = static_copies.next()?;
    let second = static_copies.next().or_else(|| needed_cudart(process))?;
    Some((first, second))
}

/// A CUDA runtime that an image needs.
fn needed_cudart(process: &[PackageImage<'_>]) -> Option<String> {
    for image in process {
        if is_from_vendor(image) {
            continue;
        }
        for name in image.needed() {
            if gpu_file(name).is_some_and(|gpu| gpu.stem == "cudart") {
                return Some(format!("`{name}` (needed by `{}`)", image.member.path));
            }
        }
    }
    None
}

/// Two needed libraries of one toolkit that no single major contains, among images that are loaded
/// together.
pub(crate) fn two_majors(process: &[PackageImage<'_>]) -> Option<Conflict> {
    let mut libraries: Vec<(BTreeSet<u32>, String)> = Vec::new();
    for image in process {
        for name in image.needed() {
            let majors = majors_of(name);
            if majors.is_empty() {
                continue;
            }
            let description = format!("`{name}` (needed by `{}`)", image.member.path);
            for (library_majors, library) in &libraries {
                if library_majors.is_disjoint(&majors) {
                    return Some((library.clone(), description));
                }
            }
            if !libraries
                .iter()
                .any(|(library_majors, _)| *library_majors == majors)
            {
                libraries.push((majors, description));
            }
        }
    }
    None
}

/// The majors of the CUDA toolkit that a library may belong to; empty: any or unknown.
fn majors_of(name: &str) -> BTreeSet<u32> {
    gpu_file(name)
        .filter(|gpu| gpu.role == Role::Toolkit)
        .filter(|gpu| {
            let library = gpu.library;
            library.is_some_and(|library| library.toolkit_family() == Some("cuda"))
        })
        .map(|gpu| gpu.toolkit_majors())
        .unwrap_or_default()
}

/// Images that load a conflict, except those that load it through another one of them.
fn conflicts<'a>(
    package: &'a Package,
    find: fn(&[PackageImage<'_>]) -> Option<Conflict>,
) -> Vec<(PackageImage<'a>, Conflict)> {
    let graph = LoadGraph::from_images(package.all_images());
    let mut conflicts: BTreeMap<ImageId, Conflict> = BTreeMap::new();
    for (id, _) in graph.entries() {
        let process: Vec<PackageImage<'_>> = graph
            .loaded_with(id)
            .into_iter()
            .map(|id| graph.image(id))
            .collect();
        if let Some(conflict) = find(&process) {
            conflicts.insert(id, conflict);
        }
    }
    conflicts
        .iter()
        .filter(|&(&id, _)| {
            !graph
                .needed_by(id)
                .any(|needed| needed != id && conflicts.contains_key(&needed))
        })
        .map(|(&id, conflict)| (graph.image(id), conflict.clone()))
        .collect()
}
