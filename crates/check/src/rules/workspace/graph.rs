//! Rules on the crates of the dependency graph.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::code;
use gpustub_core::diag::{Diagnostic, Origin, listing};
use gpustub_core::library::Library;
use gpustub_core::manifest::RuleLevel;
use gpustub_core::version::{HeaderVersion, Version};

use crate::known_crates::{Known, known};
use crate::rule::{Check, Findings, Rule};
use crate::workspace::{Crate, CrateId, LinkLibrary, Workspace};

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
    let found = Diagnostic::error(&rule.code, message);
    match &krate.asked {
        Some(asked) => found
            .with_origin(&asked.origin.file, asked.origin.span.clone())
            .label(format!("required by `{}`", asked.by)),
        None => found,
    }
}

/// All crates with the rows of the list of known crates that apply to them.
fn rows<'w>(
    workspace: &'w Workspace<'w>,
) -> impl Iterator<Item = (CrateId, &'w Crate<'w>, &'static Known)> {
    workspace.crates.ids().flat_map(|id| {
        let krate = &workspace.crates[id];
        known(&krate.name, &krate.features).map(move |row| (id, krate, row))
    })
}

fn build_time_toolkit(workspace: &Workspace<'_>, findings: &mut Findings) {
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

fn static_cudart(workspace: &Workspace<'_>, findings: &mut Findings) {
    for (_, krate, row) in rows(workspace).filter(|(_, _, row)| row.cudart) {
        let message = format!(
            "{} links a static CUDA runtime, of the major on the build machine",
            krate.display_name()
        );
        let other = match row.name.as_str() {
            "cudarc" => "use the feature `dynamic-linking` with the stubs of gpustub",
            _ => "make the dependency optional, behind a feature that is off by default",
        };
        findings.push(crate_finding(&STATIC_CUDART_DEPENDENCY, krate, message).help(other));
    }
}

fn unstubbed_library(workspace: &Workspace<'_>, findings: &mut Findings) {
    // Programs without a stub of a linked library, by crate and library.
    let mut bare: BTreeMap<(CrateId, &str), BTreeSet<&str>> = BTreeMap::new();
    let rows: Vec<_> = rows(workspace).collect();
    for image in workspace.images() {
        let closure = workspace.closure(image);
        let stubbed = |id: &str| {
            let manifests = closure
                .iter()
                .filter_map(|&at| workspace.crates[at].manifest);
            let mut stubs = manifests.flat_map(|manifest| &manifest.stubs);
            stubs.any(|stub| stub.id.value == id)
        };
        let owner = &workspace.crates[image].name;
        for (index, _, row) in rows.iter().filter(|(index, ..)| closure.contains(index)) {
            for id in row.links.iter().filter(|id| !stubbed(id)) {
                bare.entry((*index, id)).or_default().insert(owner);
            }
        }
        for &index in &closure {
            let linked = linked_by_script(&workspace.crates[index]).into_iter();
            for (id, _) in linked.filter(|(id, _)| !stubbed(id)) {
                bare.entry((index, id)).or_default().insert(owner);
            }
        }
    }
    for ((index, id), images) in bare {
        let krate = &workspace.crates[index];
        let owner = images.into_iter().next().unwrap_or_default();
        let scripted = linked_by_script(krate);
        let scripted = scripted.into_iter().find(|(linked, _)| *linked == id);
        let mut message = format!(
            "{} links the library of `{id}`, for which `{owner}` declares no stub",
            krate.display_name()
        );
        let directories = scripted.map_or(&[][..], |(_, library)| &library.directories);
        if !directories.is_empty() {
            message += &format!("; its build script searches {}", listing(directories));
        }
        let mut found = crate_finding(&UNSTUBBED_LIBRARY, krate, message).help(format!(
            "declare the library: `cargo gpustub add -p {owner} {id}`"
        ));
        if let Some(origin) = scripted.and_then(|(_, library)| library.origin.clone()) {
            found.origin = Some(origin);
        }
        findings.push(found);
    }
}

/// Libraries with stubs, by their ids, that a crate's build script passes to the linker.
fn linked_by_script<'c>(krate: &'c Crate<'_>) -> Vec<(&'static str, &'c LinkLibrary)> {
    let linked = krate.link_libraries.iter().filter_map(|linked| {
        let mut libraries = Library::builtin_ids().filter_map(Library::builtin);
        let library = libraries.find(|library| library.link_names.contains(&linked.name))?;
        Some((library.id.as_str(), linked))
    });
    linked.collect()
}

