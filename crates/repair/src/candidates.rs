//! Images that may need an edit.

use gpustub_check::evidence::is_from_vendor;
use gpustub_check::{Package, PackageImage};

use crate::libraries::KnownLibraries;
use crate::names::is_stub_file;

/// Paths of images that require GPU libraries and are not a vendor's.
pub fn candidates<'a>(package: &'a Package, known: &KnownLibraries) -> Vec<&'a str> {
    package
        .all_images()
        .filter(|image| is_candidate(image, known))
        .map(|image| image.member.path.as_str())
        .collect()
}

/// Whether the image requires a GPU library and is not a vendor's.
pub fn is_candidate(image: &PackageImage<'_>, known: &KnownLibraries) -> bool {
    let link = &image.facts.link;
    let nodes = link.verneed.iter().flat_map(|need| &need.nodes);
    let delayed = &image.facts.delayed;
    !is_from_vendor(image)
        && !is_stub_file(image.member.file_name())
        && link
            .needed
            .iter()
            .chain(nodes)
            .chain(delayed)
            .any(|name| known.is_file(name) || known.other_version(name).is_some())
}

/// Paths of images that import GPU functions without needing a GPU library. Those that are loaded with a
/// repaired image need an edit, too. Not those of Windows, whose imports name a DLL each.
pub fn followers<'a>(package: &'a Package, known: &KnownLibraries) -> Vec<&'a str> {
    if !package.images().any(|image| is_candidate(&image, known)) {
        return Vec::new();
    }
    package
        .images()
        .filter(|image| {
            !is_candidate(image, known)
                && !is_from_vendor(image)
                && !is_stub_file(image.member.file_name())
                && imports_function(image, known)
        })
        .map(|image| image.member.path.as_str())
        .collect()
}

fn imports_function(image: &PackageImage<'_>, known: &KnownLibraries) -> bool {
    image
        .facts
        .imports
        .iter()
        .any(|import| known.is_symbol(&import.name))
}
