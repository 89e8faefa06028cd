//! Images that call no function of the GPU libraries that they need: these are for other libraries, which a repair
//! must not take them from.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::platform_tag::{Family, Tag};
use gpustub_check::wheel::is_dist_info;
use gpustub_check::{ImageId, LoadGraph};
use gpustub_core::diag::listing;

use super::decide::{Decision, Refusal};
use crate::libraries::is_gpu_name;

/// Refusals of the images that load GPU libraries for a library that stays as it is.
///
/// Code of a package may react to a missing library of such an image: PyTorch loads the libraries of the vendor's wheels if
/// `libtorch_global_deps.so` does not load, and `libtorch_cuda.so` finds them loaded (`torch/__init__.py`).
pub fn refusals(
    graph: &LoadGraph<'_>,
    decisions: &BTreeMap<ImageId, Decision>,
) -> BTreeMap<ImageId, Refusal> {
    let mut refusals = BTreeMap::new();
    for (&id, decision) in decisions {
        if !decision.functions.is_empty() {
            continue;
        }
        if let Some(user) = user_in_package(graph, decisions, decision)
            .or_else(|| user_elsewhere(graph, decisions, decision))
        {
            refusals.insert(id, refusal(decision, &user));
        }
    }
    refusals
}

/// An image of the package that needs one of the libraries, and keeps it.
fn user_in_package(
    graph: &LoadGraph<'_>,
    decisions: &BTreeMap<ImageId, Decision>,
    decision: &Decision,
) -> Option<String> {
    let (_, image) = graph.entries().find(|(id, image)| {
        !decisions.contains_key(id) && image.needed().iter().any(|name| decision.replaces(name))
    })?;
    Some(format!(
        "`{}`, which stays as it is",
        image.member.file_name()
    ))
}

/// A library of another wheel that the image needs. It may need the libraries, too, and have no run path to them, unless
/// an edited image explains the need: linkers also record libraries of a library that is linked, as OpenMM's plugins show.
fn user_elsewhere(
    graph: &LoadGraph<'_>,
    decisions: &BTreeMap<ImageId, Decision>,
    decision: &Decision,
) -> Option<String> {
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
    if files.all(|file| edited.iter().any(|edited| edited.replaces(file))) {
        return None;
    }
    let image = graph.image(decision.id);
    let is_wheel = image
        .package
        .members
        .iter()
        .any(|member| is_dist_info(&member.path, "WHEEL"));
    // All libraries that any manylinux tag guarantees.
    let system = Tag {
        family: Family::Many,
        minor: u32::MAX,
        machine: None,
    };
    let library = image.needed().iter().find(|name| {
        is_wheel
            && !is_gpu_name(name)
            && !system.has_library(name, &decision.machine)
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
            "it starts only where they are installed: with `-Wl,--as-needed` the linker leaves out \
             libraries of which no function is called"
                .to_owned(),
        ),
    }
}
