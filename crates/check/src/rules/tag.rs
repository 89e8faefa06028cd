//! Platform tags of wheels: a wheel runs on every system that its tag covers.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::diag::listing;
use gpustub_core::manifest::{Policy, RuleLevel};
use gpustub_image::ImageKind;

use crate::gpu_file::gpu_file;
use crate::package::{Image, Package};
use crate::platform_tag::{Tag, machine_in_tag};
use crate::rule::{Check, Findings, Rule};
use crate::search_dirs::{Loads, SearchDir, resolve_entry};
use crate::wheel::{NvidiaWheel, WheelMetadata, normal, project_providing};

pub static TAG_TOO_RECENT_SYMBOL: Rule = Rule {
    code: code!(
        "tag-too-recent-symbol",
        "symbol version newer than the platform tag"
    ),
    level: RuleLevel::Deny,
    check: Check::Policy(versions),
};

pub static TAG_EXTERNAL_LIBRARY: Rule = Rule {
    code: code!(
        "tag-external-library",
        "library that the platform tag does not guarantee"
    ),
    level: RuleLevel::Deny,
    check: Check::Policy(libraries),
};

pub static TAG_DENIED_SYMBOL: Rule = Rule {
    code: code!(
        "tag-denied-symbol",
        "symbol that the platform tag does not guarantee"
    ),
    level: RuleLevel::Deny,
    check: Check::Policy(symbols),
};

pub static TAG_MACHINE_MISMATCH: Rule = Rule {
    code: code!(
        "tag-machine-mismatch",
        "image for another machine than the platform tag"
    ),
    level: RuleLevel::Deny,
    check: Check::Policy(machine),
};

/// The tag that applies to a package: the oldest of its own and the policy's.
fn tag(package: &Package, policy: &Policy) -> Option<Tag> {
    let wheel = WheelMetadata::from_package(package);
    let own = wheel.iter().flat_map(|wheel| &wheel.platforms);
    let own = own.filter_map(|text| Tag::parse(text));
    let wanted = policy
        .platform_tag
        .as_ref()
        .and_then(|tag| Tag::parse(&tag.value));
    // Tags of several families: the family that the policy, or else the name, has first.
    let mut tags: Vec<Tag> = wanted.into_iter().chain(own).collect();
    let family = tags.first()?.family;
    tags.retain(|tag| tag.family == family);
    tags.into_iter().min_by_key(|tag| tag.minor)
}

/// The images that a tag applies to: those of a wheel, and libraries that may become part of one.
fn tagged_images(package: &Package) -> impl Iterator<Item = Image<'_>> {
    let is_wheel = WheelMetadata::from_package(package).is_some();
    let images = package.images();
    images.filter(move |image| match image.facts.kind {
        ImageKind::Library => true,
        ImageKind::Program => is_wheel,
        ImageKind::Static => false,
    })
}

/// Maximum number of version nodes with symbols in a message, and of runpath entries read for its help.
const SHOWN: usize = 8;

fn versions(package: &Package, policy: &Policy, findings: &mut Findings) {
    let Some(tag) = tag(package, policy) else {
        return;
    };
    for image in tagged_images(package) {
        let machine = machine_in_tag(&image.facts.link.machine);
        let needs = image.facts.link.verneed.iter();
        // The loader's own nodes follow those of the C library.
        let needs = needs
            .filter(|need| !need.file.starts_with("ld-linux") && !need.file.starts_with("ld64."));
        let mut nodes: Vec<&str> = needs
            .flat_map(|need| need.nodes.iter().map(String::as_str))
            .filter(|node| tag.lacks_node(node, machine))
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.is_empty() {
            continue;
        }
        // The first nodes are shown with symbols that require them.
        let reported = nodes.iter().enumerate().map(|(at, node)| match at {
            0..SHOWN => used(&image, node),
            _ => (*node).to_owned(),
        });
        let reported: Vec<String> = reported.collect();
        let base = tag.base();
        let mut help = format!("build in an image of {base}, or with cargo-zigbuild");
        if let Some(first) = tag.first_with(&nodes, machine) {
            help += &format!(
                "; or name the wheel {}, the oldest tag that has them",
                first.base()
            );
        }
        let message = format!("symbol versions newer than {base}: {}", listing(&reported));
        findings.on_image(&TAG_TOO_RECENT_SYMBOL, &image, message, &help);
    }
}

/// A node with some of the symbols that require it.
fn used(image: &Image<'_>, node: &str) -> String {
    const SYMBOLS: usize = 3;
    let imports = image.facts.imports.iter();
    let imports = imports.filter(|i| i.version.as_ref().is_some_and(|v| v.node == node));
    let names: Vec<&str> = imports
        .map(|import| import.name.as_str())
        .take(SYMBOLS)
        .collect();
    if names.is_empty() {
        node.to_owned()
    } else {
        format!("{node} ({})", names.join(", "))
    }
}

