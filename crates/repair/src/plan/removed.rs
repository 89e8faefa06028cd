//! Copies of GPU libraries that no image needs after the edits.

use std::collections::BTreeSet;

use gpustub_check::Package;
use gpustub_check::evidence::image_names;

use crate::kept::is_copy;
use crate::libraries::KnownLibraries;
use crate::package_plan::{ImagePlan, PackagePlan};

/// Paths of files that tools grafted into the package (`libcudart-5a077122.so.12.0.107`), and that the
/// package's images no longer need. Files under their own names stay: other packages may load them.
pub fn copies(package: &Package, plan: &PackagePlan, known: &KnownLibraries) -> Vec<String> {
    if plan.images.is_empty() {
        return Vec::new();
    }
    let mut removed: BTreeSet<String> = BTreeSet::new();
    // Names that an edited image, or a removed copy, needed. Others may be opened by their paths.
    let mut formerly_needed: BTreeSet<&str> = plan.images.iter().flat_map(replaced_names).collect();
    loop {
        let needed = needed_after_edits(package, plan, &removed);
        let unneeded_copy = package.all_images().find(|image| {
            known
                .file(image.member.file_name())
                .is_some_and(|file| is_copy(&file))
                && !removed.contains(&image.member.path)
                && image_names(image).any(|name| formerly_needed.contains(name))
                && !image_names(image).any(|name| needed.contains(name))
        });
        let Some(image) = unneeded_copy else {
            return removed.into_iter().collect();
        };
        formerly_needed.extend(image.needed().iter().map(String::as_str));
        removed.insert(image.member.path.clone());
    }
}

/// Names that the images of a package need after their edits, without images that are removed.
fn needed_after_edits<'a>(
    package: &'a Package,
    plan: &PackagePlan,
    removed: &BTreeSet<String>,
) -> BTreeSet<&'a str> {
    let mut needed = BTreeSet::new();
    for image in package.all_images() {
        let path = &image.member.path;
        if removed.contains(path) {
            continue;
        }
        let replaced: Vec<&str> = plan
            .images
            .iter()
            .find(|edited| edited.path == *path)
            .into_iter()
            .flat_map(replaced_names)
            .collect();
        needed.extend(
            image
                .needed()
                .iter()
                .map(String::as_str)
                .filter(|name| !replaced.contains(name)),
        );
    }
    needed
}

/// Names of needed libraries that an edit replaces.
fn replaced_names(edited: &ImagePlan) -> impl Iterator<Item = &str> {
    edited
        .request
        .libraries
        .iter()
        .flat_map(|library| library.needed.iter().map(String::as_str))
}
