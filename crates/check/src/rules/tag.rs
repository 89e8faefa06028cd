//! Platform tags of wheels: a wheel runs on every system that its tag covers.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::diag::listing;
use gpustub_core::manifest::{Policy, RuleLevel};
use gpustub_image::ImageKind;

use crate::gpu_file::gpu_file;
use crate::package::{Package, PackageImage};
use crate::platform_tag::{Tag, machine_in_tag};
use crate::remedy::remedy;
use crate::rule::{Check, Findings, Rule};
use crate::search_dirs::{LoadedLibraries, SearchDir, resolve_entry};
use crate::wheel::{NvidiaWheel, WheelMetadata, normalized, project_providing};

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
    let mut tags: Vec<Tag> = policy
        .platform_tag
        .iter()
        .map(|tag| &tag.value)
        .chain(wheel.iter().flat_map(|wheel| &wheel.platforms))
        .filter_map(|text| Tag::parse(text))
        .collect();
    // Tags of several families: the family that the policy, or else the name, has first.
    let family = tags.first()?.family;
    tags.retain(|tag| tag.family == family);
    tags.into_iter().min_by_key(|tag| tag.minor)
}

/// The images that a tag applies to: those of a wheel, and libraries that may become part of one.
fn tagged_images(package: &Package) -> impl Iterator<Item = PackageImage<'_>> {
    let is_wheel = WheelMetadata::from_package(package).is_some();
    package
        .images()
        .filter(move |image| match image.facts.kind {
            ImageKind::Library => true,
            ImageKind::Program => is_wheel,
            ImageKind::Static => false,
        })
}

/// Maximum number of version nodes with symbols in a message, and of names and runpath entries that are examined
/// for its help.
const MAX_DETAILS: usize = 8;

fn versions(package: &Package, policy: &Policy, findings: &mut Findings) {
    let Some(tag) = tag(package, policy) else {
        return;
    };
    for image in tagged_images(package) {
        let machine = machine_in_tag(&image.facts.link.machine);
        let mut nodes: Vec<&str> = image
            .facts
            .link
            .verneed
            .iter()
            // The loader's own nodes follow those of the C library.
            .filter(|need| !need.file.starts_with("ld-linux") && !need.file.starts_with("ld64."))
            .flat_map(|need| need.nodes.iter().map(String::as_str))
            .filter(|node| tag.lacks_node(node, machine))
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.is_empty() {
            continue;
        }
        let mut descriptions: Vec<String> = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            descriptions.push(if index < MAX_DETAILS {
                with_symbols(&image, node)
            } else {
                (*node).to_owned()
            });
        }
        let base = tag.base();
        let mut help = format!("build in an image of {base}, or with cargo-zigbuild");
        if let Some(oldest) = tag.first_with(&nodes, machine) {
            help += &format!(
                "; or name the wheel {}, the oldest tag that has them",
                oldest.base()
            );
        }
        let message = format!(
            "symbol versions newer than {base}: {}",
            listing(&descriptions)
        );
        findings.on_image(&TAG_TOO_RECENT_SYMBOL, &image, message, &help);
    }
}

/// A node with some of the symbols that require it.
fn with_symbols(image: &PackageImage<'_>, node: &str) -> String {
    const MAX_SYMBOLS: usize = 3;
    let names: Vec<&str> = image
        .facts
        .imports
        .iter()
        .filter(|import| {
            import
                .version
                .as_ref()
                .is_some_and(|version| version.node == node)
        })
        .map(|import| import.name.as_str())
        .take(MAX_SYMBOLS)
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
    let libraries = LoadedLibraries::from_package(package);
    let wheel = WheelMetadata::from_package(package).unwrap_or_default();
    for image in tagged_images(package) {
        let machine = machine_in_tag(&image.facts.link.machine);
        let names: Vec<&str> = image
            .needed()
            .iter()
            .map(String::as_str)
            .filter(|name| {
                !tag.has_library(name, machine)
                    && libraries.find(&image, name).is_none()
                    && !is_required(&image, name, &wheel)
            })
            .collect();
        if names.is_empty() {
            continue;
        }
        findings.on_image(
            &TAG_EXTERNAL_LIBRARY,
            &image,
            format!(
                "libraries that {} does not guarantee: {}",
                tag.base(),
                listing(&names)
            ),
            &advice(&image, &names, &wheel),
        );
    }
}