fn libraries(package: &Package, policy: &Policy, findings: &mut Findings) {
    let Some(tag) = tag(package, policy) else {
        return;
    };
    let loads = Loads::from_package(package);
    let wheel = WheelMetadata::from_package(package).unwrap_or_default();
    for image in tagged_images(package) {
        let machine = machine_in_tag(&image.facts.link.machine);
        let missing = |name: &&String| {
            !tag.has_library(name, machine)
                && loads.carried(&image, name).is_none()
                && !is_required(&image, name, &wheel)
        };
        let names: Vec<&str> = image
            .needed()
            .iter()
            .filter(missing)
            .map(|s| s.as_str())
            .collect();
        if names.is_empty() {
            continue;
        }
        let message = format!(
            "libraries that {} does not guarantee: {}",
            tag.base(),
            listing(&names)
        );
        findings.on_image(
            &TAG_EXTERNAL_LIBRARY,
            &image,
            message,
            &advice(&image, &names, &wheel),
        );
    }
}

/// Whether a wheel that this one requires provides a library: importing it loads the library, or the image's
/// run path names its directory.
fn is_required(image: &Image<'_>, library: &str, wheel: &WheelMetadata) -> bool {
    let requires = |is_it: &dyn Fn(&str) -> bool| wheel.always_requires.iter().any(|p| is_it(p));
    if let Some(nvidia) = NvidiaWheel::providing(library) {
        let is_its = |entry| match resolve_entry(image, entry) {
            SearchDir::Inside(directory) => nvidia.is_directory(&directory),
            _ => false,
        };
        return requires(&|name| nvidia.is_project(name)) && image.runpath().any(is_its);
    }
    project_providing(library).is_some_and(|project| requires(&|name| name == project))
}

fn advice(image: &Image<'_>, names: &[&str], wheel: &WheelMetadata) -> String {
    let is_inside = |name: &&&str| {
        image
            .package
            .members
            .iter()
            .any(|m| m.file_name() == **name)
    };
    if names.iter().any(|name| name.starts_with("libpython")) {
        return "an extension module does not link libpython: the interpreter has its symbols"
            .into();
    }
    if let Some(name) = names.iter().take(SHOWN).find(is_inside) {
        return format!(
            "{name} is in the package: add its directory to the runpath, relative to `$ORIGIN`"
        );
    }
    let mut projects = names.iter().take(SHOWN);
    if let Some((name, project)) = projects.find_map(|name| Some((name, project_providing(name)?)))
    {
        return format!("the wheel of {project} has {name}: add `Requires-Dist: {project}`");
    }
    if names.iter().all(|name| gpu_file(name).is_some()) {
        return "link the gpustub stubs instead".into();
    }
    if let Some(required) = image
        .runpath()
        .take(SHOWN)
        .find_map(|entry| sibling(image, entry, wheel))
    {
        return format!(
            "if {required} provides the library, allow this finding with that as the reason"
        );
    }
    let mut help = String::from("bundle the library in the wheel (`auditwheel repair` does)");
    if !wheel.requires.is_empty() {
        help += "; if a required wheel provides and loads it, allow this finding with that as the reason";
    }
    help
}

/// The required project whose directory, beside the wheel's own, a runpath entry names.
fn sibling(image: &Image<'_>, entry: &str, wheel: &WheelMetadata) -> Option<String> {
    let SearchDir::Inside(directory) = resolve_entry(image, entry) else {
        return None;
    };
    let top = normal(directory.split('/').next()?);
    // `librmm/lib64` belongs to `librmm-cu12`, `nvidia/cublas/lib` to `nvidia-cublas-cu12`,
    // `tvm_ffi/lib` to `apache-tvm-ffi`.
    let top = top.strip_suffix("-libs").unwrap_or(&top);
    let mut required = wheel.requires.iter();
    required
        .find(|name| !top.is_empty() && name.contains(top))
        .cloned()
}

fn symbols(package: &Package, policy: &Policy, findings: &mut Findings) {
    let Some(tag) = tag(package, policy) else {
        return;
    };
    let loads = Loads::from_package(package);
    let mut hidden: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for image in tagged_images(package) {
        let mut found: Vec<&str> = Vec::new();
        let needed: BTreeSet<&str> = image.needed().iter().map(String::as_str).collect();
        for library in needed {
            let names = hidden
                .entry(library)
                .or_insert_with(|| tag.hidden(library).collect());
            if names.is_empty() || loads.carried(&image, library).is_some() {
                continue;
            }
            let imports = image.facts.imports.iter().filter(|import| !import.weak);
            let imports = imports.map(|import| import.name.as_str());
            found.extend(imports.filter(|name| names.contains(name)));
        }
        found.sort_unstable();
        found.dedup();
        if !found.is_empty() {
            let message = format!(
                "symbols that {} does not guarantee: {}",
                tag.base(),
                listing(&found)
            );
            let help = "build in an image of the tag, or bundle the library";
            findings.on_image(&TAG_DENIED_SYMBOL, &image, message, help);
        }
    }
}

