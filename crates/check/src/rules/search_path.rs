//! Where an image lets the loader look: `DT_RUNPATH` and `DT_RPATH`.

use gpustub_core::diag::{Code, listing};
use gpustub_core::manifest::RuleLevel;

use super::{Findings, Look, Rule};
use crate::package::Image;

pub static ABSOLUTE_RUNPATH: Rule = Rule {
    code: Code {
        id: "absolute-runpath",
        summary: "absolute directory in the runpath",
        explanation: "\
An absolute directory in the search path is there on the build machine. Elsewhere it is missing,
or somebody else's (https://github.com/pytorch/pytorch/issues/7214). Directories of a package are
named from the image's own, with `$ORIGIN`.

    cargo rustc -- -C link-arg=-Wl,-rpath,'$ORIGIN/../lib'",
    },
    level: RuleLevel::Deny,
    look: Look::Image(absolute_runpath),
};

pub static STUBS_IN_RUNPATH: Rule = Rule {
    code: Code {
        id: "stubs-in-runpath",
        summary: "link-time stubs of a toolkit in the runpath",
        explanation: "\
A toolkit's `stubs` directory holds a libcuda that fails every call. It is for linking only: found
at run time it hides the driver (https://github.com/pytorch/tensorpipe/issues/294).

    -L/usr/local/cuda/lib64/stubs                 # for the linker
    -Wl,-rpath,/usr/local/cuda/lib64/stubs        # never",
    },
    level: RuleLevel::Deny,
    look: Look::Image(stubs_in_runpath),
};

pub static COMPAT_IN_RUNPATH: Rule = Rule {
    code: Code {
        id: "compat-in-runpath",
        summary: "compatibility driver of a toolkit in the runpath",
        explanation: "\
A toolkit's `compat` directory holds a libcuda that works with some older kernel drivers on some
cards. Whether it is to be used is for the machine's owner to say: found by accident it fails where
the installed one works (https://github.com/NVIDIA/nvidia-docker/issues/1515).

    LD_LIBRARY_PATH=/usr/local/cuda/compat ./app     # where it is wanted",
    },
    level: RuleLevel::Deny,
    look: Look::Image(compat_in_runpath),
};

fn absolute_runpath(image: &Image<'_>, findings: &mut Findings) {
    let mut entries: Vec<&str> = image.runpath().filter(|e| e.starts_with('/')).collect();
    entries.sort_unstable();
    entries.dedup();
    if !entries.is_empty() {
        findings.of(
            &ABSOLUTE_RUNPATH,
            image,
            format!("absolute runpath entries: {}", listing(&entries)),
            "name directories of the package, from `$ORIGIN`",
        );
    }
}

fn stubs_in_runpath(image: &Image<'_>, findings: &mut Findings) {
    let is_stubs = |entry: &&str| entry.split('/').any(|part| part == "stubs");
    for entry in image.runpath().filter(is_stubs) {
        findings.of(
            &STUBS_IN_RUNPATH,
            image,
            format!("runpath entry `{entry}` is a directory of link-time stubs"),
            "remove the entry: link-time stubs are for the linker only",
        );
    }
}

fn compat_in_runpath(image: &Image<'_>, findings: &mut Findings) {
    let is_compat = |entry: &&str| {
        let parts: Vec<&str> = entry.split('/').collect();
        let pairs = parts.windows(2);
        pairs
            .into_iter()
            .any(|pair| pair[0].starts_with("cuda") && pair[1] == "compat")
    };
    for entry in image.runpath().filter(is_compat) {
        findings.of(
            &COMPAT_IN_RUNPATH,
            image,
            format!("runpath entry `{entry}` is a directory of a compatibility driver"),
            "remove the entry: users who want that driver set LD_LIBRARY_PATH",
        );
    }
}
