//! Rules on the crates of the dependency graph.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::diag::{Diagnostic, Origin, listing};
use gpustub_core::library::Library;
use gpustub_core::manifest::{Manifest, RuleLevel, Stub};
use gpustub_core::version::{HeaderVersion, Version};

use crate::known_crates::{KnownCrate, known};
use crate::rule::{Check, Findings, Rule};
use crate::workspace::{Crate, CrateId, LinkLibrary, WorkspaceFacts};

pub static BUILD_TIME_TOOLKIT: Rule = Rule {
    code: code!(
        "build-time-toolkit",
        "dependency that requires a GPU toolkit at build time"
    ),
    level: RuleLevel::Warn,
    check: Check::Workspace(build_time_toolkit),
};

pub static STATIC_CUDART_DEPENDENCY: Rule = Rule {
    code: code!(
        "static-cudart-dependency",
        "dependency that links a static CUDA runtime"
    ),
    level: RuleLevel::Warn,
    check: Check::Workspace(static_cudart),
};

pub static UNSTUBBED_LIBRARY: Rule = Rule {
    code: code!(
        "unstubbed-library",
        "package that links a GPU library without a stub"
    ),
    level: RuleLevel::Warn,
    check: Check::Workspace(unstubbed_library),
};

/// Libraries of one family whose headers are of two majors.
pub static MIXED_HEADER_VERSIONS: Rule = Rule {
    code: code!(
        "mixed-header-versions",
        "headers or bindings of two majors in one program"
    ),
    level: RuleLevel::Deny,
    check: Check::Workspace(mixed_header_versions),
};

/// A dependency that never calls the stubs.
pub static DLOPENING_DEPENDENCY: Rule = Rule {
    code: code!(
        "dlopening-dependency",
        "dependency that opens GPU libraries with dlopen"
    ),
    level: RuleLevel::Warn,
    check: Check::Workspace(dlopening_dependency),
};

/// A finding about a crate, at the line where a package of the workspace requires it.
fn crate_finding(rule: &'static Rule, krate: &Crate<'_>, message: String) -> Diagnostic {
    let finding = Diagnostic::error(&rule.code, message);
    match &krate.required_by {
        Some(required_by) => finding
            .with_origin(&required_by.origin.file, required_by.origin.span.clone())
            .label(format!("required by `{}`", required_by.package)),
        None => finding,
    }
}

/// All crates with the rows of the list of known crates that apply to them.
fn rows<'w>(
    workspace: &'w WorkspaceFacts<'w>,
) -> impl Iterator<Item = (CrateId, &'w Crate<'w>, &'static KnownCrate)> {
    workspace.crates.ids().flat_map(|id| {
        let krate = &workspace.crates[id];
        known(&krate.name, &krate.features).map(move |row| (id, krate, row))
    })
}

/// Ids of the stubs that crates declare.
fn stub_ids<'a>(workspace: &WorkspaceFacts<'a>, crates: &BTreeSet<CrateId>) -> BTreeSet<&'a str> {
    crates
        .iter()
        .filter_map(|&id| workspace.crates[id].manifest)
        .flat_map(|manifest| &manifest.stubs)
        .map(|stub| stub.id.value.as_str())
        .collect()
}

fn build_time_toolkit(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
    for (_, krate, row) in rows(workspace) {
        let Some(tools) = &row.requires_tools else {
            continue;
        };
        let message = format!("{} does not build without {tools}", krate.display_name());
        let optional = "make the dependency optional, behind a feature that is off by default";
        let help = match &row.cure {
            Some(cure) => format!("run `{cure}`; or {optional}"),
            None => optional.to_owned(),
        };
        findings.push(crate_finding(&BUILD_TIME_TOOLKIT, krate, message).help(help));
    }
}

fn static_cudart(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
    for (_, krate, row) in rows(workspace).filter(|(_, _, row)| row.cudart) {
        let message = format!(
            "{} links a static CUDA runtime, of the major on the build machine",
            krate.display_name()
        );
        let help = match row.name.as_str() {
            "cudarc" => "use the feature `dynamic-linking` with the stubs of gpustub",
            _ => "make the dependency optional, behind a feature that is off by default",
        };
        findings.push(crate_finding(&STATIC_CUDART_DEPENDENCY, krate, message).help(help));
    }
}