/// Whether a wheel that this one requires provides a library: importing it loads the library, or the image's
/// run path names its directory.
fn is_required(image: &PackageImage<'_>, library: &str, wheel: &WheelMetadata) -> bool {
    let projects = &wheel.always_requires;
    NvidiaWheel::providing(library).any(|nvidia| {
        projects.iter().any(|project| nvidia.is_project(project))
            && image
                .runpath()
                .any(|entry| match resolve_entry(image, entry) {
                    SearchDir::Inside(directory) => nvidia.is_directory(&directory),
                    _ => false,
                })
    }) || project_providing(library)
        .is_some_and(|provider| projects.iter().any(|project| project == provider))
}

fn advice(image: &PackageImage<'_>, names: &[&str], wheel: &WheelMetadata) -> String {
    if names.iter().any(|name| name.starts_with("libpython")) {
        return "an extension module does not link libpython: the interpreter has its symbols"
            .into();
    }
    for name in names.iter().take(MAX_DETAILS) {
        let mut members = image.package.members.iter();
        if members.any(|member| member.file_name() == *name) {
            return format!(
                "{name} is in the package: add its directory to the runpath, relative to `$ORIGIN`"
            );
        }
    }
    for name in names.iter().take(MAX_DETAILS) {
        if let Some(project) = project_providing(name) {
            return format!("the wheel of {project} has {name}: add `Requires-Dist: {project}`");
        }
    }
    if names.iter().all(|name| gpu_file(name).is_some()) {
        return remedy(image, names);
    }
    if let Some(project) = image
        .runpath()
        .take(MAX_DETAILS)
        .find_map(|entry| sibling(image, entry, wheel))
    {
        return format!(
            "if {project} provides the library, allow this finding with that as the reason"
        );
    }
    let mut help = String::from("bundle the library in the wheel (`auditwheel repair` does)");
    if !wheel.requires.is_empty() {
        help += "; if a required wheel provides and loads it, allow this finding with that as the reason";
    }
    help
}

/// The required project whose directory, beside the wheel's own, a runpath entry names.
fn sibling<'w>(
    image: &PackageImage<'_>,
    entry: &str,
    wheel: &'w WheelMetadata,
) -> Option<&'w String> {
    let SearchDir::Inside(directory) = resolve_entry(image, entry) else {
        return None;
    };
    let top = normalized(directory.split('/').next()?);
    // `librmm/lib64` belongs to `librmm-cu12`, `nvidia/cublas/lib` to `nvidia-cublas-cu12`,
    // `tvm_ffi/lib` to `apache-tvm-ffi`.
    let top = top.strip_suffix("-libs").unwrap_or(&top);
    wheel
        .requires
        .iter()
        .find(|project| !top.is_empty() && project.contains(top))
}

fn symbols(package: &Package, policy: &Policy, findings: &mut Findings) {
    let Some(tag) = tag(package, policy) else {
        return;
    };
    let libraries = LoadedLibraries::from_package(package);
    let mut hidden_by_library: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for image in tagged_images(package) {
        let mut denied: Vec<&str> = Vec::new();
        let needed: BTreeSet<&str> = image.needed().iter().map(String::as_str).collect();
        for library in needed {
            let hidden = hidden_by_library
                .entry(library)
                .or_insert_with(|| tag.hidden(library).collect());
            if hidden.is_empty() || libraries.find(&image, library).is_some() {
                continue;
            }
            for import in &image.facts.imports {
                if !import.weak && hidden.contains(&import.name.as_str()) {
                    denied.push(&import.name);
                }
            }
        }
        denied.sort_unstable();
        denied.dedup();
        if !denied.is_empty() {
            findings.on_image(
                &TAG_DENIED_SYMBOL,
                &image,
                format!(
                    "symbols that {} does not guarantee: {}",
                    tag.base(),
                    listing(&denied)
                ),
                "build in an image of the tag, or bundle the library",
            );
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
    let of_elf = claimed_machines(&wheel, claimed_machine);
    let of_pe = claimed_machines(&wheel, claimed_windows_machine);
    for image in package.all_images() {
        // Wheels contain programs that start others on several machines, as data.
        if image.is_pe() && image.facts.kind == ImageKind::Program {
            continue;
        }
        let claimed = if image.is_pe() { &of_pe } else { &of_elf };
        let Some(message) = machine_mismatch(&image, claimed) else {
            continue;
        };
        let help = if image.facts.x86_level > 1 {
            "build without -march, and select faster code at run time"
        } else {
            "use the platform tag of the image's machine"
        };
        findings.on_image(&TAG_MACHINE_MISMATCH, &image, message, help);
    }
}

/// Machines in the tags of a wheel.
fn claimed_machines(
    wheel: &WheelMetadata,
    machine: fn(&str) -> Option<&'static str>,
) -> BTreeSet<&'static str> {
    let tags = wheel.platforms.iter();
    tags.filter_map(|tag| machine(tag)).collect()
}

/// The machine in a tag of Windows (PEP 425: the form of `sysconfig.get_platform()`), as the tags of other systems name it.
fn claimed_windows_machine(tag: &str) -> Option<&'static str> {
    match tag {
        "any" => Some("any"),
        "win_amd64" => Some("x86_64"),
        "win32" => Some("i686"),
        "win_arm64" => Some("aarch64"),
        _ => None,
    }
}

