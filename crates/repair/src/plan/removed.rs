//! Copies of GPU libraries that no image needs after the edits.

use std::collections::BTreeSet;

use gpustub_check::evidence::image_names;
use gpustub_check::gpu_file::gpu_file;
use gpustub_check::{Image, Package};

use crate::package_plan::PackagePlan;

/// Paths of files that tools grafted into the package (`libcudart-5a077122.so.12.0.107`), and that the
/// package's images no longer need. Files under their own names stay: other packages may load them.
pub fn copies(package: &Package, plan: &PackagePlan) -> Vec<String> {
    if plan.images.is_empty() {
        return Vec::new();
    }
    let is_copy =
        |image: &Image<'_>| gpu_file(image.member.file_name()).is_some_and(|file| file.hashed);
    let mut removed: BTreeSet<String> = BTreeSet::new();
    let replaced = plan
        .images
        .iter()
        .flat_map(|image| &image.request.libraries);
    let replaced = replaced.flat_map(|library| &library.needed);
    // Names that an edited image, or a removed copy, needed. Others may be opened by their paths.
    let mut former: BTreeSet<&str> = replaced.map(String::as_str).collect();
    loop {
        let mut needed: BTreeSet<&str> = BTreeSet::new();
        for image in package.images() {
            let path = &image.member.path;
            if removed.contains(path) {
                continue;
            }
            let edit = plan.images.iter().find(|one| one.path == *path);
            let replaced = |name: &String| {
                let libraries = edit.iter().flat_map(|edit| &edit.request.libraries);
                libraries
                    .flat_map(|library| &library.needed)
                    .any(|other| other == name)
            };
            let left = image.needed().iter().filter(|name| !replaced(name));
            needed.extend(left.map(String::as_str));
        }
        let unneeded = package.images().find(|image| {
            is_copy(image)
                && !removed.contains(&image.member.path)
                && image_names(image).any(|name| former.contains(name))
                && !image_names(image).any(|name| needed.contains(name))
        });
        match unneeded {
            Some(image) => {
                former.extend(image.needed().iter().map(String::as_str));
                removed.insert(image.member.path.clone())
            }
            None => return removed.into_iter().collect(),
        };
    }
}