fn unstubbed_library(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
    for ((crate_id, library_id), owner) in unstubbed(workspace) {
        let krate = &workspace.crates[crate_id];
        let mut message = format!(
            "{} links the library of `{library_id}`, for which `{owner}` declares no stub",
            krate.display_name()
        );
        let linked = linked_by_script(krate)
            .into_iter()
            .find_map(|(id, library)| (id == library_id).then_some(library));
        if let Some(linked) = linked
            && !linked.directories.is_empty()
        {
            let directories = listing(&linked.directories);
            message += &format!("; its build script searches {directories}");
        }
        let mut finding = crate_finding(&UNSTUBBED_LIBRARY, krate, message)
            .help(declaration_help(workspace, krate, owner, library_id));
        if let Some(origin) = linked.and_then(|library| library.origin.clone()) {
            finding.origin = Some(origin);
        }
        findings.push(finding);
    }
}

/// Command that declares a library that a crate links: in the crate itself, whose dependents then need no table, if it
/// belongs to the workspace, else in the package that owns the program.
fn declaration_help(
    workspace: &WorkspaceFacts<'_>,
    krate: &Crate<'_>,
    owner: &str,
    library_id: &str,
) -> String {
    let package = if krate.member { &krate.name } else { owner };
    let command = format!("cargo gpustub add -p {package} {library_id}");
    let library = Library::builtin(library_id);
    let newest_major = library.and_then(newest_header_major);
    let family = library.and_then(Library::toolkit_family);
    // Of the crate's own bindings, else of others in the workspace, whose version must agree.
    let crates = std::iter::once(krate).chain(workspace.crates.iter());
    let known = (crates.flat_map(header_uses))
        .find_map(|(known, header)| (Some(known) == family).then_some(header.version));
    let command = match (known, newest_major) {
        (_, None) => format!("`{command}`"),
        (Some(version), _) => format!("`{command} --header-version {version}`"),
        (None, Some(major)) => format!(
            "`{command} --header-version {major}`, with the version of the headers that `{}` is compiled against",
            krate.name
        ),
    };
    let help = format!("declare the library in `{package}`: {command}");
    if krate.member {
        return help;
    }
    format!(
        "{help}; the author of `{}` can declare it there instead",
        krate.name
    )
}

/// Newest major of the headers of a library whose stubs depend on them.
fn newest_header_major(library: &Library) -> Option<u32> {
    let mut names = library.abi.names();
    let depends =
        !library.family.is_empty() || names.any(|name| library.abi.depends_on_headers(name));
    let majors = library.majors("linux");
    majors.first().copied().filter(|_| depends)
}

/// Libraries that crates link without a stub in the closure of an image, by crate and id of the library, with the
/// first package by name that owns such an image.
fn unstubbed<'w>(workspace: &'w WorkspaceFacts<'w>) -> BTreeMap<(CrateId, &'w str), &'w str> {
    let rows: Vec<_> = rows(workspace).collect();
    let mut unstubbed: BTreeMap<(CrateId, &str), &str> = BTreeMap::new();
    for image in workspace.images() {
        let closure = workspace.closure(image);
        let stubs = stub_ids(workspace, &closure);
        let mut linked: Vec<(CrateId, &str)> = Vec::new();
        for (id, _, row) in &rows {
            if closure.contains(id) {
                linked.extend(
                    row.links
                        .iter()
                        .map(|library_id| (*id, library_id.as_str())),
                );
            }
        }
        for &id in &closure {
            let libraries = linked_by_script(&workspace.crates[id]);
            linked.extend(
                libraries
                    .into_iter()
                    .map(|(library_id, _)| (id, library_id)),
            );
        }
        let owner = workspace.crates[image].name.as_str();
        for (id, library_id) in linked {
            if !stubs.contains(library_id) {
                let first_owner = unstubbed.entry((id, library_id)).or_insert(owner);
                *first_owner = owner.min(first_owner);
            }
        }
    }
    unstubbed
}

/// Libraries with stubs, by their ids, that a crate's build script passes to the linker.
fn linked_by_script<'c>(krate: &'c Crate<'_>) -> Vec<(&'static str, &'c LinkLibrary)> {
    krate
        .link_libraries
        .iter()
        .filter_map(|linked| {
            let library = Library::builtin_ids()
                .filter_map(Library::builtin)
                .find(|library| library.link_names.contains(&linked.name))?;
            Some((library.id.as_str(), linked))
        })
        .collect()
}

