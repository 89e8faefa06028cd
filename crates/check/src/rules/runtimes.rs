//! Number and majors of the CUDA runtimes in a process.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::library::{Library, Role};
use gpustub_core::manifest::RuleLevel;

use crate::evidence::{has_cudart, is_from_vendor};
use crate::gpu_file::gpu_file;
use crate::gpu_relation::{ImageId, LoadGraph};
use crate::package::{Image, Package};
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

fn static_cudart(image: &Image<'_>, findings: &mut Findings) {
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
    conflicts(package, &runtimes, |image, conflict| {
        let (first, second) = conflict;
        findings.on_image(
            &MULTIPLE_CUDARTS,
            image,
            format!("two CUDA runtimes in one process: {first} and {second}"),
            "compile all with `-cudart none`, and link the stubs of cudart",
        );
    });
}

fn multiple_majors(package: &Package, findings: &mut Findings) {
    conflicts(package, &majors, |image, (first, second)| {
        findings.on_image(
            &MULTIPLE_MAJORS,
            image,
            format!("two toolkit majors in one process: {first} and {second}"),
            "build all images against one major, or link the stubs of gpustub",
        );
    });
}

/// Descriptions of two libraries that conflict in one process.
pub(crate) type Conflict = (String, String);

/// Two CUDA runtimes among images that are loaded together, one of which is a static copy.
fn runtimes(together: &[Image<'_>]) -> Option<Conflict> {
    let mut own = together.iter().filter(|image| has_cudart(image));
    let first = own.next()?;
    let own = own
        .next()
        .map(|image| format!("a static copy in `{}`", image.member.path));
    let needed = || {
        together
            .iter()
            .filter(|image| !is_from_vendor(image))
            .find_map(|image| {
                let is_cudart = |n: &&String| gpu_file(n).is_some_and(|gpu| gpu.stem == "cudart");
                let name = image.needed().iter().find(is_cudart)?;
                Some(format!("`{name}` (needed by `{}`)", image.member.path))
            })
    };
    let first = format!("a static copy in `{}`", first.member.path);
    Some((first, own.or_else(needed)?))
}

/// Two needed libraries of one toolkit that no single major contains, among images that are loaded
/// together.
pub(crate) fn majors(together: &[Image<'_>]) -> Option<Conflict> {
    let mut seen: Vec<(BTreeSet<u32>, String)> = Vec::new();
    for image in together {
        for name in image.needed() {
            let majors = majors_of(name);
            if majors.is_empty() {
                continue;
            }
            let shown = format!("`{name}` (needed by `{}`)", image.member.path);
            if let Some((_, other)) = seen.iter().find(|(m, _)| m.is_disjoint(&majors)) {
                return Some((other.clone(), shown));
            }
            if !seen.iter().any(|(m, _)| *m == majors) {
                seen.push((majors, shown));
            }
        }
    }
    None
}

/// The majors of the CUDA toolkit that a library may belong to; empty: any or unknown.
fn majors_of(name: &str) -> BTreeSet<u32> {
    let Some(gpu) = gpu_file(name).filter(|gpu| gpu.role == Role::Toolkit) else {
        return BTreeSet::new();
    };
    let in_toolkit = |library: &&Library| library.family == "cuda" && !library.independent_major;
    let library = gpu.library.filter(in_toolkit);
    let names = library.and_then(|library| library.load_names.get("linux"));
    names
        .into_iter()
        .flatten()
        .filter(|known| gpu_file(&known.name).is_some_and(|k| k.major == gpu.major))
        .filter_map(|known| known.major)
        .collect()
}

/// Reports each image that loads a conflict, except through another image that is reported.
fn conflicts(
    package: &Package,
    find: &dyn Fn(&[Image<'_>]) -> Option<Conflict>,
    mut report: impl FnMut(&Image<'_>, Conflict),
) {
    let all = LoadGraph::from_package(package);
    let found: BTreeMap<ImageId, Conflict> = all
        .entries()
        .filter_map(|(index, _)| {
            let together = all.loaded_with(index).into_iter();
            let together: Vec<Image<'_>> = together.map(|i| all.image(i)).collect();
            Some((index, find(&together)?))
        })
        .collect();
    for (&index, conflict) in &found {
        let mut needed = all.needed_by(index);
        if !needed.any(|next| next != index && found.contains_key(&next)) {
            report(&all.image(index), conflict.clone());
        }
    }
}
