//! Rules on the `[stub]` tables of `GpuStub.toml`.

use gpustub_core::code;
use gpustub_core::diag::Diagnostic;
use gpustub_core::library::Library;
use gpustub_core::manifest::{RuleLevel, Stub};
use gpustub_core::suggest::nearest;
use gpustub_core::version::Version;

use crate::gpu_file::gpu_file;
use crate::rule::{Check, Findings, Rule};
use crate::workspace::WorkspaceFacts;

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

fn unsupported_header_version(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
    for (_, manifest, stub) in workspace.stubs() {
        if let (Some(finding), Some(version)) = (newer_headers(stub), &stub.header_version) {
            findings.push(finding.with_origin(&manifest.file, version.span.clone()));
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

fn unusable_major(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
    for (_, manifest, stub) in workspace.stubs() {
        for major in &stub.majors {
            let Ok(number) = major.value.parse() else {
                continue;
            };
            let Some((reason, help)) = exclusion(stub, number) else {
                continue;
            };
            let message = format!(
                "`stub.{}` accepts the major {}, but {reason}",
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
fn exclusion(stub: &Stub, major: u32) -> Option<(String, String)> {
    let min_version = stub.min_version.as_ref().map(|version| version.value);
    if let Some(min_version) = min_version.filter(|version| version.major > major) {
        return Some((
            format!("`min-version` is {min_version}"),
            format!("remove {major} from `majors`, or lower `min-version`"),
        ));
    }
    // A user-defined list may contain any versions.
    let library = Library::builtin(&stub.id.value).filter(|_| stub.custom.symbols.is_none())?;
    let versions: Vec<&Version> = library
        .symbols
        .releases
        .iter()
        .filter(|version| {
            version.major == major && min_version.is_none_or(|minimum| **version >= minimum)
        })
        .collect();
    // A major without lists, and a name that is in none, are not reported.
    let missing = stub.required_functions.iter().find(|name| {
        !versions.is_empty()
            && !library.symbols.lookup(&name.value).is_empty()
            && !versions
                .iter()
                .any(|version| has_function(library, &name.value, version))
    })?;
    Some((
        format!(
            "no known release of this major has `{}` of `required-functions`",
            missing.value
        ),
        format!("remove {major} from `majors`, or the function from `required-functions`"),
    ))
}

/// Whether a version of a library has a function.
fn has_function(library: &Library, name: &str, version: &Version) -> bool {
    let mut symbols = library.symbols.lookup(name).iter();
    symbols.any(|symbol| symbol.is_in(*version))
}

fn unknown_load_name(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
    for (_, manifest, stub) in workspace.stubs() {
        for (os, names) in &stub.custom.load_names {
            let known_names: Vec<&str> = Library::builtin(&stub.id.value)
                .and_then(|library| library.load_names.get(os))
                .into_iter()
                .flatten()
                .map(|load_name| load_name.name.as_str())
                .collect();
            for name in names {
                let finding = unknown_name(os, &name.value.name, &stub.id.value, &known_names);
                if let Some(finding) = finding {
                    findings.push(finding.with_origin(&manifest.file, name.span.clone()));
                }
            }
        }
    }
}

/// The fault of a load name of a stub whose library has the names `known_names`, which is empty for a user-defined
/// library.
fn unknown_name(os: &str, name: &str, id: &str, known_names: &[&str]) -> Option<Diagnostic> {
    let longer = real_names(os, name);
    if let Some(first) = longer.first() {
        let library = gpu_file(first).and_then(|gpu| gpu.library);
        let library_id = library.map_or("the library", |library| &library.id);
        return Some(
            unknown_name_of(library_id, name)
                .help(format!("known names are {}", longer.join(", "))),
        );
    }
    let newest = known_names.first()?;
    if known_names.contains(&name) || is_full_name(name, known_names) {
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
    let mut help = format!("known names are {}", known_names.join(", "));
    if let Some(similar) = nearest(name, known_names.iter().copied()) {
        help = format!("did you mean `{similar}`? {help}");
    }
    Some(unknown_name_of(id, name).help(help))
}

fn unknown_name_of(library_id: &str, name: &str) -> Diagnostic {
    Diagnostic::error(
        &UNKNOWN_LOAD_NAME.code,
        format!("no release of {library_id} is named `{name}`"),
    )
}

/// Whether a name is that of a release's file, `libcudart.so.11.8.89`, to which the soname is a link.
fn is_full_name(name: &str, known_names: &[&str]) -> bool {
    let Some((stem, version)) = name.split_once(".so.") else {
        return false;
    };
    version.split('.').count() > 2
        && version
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
        && known_names
            .iter()
            .any(|known| known.split(".so").next() == Some(stem))
}

/// Highest distance of a future release's number from the newest known one: beyond, a name is a mistake (`cudart64_120.dll`).
const MAX_NEWER: u32 = 9;

/// Whether a name differs from that of the newest release in the last number, which is a little higher.
fn is_newer(name: &str, newest: &str) -> bool {
    let (Some((start, number, end)), Some((newest_start, newest_number, newest_end))) =
        (split_at_number(name), split_at_number(newest))
    else {
        return false;
    };
    start == newest_start
        && end == newest_end
        && (1..=MAX_NEWER).contains(&number.saturating_sub(newest_number))
}

/// The last number in a name, and the text before and after it.
fn split_at_number(name: &str) -> Option<(&str, u32, &str)> {
    let end = name.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = name[..end].rfind(|c: char| !c.is_ascii_digit())? + 1;
    Some((&name[..start], name[start..end].parse().ok()?, &name[end..]))
}

/// Load names of a library's releases that begin with `name` and a dot, if `name` is not itself a load
/// name.
pub fn real_names(os: &str, name: &str) -> Vec<&'static str> {
    if !name.contains(".so.") || known_load_names(os).any(|load_name| load_name == name) {
        return Vec::new();
    }
    known_load_names(os)
        .filter(|load_name| {
            load_name
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.'))
        })
        .collect()
}

fn known_load_names(os: &str) -> impl Iterator<Item = &'static str> {
    Library::builtin_ids()
        .filter_map(Library::builtin)
        .flat_map(move |library| library.load_names.get(os).into_iter().flatten())
        .map(|load_name| load_name.name.as_str())
}

fn missing_fallback(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
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

fn nonportable_search_dir(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
    for (_, manifest, stub) in workspace.stubs() {
        for dir in &stub.search_dirs {
            if !HOME_OR_TEMPORARY
                .iter()
                .chain([&workspace.root.as_str()])
                .any(|parent| is_below(&dir.value, parent))
            {
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

fn is_below(dir: &str, parent: &str) -> bool {
    !parent.is_empty()
        && dir
            .strip_prefix(parent)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