/// Machines in the last part of a platform tag, which may also be `any`.
const MACHINES: &[&str] = &[
    "x86_64",
    "i686",
    "aarch64",
    "armv7l",
    "ppc64le",
    "ppc64",
    "s390x",
    "riscv64",
    "loongarch64",
];

fn machine(package: &Package, _: &Policy, findings: &mut Findings) {
    let Some(wheel) = WheelMetadata::from_package(package) else {
        return;
    };
    // Tags of other systems do not apply to ELF files: one wheel may have tags of several systems.
    let machine_of = |tag: &String| match tag.as_str() {
        "any" => Some("any"),
        tag if tag.starts_with("linux_") || Tag::parse(tag).is_some() => MACHINES
            .iter()
            .find(|m| tag.ends_with(&format!("_{m}")))
            .copied(),
        _ => None,
    };
    let mut claimed: Vec<&str> = wheel.platforms.iter().filter_map(machine_of).collect();
    claimed.sort_unstable();
    claimed.dedup();
    if claimed.is_empty() {
        return;
    }
    for image in package.images() {
        let is = machine_in_tag(&image.facts.link.machine);
        let level = image.facts.x86_level;
        let message = if claimed == ["any"] {
            format!("platform tag `any`, but the image is for {is}")
        } else if !claimed.contains(&is) {
            // Code for a GPU or its processors is outside of the tag's scope.
            if !MACHINES.contains(&is) {
                continue;
            }
            format!(
                "platform tag for {}, but the image is for {is}",
                listing(&claimed)
            )
        } else if level > 1 {
            format!("platform tag for every x86_64, but the image needs x86-64-v{level}")
        } else {
            continue;
        };
        let help = if level > 1 {
            "build without -march, and select faster code at run time"
        } else {
            "use the platform tag of the image's machine"
        };
        findings.on_image(&TAG_MACHINE_MISMATCH, &image, message, help);
    }
}

#[cfg(test)]
mod tests {
    use gpustub_core::manifest::Spanned;
    use gpustub_image::{ImageFacts, VersionNeed};

    use super::*;
    use crate::package::{Content, Kind, Member};

    /// Directory with a library and a program that need glibc 2.34.
    fn directory(name: &str) -> Package {
        let member = |path: &str, kind| {
            let mut facts = ImageFacts {
                kind,
                ..ImageFacts::default()
            };
            facts.link.machine = "x86_64".into();
            facts.link.verneed = vec![VersionNeed {
                file: "libc.so.6".into(),
                nodes: vec!["GLIBC_2.34".into()],
            }];
            Member {
                path: path.into(),
                library: None,
                size: 1,
                content: Content::Image(Box::new(facts)),
            }
        };
        Package {
            flaws: Vec::new(),
            name: name.into(),
            outer: None,
            kind: Kind::Directory,
            size: 0,
            members: vec![
                member("app", ImageKind::Program),
                member("core.so", ImageKind::Library),
            ],
        }
    }

    fn found(name: &str, wanted: Option<&str>) -> Vec<String> {
        let platform_tag = wanted.map(|tag| Spanned {
            value: tag.into(),
            span: 0..0,
        });
        let policy = Policy {
            platform_tag,
            ..Policy::default()
        };
        let mut findings = Findings::default();
        versions(&directory(name), &policy, &mut findings);
        let files = findings
            .0
            .into_iter()
            .filter_map(|found| Some(found.origin?.file));
        files.collect()
    }

    #[test]
    fn policy_tag_applies_to_libraries_and_lowers_the_tag_of_a_wheel() {
        assert!(found("demo", None).is_empty());
        assert_eq!(found("demo", Some("manylinux_2_28")), ["demo/core.so"]);
        assert!(found("demo", Some("manylinux_2_34")).is_empty());
        let wheel = "x-1-py3-none-manylinux_2_34_x86_64.whl";
        assert!(found(wheel, None).is_empty());
        assert_eq!(found(wheel, Some("manylinux_2_28")).len(), 2);
        let older = "x-1-py3-none-manylinux_2_17_x86_64.whl";
        assert_eq!(found(older, Some("manylinux_2_34")).len(), 2);
    }
}
