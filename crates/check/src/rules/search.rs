//! Where the search path of an image leads, and what the loader asks for there.

use std::collections::BTreeSet;

use gpustub_core::diag::{Code, listing};
use gpustub_core::manifest::RuleLevel;

use super::{Findings, Look, Rule};
use crate::evidence::is_from_vendor;
use crate::gpu::split;
use crate::package::{Image, Kind, Package};
use crate::places::{Layout, Place, place};
use crate::related::gpu_images;
use crate::wheel::Wheel;

pub static RELATIVE_RUNPATH: Rule = Rule {
    code: Code {
        id: "relative-runpath",
        summary: "runpath entry relative to the current directory",
        explanation: "\
The loader takes an entry that starts neither with `/` nor with `$ORIGIN` from the directory that
the process happens to be in, and so it does an empty entry (ld.so(8)): the library is found in
one directory and not in the next, and whoever can write there chooses what is loaded. Often a
shell took the `$ORIGIN` away.

    -Wl,-rpath,$ORIGIN/lib               # the shell makes it /lib, or RIGIN/lib in a makefile
    '-Wl,-rpath,$ORIGIN/lib'",
    },
    level: RuleLevel::Deny,
    look: Look::Image(relative_runpath),
};

pub static DANGLING_RUNPATH: Rule = Rule {
    code: Code {
        id: "dangling-runpath",
        summary: "runpath entry without a directory in the package",
        explanation: "\
An entry of a search path is a directory. What leads to a file, or to a directory that the package
does not have, finds nothing: a tool that bundles libraries wrote a file's name there
(https://github.com/EricLBuehler/mistral.rs/issues/2411), or the layout changed. Folders of other
wheels, beside a wheel's own, are not judged.

    $ORIGIN/libcudart.so.12          # a file: $ORIGIN
    $ORIGIN/../../nvidia/cublas/lib  # fine: another wheel's",
    },
    level: RuleLevel::Warn,
    look: Look::Package(dangling_runpath),
};

pub static ORPHAN_VERSION_NEEDS: Rule = Rule {
    code: Code {
        id: "orphan-version-needs",
        summary: "version needs of a library without a DT_NEEDED entry",
        explanation: "\
The table of version needs names the library by its file. If a tool renamed the library in
DT_NEEDED, or removed it there, and not in that table, the loader ends the program with an assertion
(https://github.com/pypa/auditwheel/issues/103). Rename with a tool that knows both: patchelf 0.9 or
newer, with --replace-needed; and do not use --remove-needed for what has versions.

    NEEDED   libz-a147dcb0.so.1
    VERNEED  libz.so.1: ZLIB_1.2.0   # nobody has loaded that name",
    },
    level: RuleLevel::Deny,
    look: Look::Image(orphan_version_needs),
};

fn relative_runpath(image: &Image<'_>, findings: &mut Findings) {
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
    // libnvrtc and others of CUDA 11 and 12 have `$ORIGIN:`, and only NVIDIA could mend that.
    let is_known = |entry: &str| entry.is_empty() && is_from_vendor(image);
    let mut entries: Vec<&str> = image
        .runpath()
        .filter(|entry| place(image, entry) == Place::Current && !is_known(entry))
        .collect();
    entries.sort_unstable();
    entries.dedup();
    for entry in entries {
        let message = match entry {
            "" => "empty runpath entry, which means the current directory".to_owned(),
            entry => format!("runpath entry `{entry}` is relative to the current directory"),
        };
        let help = "name directories of the package, from `$ORIGIN`";
        findings.of(&RELATIVE_RUNPATH, image, message, help);
    }
}

fn dangling_runpath(package: &Package, findings: &mut Findings) {
    let layout = Layout::of(package);
    let is_wheel = Wheel::of(package).is_some();
    for image in gpu_images(package) {
        let leads_to_nothing = |entry: &&str| match place(&image, entry) {
            Place::Inside(path) if layout.has_folder(&path) => false,
            Place::Inside(path) => {
                // What is named like a library is a file, wherever it is.
                let name = path.rsplit('/').next().unwrap_or_default();
                split(name).is_some_and(|_| !path.is_empty())
                    || (package.kind != Kind::File && layout.is_owned(&path, is_wheel))
            }
            _ => false,
        };
        let mut entries: Vec<&str> = image.runpath().filter(leads_to_nothing).collect();
        entries.sort_unstable();
        entries.dedup();
        if !entries.is_empty() {
            let message = match entries[..] {
                [entry] => format!("runpath entry `{entry}` names no directory of the package"),
                _ => format!(
                    "runpath entries name no directory of the package: {}",
                    listing(&entries)
                ),
            };
            let help = "remove the entry, or name a directory of the package";
            findings.of(&DANGLING_RUNPATH, &image, message, help);
        }
    }
}

fn orphan_version_needs(image: &Image<'_>, findings: &mut Findings) {
    let needed: BTreeSet<&String> = image.needed().iter().collect();
    for need in &image.facts.link.verneed {
        if !needed.contains(&need.file) {
            let message = format!(
                "version needs reference `{}`, which has no DT_NEEDED entry",
                need.file
            );
            let help = "rename libraries with a tool that renames them in both tables";
            findings.of(&ORPHAN_VERSION_NEEDS, image, message, help);
        }
    }
}
