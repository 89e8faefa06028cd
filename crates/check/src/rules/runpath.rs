//! Run paths of images, `DT_RUNPATH` and `DT_RPATH`, and version needs.

use std::collections::BTreeSet;

use gpustub_core::code;
use gpustub_core::diag::listing;
use gpustub_core::manifest::RuleLevel;

use crate::evidence::is_from_vendor;
use crate::gpu_file::split;
use crate::gpu_relation::gpu_images;
use crate::package::{ContainerKind, Package, PackageImage};
use crate::rule::{Check, Findings, Rule};
use crate::search_dirs::{InstalledLayout, SearchDir, resolve_entry};
use crate::wheel::WheelMetadata;

pub static ABSOLUTE_RUNPATH: Rule = Rule {
    code: code!("absolute-runpath", "absolute directory in the runpath"),
    level: RuleLevel::Deny,
    check: Check::Image(absolute_runpath),
};

pub static STUBS_IN_RUNPATH: Rule = Rule {
    code: code!(
        "stubs-in-runpath",
        "link-time stubs of a toolkit in the runpath"
    ),
    level: RuleLevel::Deny,
    check: Check::Image(stubs_in_runpath),
};

pub static COMPAT_IN_RUNPATH: Rule = Rule {
    code: code!(
        "compat-in-runpath",
        "compatibility driver of a toolkit in the runpath"
    ),
    level: RuleLevel::Deny,
    check: Check::Image(compat_in_runpath),
};

pub static RELATIVE_RUNPATH: Rule = Rule {
    code: code!(
        "relative-runpath",
        "runpath entry relative to the current directory"
    ),
    level: RuleLevel::Deny,
    check: Check::Image(relative_runpath),
};

pub static DANGLING_RUNPATH: Rule = Rule {
    code: code!(
        "dangling-runpath",
        "runpath entry without a directory in the package"
    ),
    level: RuleLevel::Warn,
    check: Check::Package(dangling_runpath),
};

pub static ORPHAN_VERSION_NEEDS: Rule = Rule {
    code: code!(
        "orphan-version-needs",
        "version needs of a library without a DT_NEEDED entry"
    ),
    level: RuleLevel::Deny,
    check: Check::Image(orphan_version_needs),
};

fn absolute_runpath(image: &PackageImage<'_>, findings: &mut Findings) {
    let entries = sorted_entries(image, |entry| entry.starts_with('/'));
    if !entries.is_empty() {
        findings.on_image(
            &ABSOLUTE_RUNPATH,
            image,
            format!("absolute runpath entries: {}", listing(&entries)),
            "name directories of the package relative to `$ORIGIN`",
        );
    }
}

/// Entries of the runpath that match, each once.
fn sorted_entries<'a>(image: &PackageImage<'a>, is_match: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let mut entries: Vec<&str> = image.runpath().filter(|entry| is_match(entry)).collect();
    entries.sort_unstable();
    entries.dedup();
    entries
}

fn stubs_in_runpath(image: &PackageImage<'_>, findings: &mut Findings) {
    for entry in image.runpath() {
        if !entry.split('/').any(|directory| directory == "stubs") {
            continue;
        }
        findings.on_image(
            &STUBS_IN_RUNPATH,
            image,
            format!("runpath entry `{entry}` is a directory of link-time stubs"),
            "remove the entry: link-time stubs are for the linker only",
        );
    }
}

fn compat_in_runpath(image: &PackageImage<'_>, findings: &mut Findings) {
    for entry in image.runpath() {
        let directories: Vec<&str> = entry.split('/').collect();
        if !directories
            .windows(2)
            .any(|pair| pair[0].starts_with("cuda") && pair[1] == "compat")
        {
            continue;
        }
        findings.on_image(
            &COMPAT_IN_RUNPATH,
            image,
            format!("runpath entry `{entry}` is a directory of a compatibility driver"),
            "remove the entry: users who want that driver set LD_LIBRARY_PATH",
        );
    }
}

fn relative_runpath(image: &PackageImage<'_>, findings: &mut Findings) {
    // An empty path as a whole is ignored (glibc, elf/dl-load.c: decompose_rpath).
    if image
        .facts
        .link
        .runpath
        .as_deref()
        .is_none_or(str::is_empty)
    {
        return;
    }
    let entries = sorted_entries(image, |entry| {
        resolve_entry(image, entry) == SearchDir::Current
            // libnvrtc and others of CUDA 11 and 12 have `$ORIGIN:`, which only NVIDIA could fix.
            && !(entry.is_empty() && is_from_vendor(image))
    });
    for entry in entries {
        let (message, help) = match entry {
            "" => (
                "empty runpath entry, which means the current directory".to_owned(),
                "remove the empty entry: a `:` at an end of the runpath, or two in a row",
            ),
            entry => (
                format!("runpath entry `{entry}` is relative to the current directory"),
                "name directories of the package relative to `$ORIGIN`",
            ),
        };
        findings.on_image(&RELATIVE_RUNPATH, image, message, help);
    }
}

fn dangling_runpath(package: &Package, findings: &mut Findings) {
    let layout = InstalledLayout::from_package(package);
    let is_wheel = WheelMetadata::from_package(package).is_some();
    for image in gpu_images(package) {
        let entries = sorted_entries(&image, |entry| match resolve_entry(&image, entry) {
            SearchDir::Inside(path) if layout.has_directory(&path) => false,
            SearchDir::Inside(path) => {
                // A path named like a library is a file, even outside of the package.
                let name = path.rsplit('/').next().unwrap_or_default();
                split(name).is_some_and(|_| !path.is_empty())
                    || (package.kind != ContainerKind::File && layout.is_owned(&path, is_wheel))
            }
            _ => false,
        });
        if !entries.is_empty() {
            let message = match entries[..] {
                [entry] => format!("runpath entry `{entry}` names no directory of the package"),
                _ => format!(
                    "runpath entries name no directory of the package: {}",
                    listing(&entries)
                ),
            };
            let help = "remove the entry, or name a directory of the package";
            findings.on_image(&DANGLING_RUNPATH, &image, message, help);
        }
    }
}

fn orphan_version_needs(image: &PackageImage<'_>, findings: &mut Findings) {
    let needed: BTreeSet<&String> = image.needed().iter().collect();
    for need in &image.facts.link.verneed {
        if !needed.contains(&need.file) {
            let message = format!(
                "version needs reference `{}`, which has no DT_NEEDED entry",
                need.file
            );
            let help = "rename libraries with a tool that renames them in both tables";
            findings.on_image(&ORPHAN_VERSION_NEEDS, image, message, help);
        }
    }
}
