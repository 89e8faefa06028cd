//! Images that call no function of the GPU libraries that they need: these are for other code, which a repair must not
//! take them from.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::wheel::is_wheel;
use gpustub_check::{ImageId, LoadGraph};
use gpustub_core::diag::listing;
use gpustub_core::library::Role;
use gpustub_image::ImageKind;

use super::decide::Decision;
use super::refusal::Refusal;
use crate::kept::KeptLibraries;
use crate::libraries::KnownLibraries;

/// Refuses images that load GPU libraries for code that stays as it is, and then those that load them for these.
///
/// Code of a package may react to a missing library of such an image: PyTorch loads the libraries of the vendor's wheels if
/// `libtorch_global_deps.so` does not load, and `libtorch_cuda.so` finds them loaded (`torch/__init__.py`).
pub fn refuse(
    graph: &LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    known: &KnownLibraries,
    decisions: &mut BTreeMap<ImageId, Decision>,
    refusals: &mut BTreeMap<ImageId, Refusal>,
) {
    let users = Users::find(graph, kept, known);
    loop {
        let refused: BTreeMap<ImageId, Refusal> = decisions
            .iter()
            .filter_map(|(&id, decision)| {
                let user = user(graph, &users, decisions, decision, known)?;
                Some((id, refusal(decision, &user)))
            })
            .collect();
        if refused.is_empty() {
            break;
        }
        decisions.retain(|id, _| !refused.contains_key(id));
        refusals.extend(refused);
    }
}

/// Libraries of the package that may find GPU functions in those that others load. The loader reads a program before all
/// that the program opens.
struct Users {
    /// Libraries that need part of a toolkit, which only a run path may lead to; the loader finds the driver anywhere.
    needing: Vec<ImageId>,
    /// Libraries that import GPU functions, and need no GPU library.
    importing: Vec<ImageId>,
}

impl Users {
    fn find(graph: &LoadGraph<'_>, kept: &KeptLibraries<'_>, known: &KnownLibraries) -> Self {
        let (mut needing, mut importing) = (Vec::new(), Vec::new());
        for (id, image) in graph.entries() {
            if image.facts.kind == ImageKind::Program || !kept.provides(image) {
                continue;
            }
            let mut imports = image.facts.imports.iter();
            if image.needed().iter().any(|name| is_toolkit(name, known)) {
                needing.push(id);
            } else if !image.needed().iter().any(|name| known.is_file(name))
                && imports.any(|import| known.is_symbol(&import.name))
            {
                importing.push(id);
            }
        }
        Self { needing, importing }
    }
}

/// The code that an image loads GPU libraries for.
fn user(
    graph: &LoadGraph<'_>,
    users: &Users,
    decisions: &BTreeMap<ImageId, Decision>,
    decision: &Decision,
    known: &KnownLibraries,
) -> Option<String> {
    if !decision.functions.is_empty() {
        return None;
    }
    let user = user_in_package(graph, users, decisions, decision, known);
    if user.is_some() || is_explained(graph, decisions, decision) {
        return user;
    }
    user_elsewhere(graph, decision, known)
}

/// An image of the package that stays as it is, and needs one of the libraries or has references to some GPU library.
fn user_in_package(
    graph: &LoadGraph<'_>,
    users: &Users,
    decisions: &BTreeMap<ImageId, Decision>,
    decision: &Decision,
    known: &KnownLibraries,
) -> Option<String> {
    let machine = &graph.image(decision.id).facts.link.machine;
    let needing = users.needing.iter().filter(|id| {
        // An image that is repaired in part keeps libraries.
        let is_kept = |name: &str| !decisions.get(id).is_some_and(|user| user.replaces(name));
        let mut needed = graph.image(**id).needed().iter();
        needed.any(|name| is_toolkit(name, known) && decision.replaces(name) && is_kept(name))
    });
    let importing = users.importing.iter();
    let user = needing
        .chain(importing.filter(|id| !decisions.contains_key(id)))
        .find(|id| graph.image(**id).facts.link.machine == *machine)?;
    let file_name = graph.image(*user).member.file_name();
    Some(format!("`{file_name}`, which stays as it is"))
}

fn is_toolkit(name: &str, known: &KnownLibraries) -> bool {
    known
        .file(name)
        .is_some_and(|file| file.role == Role::Toolkit)
}

/// Whether an image that is edited, and loaded with this one, needs the same libraries: linkers also record the libraries of
/// a library that is linked, as OpenMM's plugins show.
fn is_explained(
    graph: &LoadGraph<'_>,
    decisions: &BTreeMap<ImageId, Decision>,
    decision: &Decision,
) -> bool {
    let loaded = graph.loaded_with(decision.id);
    let edited: Vec<&Decision> = loaded
        .iter()
        .skip(1)
        .filter_map(|id| decisions.get(id))
        .collect();
    let mut files = decision
        .requirements
        .iter()
        .flat_map(|requirement| &requirement.files);
    files.all(|file| edited.iter().any(|edited| edited.replaces(file)))
}

/// A library of another wheel that the image needs, which may need the libraries, too, and have no run path to them; or
/// code that looks functions up by name.
fn user_elsewhere(
    graph: &LoadGraph<'_>,
    decision: &Decision,
    known: &KnownLibraries,
) -> Option<String> {
    let image = graph.image(decision.id);
    let imports = |names: [&str; 2]| {
        let mut imports = image.facts.imports.iter();
        imports.any(|import| names.contains(&import.name.as_str()))
    };
    // Code that opens the library itself, as legate's librealm does, still finds it.
    if imports(["dlsym", "dlvsym"]) && !imports(["dlopen", "dlmopen"]) {
        return Some("functions that it looks up with dlsym".to_owned());
    }
    // Sonames of distributions have a version, those of wheels mostly none: libssl.so.3, libtorch.so.
    let library = image.needed().iter().find(|name| {
        is_wheel(image.package)
            && name.ends_with(".so")
            && !known.is_file(name)
            && graph.find(decision.id, name).is_none()
    })?;
    Some(format!("{library} of another package"))
}

fn refusal(decision: &Decision, user: &str) -> Refusal {
    let files: BTreeSet<&String> = decision
        .requirements
        .iter()
        .flat_map(|requirement| &requirement.files)
        .collect();
    let files: Vec<&String> = files.into_iter().collect();
    let pronoun = if files.len() == 1 { "it" } else { "them" };
    let reason = format!(
        "calls no function of {}, and may load {pronoun} for {user}",
        listing(&files)
    );
    Refusal::from(reason).or(
        "whoever builds it can leave them out: with `-Wl,--as-needed` the linker \
         records libraries whose functions are called only",
    )
}
