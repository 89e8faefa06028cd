//! Rules on the `[stub]` tables of `GpuStub.toml`.

use gpustub_core::code;
use gpustub_core::diag::Diagnostic;
use gpustub_core::library::Library;
use gpustub_core::manifest::{RuleLevel, Stub};
use gpustub_core::suggest::nearest;
use gpustub_core::version::Version;

use crate::gpu_file::gpu_file;
use crate::rule::{Check, Findings, Rule};
use crate::workspace::Workspace;

pub static UNSUPPORTED_HEADER_VERSION: Rule = Rule {
    code: code!(
        "unsupported-header-version",
        "header version newer than every known release"
    ),
    level: RuleLevel::Warn,
    check: Check::Workspace(unsupported_header_version),
};

pub static UNUSABLE_MAJOR: Rule = Rule {
    code: code!("unusable-major", "allowed major that another key excludes"),
    level: RuleLevel::Deny,
    check: Check::Workspace(unusable_major),
};

/// A load name that no release has.
pub static UNKNOWN_LOAD_NAME: Rule = Rule {
    code: code!("unknown-load-name", "load name that no release has"),
    level: RuleLevel::Deny,
    check: Check::Workspace(unknown_load_name),
};

pub static MISSING_FALLBACK: Rule = Rule {
    code: code!(
        "missing-fallback",
        "user-defined library without a fall-back status"
    ),
    level: RuleLevel::Warn,
    check: Check::Workspace(missing_fallback),
};

pub static NONPORTABLE_SEARCH_DIR: Rule = Rule {
    code: code!(
        "nonportable-search-dir",
        "search directory of the developer's machine"
    ),
    level: RuleLevel::Deny,
    check: Check::Workspace(nonportable_search_dir),
};

fn unsupported_header_version(workspace: &Workspace<'_>, findings: &mut Findings) {
    for (_, manifest, stub) in workspace.stubs() {
        if let (Some(found), Some(place)) = (newer_headers(stub), &stub.header_version) {
            findings.push(found.with_origin(&manifest.file, place.span.clone()));
        }
    }
}

/// The finding for headers that are newer than every release that gpustub knows of a library's toolkit.
pub fn newer_headers(stub: &Stub) -> Option<Diagnostic> {
    let library = Library::builtin(&stub.id.value)?;
    let header = stub.header_version()?;
    let toolkit = library.toolkit_releases();
    let newest = toolkit.iter().chain(&library.symbols.releases).max()?;
    // An unknown major is an error of the plan.
    if toolkit.is_empty() || header.from <= *newest || header.from.minor == 0 {
        return None;
    }
    let message = format!(
        "header version {} of `stub.{}` is newer than {newest}, the newest known release",
        header.from, stub.id.value
    );
    Some(
        Diagnostic::error(&UNSUPPORTED_HEADER_VERSION.code, message).help(format!(
            "update gpustub; functions that are newer than {newest} have no stub in this one"
        )),
    )
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

/// The reason that excludes a major, and the help.
fn refuses(stub: &Stub, major: u32) -> Option<(String, String)> {
    let lowest = stub.min_version.as_ref().map(|version| version.value);
    if let Some(lowest) = lowest.filter(|lowest| lowest.major > major) {
        let why = format!("`min-version` is {lowest}");
        return Some((
            why,
            format!("remove {major} from `majors`, or lower `min-version`"),
        ));
    }
    // A user-defined list may contain any versions.
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
    // A major without lists, and a name that is in none, are not reported.
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
            let own = Library::builtin(&stub.id.value);
            let own = own.and_then(|library| library.load_names.get(os));
            let own: Vec<&str> = own.into_iter().flatten().map(|n| n.name.as_str()).collect();
            for name in names {
                let found = unknown_name(os, &name.value.name, &stub.id.value, &own);
                let file = &manifest.file;
                findings
                    .0
                    .extend(found.map(|f| f.with_origin(file, name.span.clone())));
            }
        }
    }
}

/// The fault of a load name of a stub whose library has the names `own`; none are known of a user-defined
/// library.
fn unknown_name(os: &str, name: &str, id: &str, own: &[&str]) -> Option<Diagnostic> {
    let unknown = |library: &str| {
        let message = format!("no release of {library} is named `{name}`");
        Diagnostic::error(&UNKNOWN_LOAD_NAME.code, message)
    };
    let longer = real_names(os, name);
    if let Some(first) = longer.first() {
        let library = gpu_file(first).and_then(|gpu| gpu.library);
        let library = library.map_or("the library", |library| &library.id);
        return Some(unknown(library).help(format!("known names are {}", longer.join(", "))));
    }
    let newest = own.first()?;
    if own.contains(&name) || is_full_name(name, own) {
        return None;
    }
    if is_newer(name, newest) {
        let message =
            format!("no known release of {id} is named `{name}`: the newest has `{newest}`");
        return Some(
            Diagnostic::warning(&UNKNOWN_LOAD_NAME.code, message)
                .help("update gpustub; it binds no function whose ABI it does not know"),
        );
    }
    let known = format!("known names are {}", own.join(", "));
    Some(unknown(id).help(match nearest(name, own.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`? {known}"),
        None => known,
    }))
}

/// Whether a name is that of a release's file, `libcudart.so.11.8.89`, to which the soname is a link.
fn is_full_name(name: &str, own: &[&str]) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    name.split_once(".so.").is_some_and(|(stem, version)| {
        let is_own = |own: &&str| own.split(".so").next() == Some(stem);
        version.split('.').count() > 2
            && version.split('.').all(is_number)
            && own.iter().any(is_own)
    })
}

/// Whether a name differs from that of the newest release in the last number, which is higher.
fn is_newer(name: &str, newest: &str) -> bool {
    let parts = |name: &str| -> Option<(String, u32, String)> {
        let digit = |c: char| c.is_ascii_digit();
        let end = name.rfind(digit)? + 1;
        let start = name[..end].rfind(|c| !digit(c))? + 1;
        let number = name[start..end].parse().ok()?;
        Some((name[..start].to_owned(), number, name[end..].to_owned()))
    };
    parts(name)
        .zip(parts(newest))
        .is_some_and(|(one, other)| (&one.0, &one.2) == (&other.0, &other.2) && one.1 > other.1)
}

/// Load names of a library's releases that begin with `name` and a dot, if `name` is not itself a load
/// name.
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
        if Library::builtin(id).is_some() || !stub.provide || stub.custom.status.is_some() {
            continue;
        }
        let message = format!("status functions of `{id}` return -1 if the library is missing");
        findings.push(
            Diagnostic::error(&MISSING_FALLBACK.code, message)
                .with_origin(&manifest.file, stub.id.span.clone())
                .help("name the API's own code: `fallback = { status = … }`"),
        );
    }
}

/// Parents of home directories and of temporary directories.
const HOME_OR_TEMPORARY: [&str; 5] = ["/home", "/root", "/Users", "/tmp", "/var/tmp"];

fn nonportable_search_dir(workspace: &Workspace<'_>, findings: &mut Findings) {
    let below = |dir: &str, parent: &str| {
        !parent.is_empty()
            && dir
                .strip_prefix(parent)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for (_, manifest, stub) in workspace.stubs() {
        for dir in &stub.search_dirs {
            let of_machine = HOME_OR_TEMPORARY
                .iter()
                .any(|parent| below(&dir.value, parent));
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
