//! GPU libraries that an image needs and stubs cannot replace, itself or through a vendor's library.

use std::collections::BTreeMap;

use gpustub_check::evidence::is_from_vendor;
use gpustub_check::remedy::WithoutStubs;
use gpustub_check::{ImageId, LoadGraph};
use gpustub_core::diag::listing;
use gpustub_image::edit::Inspection;

use super::refusal::Refusal;
use crate::kept::KeptLibraries;

/// Refusals of an image that needs a GPU library without stubs, itself or through a vendor's library.
pub fn unavailable_libraries(
    graph: &LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    id: ImageId,
    inspection: &Inspection,
) -> Vec<Refusal> {
    let known = kept.known;
    let mut refusals = Vec::new();
    let is_outside = |name: &&String| {
        known.replaced_library(inspection, name).is_none() && graph.find(id, name).is_none()
    };
    let unknown: Vec<&String> = (inspection.needed.iter())
        .filter(|name| known.is_file(name) && is_outside(name))
        .collect();
    if let [first, ..] = unknown[..] {
        let reason = format!("needs {}, for which there are no stubs", listing(&unknown));
        let pronoun = if unknown.len() == 1 { "it" } else { "them" };
        let mut refusal = requires_installed(reason, &unknown, pronoun);
        let files: Vec<_> = unknown.iter().filter_map(|name| known.file(name)).collect();
        refusal = match WithoutStubs::of(&files) {
            WithoutStubs::Loaders => {
                refusal.or("a package may bring a loader, which auditwheel or delvewheel copies")
            }
            WithoutStubs::Classes => refusal.or("stubs cannot replace C++ classes"),
            WithoutStubs::Functions => refusal.or(&format!(
                "`--library NAME=path/to/{first}` makes stubs of its functions"
            )),
        };
        refusals.push(refusal);
    }
    for name in inspection.needed.iter().filter(is_outside) {
        let Some(library) = known.other_version(name) else {
            continue;
        };
        let reason = format!(
            "needs {name}, another version of `{}` than that of `--library`",
            library.id
        );
        let refusal = Refusal {
            keeps: vec![name.clone()],
            ..Refusal::from(reason)
        };
        let part = format!("add `--library NAME=path/to/{name}`, with a name of its own");
        refusals.push(refusal.or(&part));
    }
    for (library, lacked) in lacking_vendor_libraries(graph, kept, id, inspection) {
        let reason = format!(
            "loads {library} of this package, which needs {}",
            listing(&lacked)
        );
        refusals.push(requires_installed(reason, &lacked, library));
    }
    refusals
}

/// Refusal of an image that starts only where these libraries are installed.
fn requires_installed<Name: AsRef<str>>(reason: String, names: &[Name], without: &str) -> Refusal {
    let are = if names.len() == 1 { "is" } else { "are" };
    let keeps = names.iter().map(|name| name.as_ref().to_owned()).collect();
    let names = listing(names);
    let help = format!(
        "it starts only where {names} {are} installed: build the image without {without}, or leave the \
         image out of the package"
    );
    Refusal {
        help: Some(help),
        keeps,
        ..reason.into()
    }
}

/// Vendors' libraries of the package that stay requirements of the image, and the GPU libraries that each needs and
/// the package lacks. A vendor's library is not edited.
fn lacking_vendor_libraries<'a>(
    graph: &LoadGraph<'a>,
    kept: &KeptLibraries<'_>,
    id: ImageId,
    inspection: &Inspection,
) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut lacking = BTreeMap::new();
    for name in graph.image(id).needed() {
        if kept.known.replaced_library(inspection, name).is_some() && !kept.contains(name) {
            continue;
        }
        let Some(library) = graph.find(id, name) else {
            continue;
        };
        if !is_from_vendor(&graph.image(library)) {
            continue;
        }
        for loaded in graph.loaded_with(library) {
            let image = graph.image(loaded);
            if !is_from_vendor(&image) {
                continue;
            }
            let lacked: Vec<&str> = image
                .needed()
                .iter()
                .map(String::as_str)
                .filter(|name| kept.known.is_file(name) && graph.find(loaded, name).is_none())
                .collect();
            if !lacked.is_empty() {
                lacking.insert(image.member.file_name(), lacked);
            }
        }
    }
    lacking
}