fn dlopening_dependency(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
    let mut reported = BTreeSet::new();
    for image in workspace.images() {
        let closure = workspace.closure(image);
        let stubs = stub_ids(workspace, &closure);
        for (id, krate, row) in rows(workspace) {
            if !closure.contains(&id) || !row.uses_dlopen() {
                continue;
            }
            let unused: Vec<String> = row
                .opened_libraries(&krate.features)
                .intersection(&stubs)
                .map(|stub| format!("`{stub}`"))
                .collect();
            if unused.is_empty() || !reported.insert(id) {
                continue;
            }
            let message = format!(
                "{} opens its libraries with dlopen and never calls the stubs of {}",
                krate.display_name(),
                listing(&unused)
            );
            findings
                .push(crate_finding(&DLOPENING_DEPENDENCY, krate, message).help(row.dlopen_help()));
        }
    }
}

/// A header version that a package uses.
struct HeaderUse {
    major: u32,
    /// The version as written.
    version: String,
    /// The table or feature that selects the version.
    user: String,
    /// Whether the version is a binding crate's, not declared.
    is_binding: bool,
    /// Location of the declaration.
    origin: Option<Origin>,
}

fn mixed_header_versions(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
    let mut messages = BTreeSet::new();
    for image in workspace.images() {
        let mut families: BTreeMap<&str, Vec<HeaderUse>> = BTreeMap::new();
        for id in workspace.closure(image) {
            for (family, header) in header_uses(&workspace.crates[id]) {
                families.entry(family).or_default().push(header);
            }
        }
        for (family, mut headers) in families {
            // Declared versions first, those of the user's packages before others: they can be changed.
            headers.sort_by_key(|header| (header.is_binding, header.origin.is_none()));
            let first = &headers[0];
            let Some(second) = headers.iter().find(|header| header.major != first.major) else {
                continue;
            };
            let message = format!(
                "{} is compiled against {family} {}, but {} against {}",
                first.user, first.version, second.user, second.version
            );
            if !messages.insert(message.clone()) {
                continue;
            }
            let mut finding = Diagnostic::error(&MIXED_HEADER_VERSIONS.code, message)
                .help("use one major for both, or keep them in two programs");
            finding.origin = first.origin.clone().or_else(|| second.origin.clone());
            findings.push(finding);
        }
    }
}

/// The headers that a package declares, and those that a binding crate was made from, by family.
fn header_uses<'a>(krate: &Crate<'a>) -> Vec<(&'a str, HeaderUse)> {
    let mut headers = Vec::new();
    if let Some(manifest) = krate.manifest {
        headers.extend(
            manifest
                .stubs
                .iter()
                .filter_map(|stub| declared_headers(krate, manifest, stub)),
        );
    }
    if krate.name == "cudarc" {
        headers.extend(
            krate
                .features
                .iter()
                .filter_map(|feature| cudarc_headers(krate, feature)),
        );
    }
    headers
}

fn declared_headers<'a>(
    krate: &Crate<'_>,
    manifest: &'a Manifest,
    stub: &'a Stub,
) -> Option<(&'a str, HeaderUse)> {
    let HeaderVersion { from, below } = stub.header_version()?;
    let span = &stub.header_version.as_ref()?.span;
    let family = Library::builtin(&stub.id.value)?.toolkit_family()?;
    let features = krate.features.iter().map(String::as_str);
    if !stub.required_features.are_enabled(features) {
        return None;
    }
    let is_major = below == Version::new(from.major + 1, 0) && from.minor == 0;
    let header = HeaderUse {
        major: from.major,
        version: if is_major {
            from.major.to_string()
        } else {
            from.to_string()
        },
        user: format!("`stub.{}` of `{}`", stub.id.value, krate.name),
        is_binding: false,
        origin: krate
            .checked
            .then(|| Origin::new(&manifest.file, span.clone())),
    };
    Some((family, header))
}

fn cudarc_headers(krate: &Crate<'_>, feature: &str) -> Option<(&'static str, HeaderUse)> {
    let code = feature.strip_prefix("cuda-")?.parse().ok()?;
    let version = Version::from_code(code)?;
    let header = HeaderUse {
        major: version.major,
        version: version.to_string(),
        user: format!("feature `{feature}` of {}", krate.display_name()),
        is_binding: true,
        origin: krate
            .required_by
            .as_ref()
            .map(|required_by| required_by.origin.clone()),
    };
    Some(("cuda", header))
}
