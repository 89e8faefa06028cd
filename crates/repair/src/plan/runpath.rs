//! Search paths of edited images.

use std::collections::BTreeSet;

use gpustub_check::gpu_file::is_system;
use gpustub_check::search_dirs::{SearchDir, installed, resolve_entry};
use gpustub_check::{ImageId, LoadGraph, PackageImage};

use super::decide::Decision;
use crate::libraries::KnownLibraries;

/// Entry of the runpath by which an image finds the stub library; `None`: it has one already.
pub fn added(image: &PackageImage<'_>, directory: &str) -> Option<String> {
    let stub_dir = SearchDir::Inside(directory.to_owned());
    if image
        .runpath()
        .any(|entry| resolve_entry(image, entry) == stub_dir)
    {
        return None;
    }
    let path = installed(&image.member.path);
    let (origin, _) = path.rsplit_once('/').unwrap_or_default();
    Some(relative(origin, directory))
}

/// Entry for a directory in files of another directory.
fn relative(origin: &str, directory: &str) -> String {
    let components = |path: &'_ str| -> Vec<String> {
        let components = path.split('/').filter(|component| !component.is_empty());
        components.map(str::to_owned).collect()
    };
    let (origin, target) = (components(origin), components(directory));
    let common = origin
        .iter()
        .zip(&target)
        .take_while(|(a, b)| a == b)
        .count();
    let mut entry = "$ORIGIN".to_owned();
    for component in
        (origin[common..].iter().map(|_| "..")).chain(target[common..].iter().map(String::as_str))
    {
        entry.push('/');
        entry.push_str(component);
    }
    entry
}

/// Directories in which a stub library in `directory` finds a user-defined library, as the image did: those of its
/// runpath.
pub fn search_dirs(image: &PackageImage<'_>, directory: &str) -> Vec<String> {
    image
        .runpath()
        .filter_map(|entry| match resolve_entry(image, entry) {
            SearchDir::Inside(target) => Some(relative(directory, &target)),
            SearchDir::Elsewhere if !entry.contains('$') => Some(entry.to_owned()),
            _ => None,
        })
        .collect()
}

/// Entries that are toolkits of the build machine, such as `/usr/local/cuda-12.1/lib64`. The stub library
/// searches these toolkits itself. All stay if the image may need one for another library.
pub fn removed(
    graph: &LoadGraph<'_>,
    id: ImageId,
    decision: &Decision,
    known: &KnownLibraries,
) -> Vec<String> {
    let image = graph.image(id);
    let needs_other_library = image
        .needed()
        .iter()
        .any(|name| !decision.replaces(name) && !is_system(name) && graph.find(id, name).is_none());
    if needs_other_library || !known.opened_names(&image).is_empty() {
        return Vec::new();
    }
    let roots: BTreeSet<&str> = decision
        .functions
        .values()
        .flat_map(|binding| [binding.owner, binding.replaced])
        .chain(
            decision
                .requirements
                .iter()
                .map(|requirement| requirement.library),
        )
        .flat_map(|library| &library.roots)
        .map(String::as_str)
        .collect();
    image
        .runpath()
        .filter(|entry| roots.iter().any(|root| is_below(entry, root)))
        .map(str::to_owned)
        .collect()
}

/// Whether a directory is a toolkit's root or below it. One `*` in the root's last component matches a version.
fn is_below(entry: &str, root: &str) -> bool {
    let mut components = entry.split('/');
    root.split('/').all(|pattern| {
        components
            .next()
            .is_some_and(|component| match pattern.split_once('*') {
                Some((start, end)) => {
                    component.len() > start.len() + end.len()
                        && component.starts_with(start)
                        && component.ends_with(end)
                }
                None => component == pattern,
            })
    })
}

#[cfg(test)]
mod tests {
    use super::is_below;

    #[test]
    fn toolkit_directories_are_below_their_roots() {
        for (entry, root, expected) in [
            (
                "/usr/local/cuda-12.1/targets/x86_64-linux/lib",
                "/usr/local/cuda-*",
                true,
            ),
            ("/usr/local/cuda/lib64", "/usr/local/cuda", true),
            ("/usr/local/cuda", "/usr/local/cuda", true),
            ("/usr/local/cuda-12.1", "/usr/local/cuda", false),
            ("/usr/local/cuda-/lib64", "/usr/local/cuda-*", false),
            ("/opt/rocm/core-7.14/lib", "/opt/rocm/core-*", true),
            ("/usr/local/lib", "/usr/local/cuda", false),
            ("/usr/local", "/usr/local/cuda", false),
            ("$ORIGIN/../cuda", "/usr/local/cuda", false),
        ] {
            assert_eq!(is_below(entry, root), expected, "{entry} {root}");
        }
    }
}
