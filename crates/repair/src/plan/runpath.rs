//! Search paths of edited images.

use gpustub_check::evidence::opened_names;
use gpustub_check::gpu_file::is_system;
use gpustub_check::search_dirs::{SearchDir, installed, resolve_entry};
use gpustub_check::{Image, ImageId, LoadGraph};

use super::decide::Decision;

/// Entry of the runpath by which an image finds the stub library; `None`: it has one already.
pub fn added(image: &Image<'_>, directory: &str) -> Option<String> {
    let reaches =
        |entry: &str| resolve_entry(image, entry) == SearchDir::Inside(directory.to_owned());
    if image.runpath().any(reaches) {
        return None;
    }
    let own = installed(&image.member.path);
    let own: Vec<&str> = own.split('/').collect();
    let own = &own[..own.len() - 1];
    let target: Vec<&str> = directory
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    let common = own.iter().zip(&target).take_while(|(a, b)| a == b).count();
    let mut parts = vec!["$ORIGIN"];
    parts.extend(own[common..].iter().map(|_| ".."));
    parts.extend(&target[common..]);
    Some(parts.join("/"))
}

/// Entries that are toolkits of the build machine, such as `/usr/local/cuda-12.1/lib64`. The stub library
/// searches these toolkits itself. All stay if the image may need one for another library.
pub fn removed(graph: &LoadGraph<'_>, id: ImageId, decision: &Decision) -> Vec<String> {
    let image = graph.image(id);
    let replaced = |name: &str| {
        let mut files = decision.required.iter().flat_map(|one| &one.files);
        files.any(|file| file == name)
    };
    let is_found =
        |name: &String| replaced(name) || is_system(name) || graph.find(id, name).is_some();
    if !image.needed().iter().all(is_found) || !opened_names(&image).is_empty() {
        return Vec::new();
    }
    let libraries = decision.functions.values();
    let libraries = libraries.flat_map(|bound| [bound.owner, bound.replaced]);
    let libraries = libraries.chain(decision.required.iter().map(|one| one.library));
    let mut roots: Vec<&str> = libraries
        .flat_map(|library| &library.roots)
        .map(String::as_str)
        .collect();
    roots.sort_unstable();
    roots.dedup();
    image
        .runpath()
        .filter(|entry| roots.iter().any(|root| is_below(entry, root)))
        .map(str::to_owned)
        .collect()
}

/// Whether a directory is a toolkit's root or below it. One `*` in the root's last component matches a version.
fn is_below(entry: &str, root: &str) -> bool {
    let mut parts = entry.split('/');
    root.split('/').all(|wanted| {
        parts
            .next()
            .is_some_and(|part| match wanted.split_once('*') {
                Some((start, end)) => {
                    part.len() > start.len() + end.len()
                        && part.starts_with(start)
                        && part.ends_with(end)
                }
                None => part == wanted,
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