/// The machine in a tag. Tags of other systems do not apply to ELF files: one wheel may have tags of several
/// systems.
fn claimed_machine(tag: &str) -> Option<&'static str> {
    match tag {
        "any" => Some("any"),
        tag if tag.starts_with("linux_") || Tag::parse(tag).is_some() => MACHINES
            .iter()
            .copied()
            .find(|machine| tag.ends_with(&format!("_{machine}"))),
        _ => None,
    }
}

fn machine_mismatch(image: &PackageImage<'_>, claimed: &BTreeSet<&str>) -> Option<String> {
    let machine = machine_in_tag(&image.facts.link.machine);
    if claimed.is_empty() {
        return None;
    }
    if claimed.iter().eq(&["any"]) {
        return Some(format!(
            "platform tag `any`, but the image is for {machine}"
        ));
    }
    if !claimed.contains(&machine) {
        // Code for a GPU or its processors is outside of the tag's scope.
        return MACHINES.contains(&machine).then(|| {
            format!(
                "platform tag for {}, but the image is for {machine}",
                listing(&Vec::from_iter(claimed))
            )
        });
    }
    let level = image.facts.x86_level;
    (level > 1)
        .then(|| format!("platform tag for every x86_64, but the image needs x86-64-v{level}"))
}

#[cfg(test)]
mod tests {
    use gpustub_core::manifest::Spanned;
    use gpustub_image::{ImageFacts, VersionNeed};

    use super::*;
    use crate::package::{ContainerKind, Content, Member};

    /// An image that needs glibc 2.34.
    fn member(path: &str, kind: ImageKind) -> Member {
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
    }

    fn directory(name: &str) -> Package {
        Package {
            flaws: Vec::new(),
            name: name.into(),
            outer: None,
            kind: ContainerKind::Directory,
            size: 0,
            members: vec![
                member("app", ImageKind::Program),
                member("core.so", ImageKind::Library),
            ],
        }
    }

    /// Files with findings, under a policy with this tag.
    fn files(name: &str, platform_tag: Option<&str>) -> Vec<String> {
        let policy = Policy {
            platform_tag: platform_tag.map(|tag| Spanned {
                value: tag.into(),
                span: 0..0,
            }),
            ..Policy::default()
        };
        let mut findings = Findings::default();
        versions(&directory(name), &policy, &mut findings);
        findings
            .0
            .into_iter()
            .filter_map(|finding| Some(finding.origin?.file))
            .collect()
    }

    #[test]
    fn policy_tag_applies_to_libraries_and_lowers_the_tag_of_a_wheel() {
        assert!(files("demo", None).is_empty());
        assert_eq!(files("demo", Some("manylinux_2_28")), ["demo/core.so"]);
        assert!(files("demo", Some("manylinux_2_34")).is_empty());
        let wheel = "x-1-py3-none-manylinux_2_34_x86_64.whl";
        assert!(files(wheel, None).is_empty());
        assert_eq!(files(wheel, Some("manylinux_2_28")).len(), 2);
        let older = "x-1-py3-none-manylinux_2_17_x86_64.whl";
        assert_eq!(files(older, Some("manylinux_2_34")).len(), 2);
    }
}
