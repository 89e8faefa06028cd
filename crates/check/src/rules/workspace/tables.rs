//! What `GpuStub.toml` says of libraries.

use gpustub_core::diag::{Code, Diagnostic};
use gpustub_core::library::Library;
use gpustub_core::manifest::{RuleLevel, Stub};
use gpustub_core::version::Version;

use crate::gpu_file::gpu_file;
use crate::rule::{Check, Findings, Rule};
use crate::workspace::Workspace;

pub static UNSUPPORTED_HEADER_VERSION: Rule = Rule {
    code: Code {
        id: "unsupported-header-version",
        summary: "header version newer than every known release",
        explanation: "\
Which functions there are, and what each means, was read from the releases up to some version. What
a later one added has no stub, so that a program that uses it does not link; what it changed is taken
to mean what it did before (https://github.com/ROCm/rocm-systems/issues/11160). A later gpustub
knows more; or declare, and compile against, headers that this one knows.

    cargo install cargo-gpustub
    cargo update -p gpustub-build",
    },
    level: RuleLevel::Warn,
    check: Check::Workspace(unsupported_header_version),
};

pub static UNUSABLE_MAJOR: Rule = Rule {
    code: Code {
        id: "unusable-major",
        summary: "allowed major that another key excludes",
        explanation: "\
`majors` lists what the program accepts. A library of this major never counts as available all the
same: `min-version` is higher, or no version of the major has a function of `required-functions`
(https://github.com/chelsea0x3b/cudarc/issues/525). A machine that has only this one would
report it as missing. Remove the major, or what keeps it out.

    [stub.cudart]
    majors = [\"12\", \"11\"]        # 11 in vain
    min-version = \"12.0\"",
    },
    level: RuleLevel::Deny,
    check: Check::Workspace(unusable_major),
};

/// A load name that never was.
pub static UNKNOWN_LOAD_NAME: Rule = Rule {
    code: Code {
        id: "unknown-load-name",
        summary: "load name that no release has",
        explanation: "\
The loader looks for exactly the name that it is given, and some libraries have more in it than
their major: the CUDA runtime of 11 is libcudart.so.11.0, and there is no libcudart.so.11
(https://github.com/vllm-project/vllm/pull/6335). The name would never be found. A library
that gpustub knows needs no `load-names` at all.

    load-names = { linux = [\"libcudart.so.12\", \"libcudart.so.11.0\"] }",
    },
    level: RuleLevel::Deny,
    check: Check::Workspace(unknown_load_name),
};

pub static MISSING_FALLBACK: Rule = Rule {
    code: Code {
        id: "missing-fallback",
        summary: "user-defined library without a fall-back status",
        explanation: "\
Where the library is missing, each of its functions returns a number. gpustub does not know the
codes of a library that is not among its own, and takes -1. What the program makes of that is
decided there: a code that the API does not have may end it
(https://github.com/koharu-rs/koharu/issues/169). Name the code that callers take for \"not there\",
even if it is -1.

    [stub.acme]
    fallback = { status = 999, string = \"acme is not installed\" }",
    },
    level: RuleLevel::Warn,
    check: Check::Workspace(missing_fallback),
};

pub static NONPORTABLE_SEARCH_DIR: Rule = Rule {
    code: Code {
        id: "nonportable-search-dir",
        summary: "search directory of the developer's machine",
        explanation: "\
`search-dirs` are built into the program, and are looked at before all other places. A directory
of a home, a temporary one or the workspace itself is missing on other machines, or is somebody
else's, who then decides what the program loads. Name directories from the program's own; and try a
library out with the variable, which comes before everything that is built in.

    search-dirs = [\"$ORIGIN/../lib\"]
    GPUSTUB_ACME_PATH=/home/me/acme/lib cargo run",
    },
    level: RuleLevel::Deny,
    check: Check::Workspace(nonportable_search_dir),
};

fn unsupported_header_version(workspace: &Workspace<'_>, findings: &mut Findings) {
    for (_, manifest, stub) in workspace.stubs() {
        let (Some(library), Some(place), Some(header)) = (
            Library::builtin(&stub.id.value),
            &stub.header_version,
            stub.header_version(),
        ) else {
            continue;
        };
        let versions = library
            .abi
            .headers()
            .iter()
            .chain(&library.symbols.releases);
        let Some(newest) = versions.max() else {
            continue;
        };
        // That nothing is known of a major is an error of the plan.
        if library.abi.is_empty() || header.from <= *newest || header.from.minor == 0 {
            continue;
        }
        let message = format!(
            "header version {} of `stub.{}` is newer than {newest}, the newest known release",
            header.from, stub.id.value
        );
        findings.push(
            Diagnostic::error(&UNSUPPORTED_HEADER_VERSION.code, message)
                .with_origin(&manifest.file, place.span.clone())
                .help(format!(
                    "update gpustub; functions that are newer than {newest} have no stub in this one"
                )),
        );
    }
}

fn unusable_major(workspace: &Workspace<'_>, findings: &mut Findings) {
    for (_, manifest, stub) in workspace.stubs() {
        for major in &stub.majors {
            let Some((why, help)) = major.value.parse().ok().and_then(|n| refuses(stub, n)) else {
                continue;
            };
            let message = format!(
                "`stub.{}` accepts the major {}, but {why}",
                stub.id.value, major.value
            );
            findings.push(
                Diagnostic::error(&UNUSABLE_MAJOR.code, message)
                    .with_origin(&manifest.file, major.span.clone())
                    .label("never counts as available")
                    .help(help),
            );
        }
    }
}

/// What keeps a major out, and what to do.
fn refuses(stub: &Stub, major: u32) -> Option<(String, String)> {
    let lowest = stub.min_version.as_ref().map(|version| version.value);
    if let Some(lowest) = lowest.filter(|lowest| lowest.major > major) {
        let why = format!("`min-version` is {lowest}");
        return Some((
            why,
            format!("remove {major} from `majors`, or lower `min-version`"),
        ));
    }
    // A list of one's own may have any versions in it.
    let library = Library::builtin(&stub.id.value).filter(|_| stub.custom.symbols.is_none())?;
    let of_major = |version: &&Version| {
        version.major == major && lowest.is_none_or(|lowest| **version >= lowest)
    };
    let versions: Vec<&Version> = library.symbols.releases.iter().filter(of_major).collect();
    let has = |name: &str, version: &Version| {
        library.symbols.lookup(name).iter().any(|symbol| {
            let present = &symbol.releases;
            present.is_empty() || present.iter().any(|(a, b)| a <= version && version <= b)
        })
    };
    // Of a major without lists, and of a name that is in none, this says nothing.
    let missing = stub.required_functions.iter().find(|name| {
        !versions.is_empty()
            && !library.symbols.lookup(&name.value).is_empty()
            && !versions.iter().any(|version| has(&name.value, version))
    })?;
    let why = format!(
        "no known release of this major has `{}` of `required-functions`",
        missing.value
    );
    Some((
        why,
        format!("remove {major} from `majors`, or the function from `required-functions`"),
    ))
}

fn unknown_load_name(workspace: &Workspace<'_>, findings: &mut Findings) {
    for (_, manifest, stub) in workspace.stubs() {
        for (os, names) in &stub.custom.load_names {
            for name in names {
                let real = real_names(os, &name.value.name);
                if real.is_empty() {
                    continue;
                }
                let library = gpu_file(real[0]).and_then(|gpu| gpu.library);
                let library = library.map_or("the library", |library| &library.id);
                let message = format!("no release of {library} is named `{}`", name.value.name);
                findings.push(
                    Diagnostic::error(&UNKNOWN_LOAD_NAME.code, message)
                        .with_origin(&manifest.file, name.span.clone())
                        .help(format!("known names are {}", real.join(", "))),
                );
            }
        }
    }
}

/// What a library's releases are called, if this is one of their names cut short after the major,
/// and no name by itself.
pub fn real_names(os: &str, name: &str) -> Vec<&'static str> {
    let known = || {
        let libraries = Library::builtin_ids().filter_map(Library::builtin);
        libraries.flat_map(move |library| library.load_names.get(os).into_iter().flatten())
    };
    if !name.contains(".so.") || known().any(|other| other.name == name) {
        return Vec::new();
    }
    let longer = |other: &&str| {
        other
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    known()
        .map(|other| other.name.as_str())
        .filter(longer)
        .collect()
}

fn missing_fallback(workspace: &Workspace<'_>, findings: &mut Findings) {
    for (_, manifest, stub) in workspace.stubs() {
        let id = &stub.id.value;
        if Library::builtin(id).is_some() || !stub.provide || stub.custom.codes.is_some() {
            continue;
        }
        let message = format!("every function of `{id}` returns -1 where the library is missing");
        findings.push(
            Diagnostic::error(&MISSING_FALLBACK.code, message)
                .with_origin(&manifest.file, stub.id.span.clone())
                .help("name the API's own code: `fallback = { status = … }`"),
        );
    }
}

/// Homes and temporary places.
const OF_A_MACHINE: [&str; 5] = ["/home", "/root", "/Users", "/tmp", "/var/tmp"];

fn nonportable_search_dir(workspace: &Workspace<'_>, findings: &mut Findings) {
    let below = |dir: &str, place: &str| {
        !place.is_empty()
            && dir
                .strip_prefix(place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for (_, manifest, stub) in workspace.stubs() {
        for dir in &stub.search_dirs {
            let of_machine = OF_A_MACHINE.iter().any(|place| below(&dir.value, place));
            if !of_machine && !below(&dir.value, &workspace.root) {
                continue;
            }
            let message = format!(
                "`stub.{}` searches `{}` first, on every machine",
                stub.id.value, dir.value
            );
            let variable = gpustub_core::library::override_variable(&stub.id.value);
            findings.push(
                Diagnostic::error(&NONPORTABLE_SEARCH_DIR.code, message)
                    .with_origin(&manifest.file, dir.span.clone())
                    .help(format!(
                        "use a path relative to `$ORIGIN`; for tests set {variable}"
                    )),
            );
        }
    }
}