fn dlopening_dependency(workspace: &Workspace<'_>, findings: &mut Findings) {
    let mut found = BTreeSet::new();
    for image in workspace.images() {
        let closure = workspace.closure(image);
        let manifests = closure
            .iter()
            .filter_map(|&id| workspace.crates[id].manifest);
        let stubs: BTreeSet<&str> = manifests
            .flat_map(|manifest| &manifest.stubs)
            .map(|stub| stub.id.value.as_str())
            .collect();
        for (id, krate, row) in rows(workspace).filter(|(id, ..)| closure.contains(id)) {
            if !row.uses_dlopen() {
                continue;
            }
            let libraries = row.opened_libraries(&krate.features);
            let unused: Vec<String> = libraries
                .intersection(&stubs)
                .map(|id| format!("`{id}`"))
                .collect();
            if unused.is_empty() || !found.insert(id) {
                continue;
            }
            let message = format!(
                "{} opens its libraries with dlopen and never calls the stubs of {}",
                krate.display_name(),
                listing(&unused)
            );
            let found = crate_finding(&DLOPENING_DEPENDENCY, krate, message);
            findings.push(found.help(row.dlopen_help()));
        }
    }
}

/// A header version, its owner, and the place of its declaration.
struct Header {
    major: u32,
    /// The version as written.
    shown: String,
    who: String,
    /// The version is a binding crate's, not declared.
    bound: bool,
    place: Option<Origin>,
}

fn mixed_header_versions(workspace: &Workspace<'_>, findings: &mut Findings) {
    let mut reported = BTreeSet::new();
    for image in workspace.images() {
        let mut families: BTreeMap<&str, Vec<Header>> = BTreeMap::new();
        for at in workspace.closure(image) {
            let krate = &workspace.crates[at];
            for (family, header) in headers(krate) {
                families.entry(family).or_default().push(header);
            }
        }
        for (family, mut headers) in families {
            // Declared versions first, those of the user's packages before others: they can be changed.
            headers.sort_by_key(|header| (header.bound, header.place.is_none()));
            let Some(other) = (headers.iter()).find(|header| header.major != headers[0].major)
            else {
                continue;
            };
            let first = &headers[0];
            let message = format!(
                "{} is compiled against {family} {}, but {} against {}",
                first.who, first.shown, other.who, other.shown
            );
            let mut found = Diagnostic::error(&MIXED_HEADER_VERSIONS.code, message)
                .help("use one major for both, or keep them in two programs");
            found.origin = first.place.clone().or_else(|| other.place.clone());
            if reported.insert(found.message.clone()) {
                findings.push(found);
            }
        }
    }
}

/// The headers that a package declares, and those that a binding crate was made from.
fn headers<'a>(krate: &Crate<'a>) -> Vec<(&'a str, Header)> {
    let stubs = krate.manifest.map_or(&[][..], |manifest| &manifest.stubs);
    let declared = stubs.iter().filter_map(|stub| {
        let header = stub.header_version()?;
        let span = &stub.header_version.as_ref()?.span;
        let features = krate.features.iter().map(String::as_str);
        let library = Library::builtin(&stub.id.value)?;
        // Versions of libraries that do not follow their toolkit cannot be compared with it.
        if !stub.required_features.are_enabled(features) || !counts_with_family(library) {
            return None;
        }
        let HeaderVersion { from, below } = header;
        let place = krate.checked.then(|| {
            let file = krate.manifest.map_or("", |manifest| &manifest.file);
            Origin::new(file, span.clone())
        });
        let who = format!("`stub.{}` of `{}`", stub.id.value, krate.name);
        Some((
            library.family.as_str(),
            Header {
                major: from.major,
                shown: if below == Version::new(from.major + 1, 0) && from.minor == 0 {
                    from.major.to_string()
                } else {
                    from.to_string()
                },
                who,
                bound: false,
                place,
            },
        ))
    });
    let bound = krate.features.iter().filter_map(|feature| {
        let number = feature.strip_prefix("cuda-")?.parse().ok()?;
        let version = Version::from_code(number).filter(|_| krate.name == "cudarc")?;
        Some((
            "cuda",
            Header {
                major: version.major,
                shown: version.to_string(),
                bound: true,
                who: format!("feature `{feature}` of {}", krate.display_name()),
                place: krate.asked.as_ref().map(|asked| asked.origin.clone()),
            },
        ))
    });
    declared.chain(bound).collect()
}

/// Whether the library has the version of its toolkit, as those have whose ABI tables come from headers.
fn counts_with_family(library: &Library) -> bool {
    !library.abi.headers().is_empty() && !library.family.is_empty()
}
