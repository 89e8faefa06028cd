//! Images that call no function of the GPU libraries that they need: these are for other code, which a repair must not
//! take them from.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::evidence::gpu_library_exporting;
use gpustub_check::gpu_file::gpu_file;
use gpustub_check::wheel::is_dist_info;
use gpustub_check::{ImageId, LoadGraph, PackageImage};
use gpustub_core::diag::listing;
use gpustub_core::library::Role;
use gpustub_image::ImageKind;

use super::decide::{Decision, Refusal};
use crate::kept::KeptLibraries;
use crate::libraries::is_gpu_name;

/// Refuses images that load GPU libraries for code that stays as it is, and then those that load them for these.
///
/// Code of a package may react to a missing library of such an image: PyTorch loads the libraries of the vendor's wheels if
/// `libtorch_global_deps.so` does not load, and `libtorch_cuda.so` finds them loaded (`torch/__init__.py`).
pub fn refuse(
    graph: &LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    decisions: &mut BTreeMap<ImageId, Decision>,
    refusals: &mut BTreeMap<ImageId, Refusal>,
) {
    loop {
        let refused = decisions.iter().find_map(|(&id, decision)| {
            let user = user(graph, kept, decisions, decision)?;
            Some((id, refusal(decision, &user)))
        });
        let Some((id, refusal)) = refused else { break };
        decisions.remove(&id);
        refusals.insert(id, refusal);
    }
}

/// The code that an image loads GPU libraries for.
fn user(
    graph: &LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    decisions: &BTreeMap<ImageId, Decision>,
    decision: &Decision,
) -> Option<String> {
    if !decision.functions.is_empty() {
        return None;
    }
    user_in_package(graph, kept, decisions, decision).or_else(|| {
        let unexplained = !is_explained(graph, decisions, decision);
        unexplained.then(|| user_elsewhere(graph, decision))?
    })
}

/// An image of the package that stays as it is, and needs one of the libraries or has references to some GPU library.
fn user_in_package(
    graph: &LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    decisions: &BTreeMap<ImageId, Decision>,
    decision: &Decision,
) -> Option<String> {
    let loader = graph.image(decision.id);
    let (_, user) = graph.entries().find(|(id, user)| {
        // The loader reads a program before all that the program opens.
        let may_follow = user.facts.kind != ImageKind::Program
            && user.facts.link.machine == loader.facts.link.machine
            && *id != decision.id
            && kept.provides(user);
        may_follow
            && !decisions.contains_key(id)
            && (user
                .needed()
                .iter()
                .any(|name| decision.replaces(name) && is_toolkit(name))
                || has_references_only(user))
    })?;
    Some(format!(
        "`{}`, which stays as it is",
        user.member.file_name()
    ))
}

/// Whether a library is part of a toolkit, which only a run path may lead to; the loader finds the driver anywhere.
fn is_toolkit(name: &str) -> bool {
    gpu_file(name).is_some_and(|file| file.role == Role::Toolkit)
}

/// Whether an image imports GPU functions, and needs no GPU library: it finds them in those that others load.
fn has_references_only(image: &PackageImage<'_>) -> bool {
    let mut imports = image.facts.imports.iter();
    !image.needed().iter().any(|name| is_gpu_name(name))
        && imports.any(|import| gpu_library_exporting(&import.name).is_some())
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
fn user_elsewhere(graph: &LoadGraph<'_>, decision: &Decision) -> Option<String> {
    let image = graph.image(decision.id);
    let imports = |names: [&str; 2]| {
        let mut imports = image.facts.imports.iter();
        imports.any(|import| names.contains(&import.name.as_str()))
    };
    // Code that opens the library itself, as legate's librealm does, still finds it.
    if imports(["dlsym", "dlvsym"]) && !imports(["dlopen", "dlmopen"]) {
        return Some("functions that it looks up with dlsym".to_owned());
    }
    let is_wheel = image
        .package
        .members
        .iter()
        .any(|member| is_dist_info(&member.path, "WHEEL"));
    // Sonames of distributions have a version, those of wheels mostly none: libssl.so.3, libtorch.so.
    let library = image.needed().iter().find(|name| {
        is_wheel
            && name.ends_with(".so")
            && !is_gpu_name(name)
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
    Refusal {
        reason: format!(
            "calls no function of {}, and may load {pronoun} for {user}",
            listing(&files)
        ),
        help: Some(
            "whoever builds it can leave them out: with `-Wl,--as-needed` the linker records libraries \
             whose functions are called only"
                .to_owned(),
        ),
    }
}
