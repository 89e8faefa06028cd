//! GPU libraries that an image requires, by names and version nodes.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::gpu_file::gpu_file;
use gpustub_core::library::Library;
use gpustub_image::edit::Inspection;

/// A required library that stubs can replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Required {
    /// Manifest of the library.
    pub library: &'static Library,
    /// Names of the library in DT_NEEDED and in version needs, in the image's order.
    pub files: Vec<String>,
    /// Version nodes of the library.
    pub nodes: BTreeSet<String>,
    /// Toolkit majors that the names and nodes allow; `None`: they contain no major.
    pub majors: Option<BTreeSet<u32>>,
}

/// Whether a name in DT_NEEDED or a version node is that of a GPU library.
pub fn is_gpu_name(name: &str) -> bool {
    gpu_file(name).is_some()
}

/// The GPU libraries that an image requires. Tools that copy a library into a package rename the file and
/// leave its version nodes, so that both are compared.
pub fn required(image: &Inspection) -> Vec<Required> {
    let mut found: Vec<Required> = Vec::new();
    for name in &image.needed {
        if let Some(library) = replaced_library(image, name) {
            let nodes: BTreeSet<String> = nodes(image, name).map(str::to_owned).collect();
            let names = nodes.iter().map(String::as_str).chain([name.as_str()]);
            let majors = majors(library, names);
            match found.iter_mut().find(|one| one.library.id == library.id) {
                Some(one) => {
                    one.files.push(name.clone());
                    one.nodes.extend(nodes);
                    one.majors = intersection(one.majors.take(), majors);
                }
                None => found.push(Required {
                    library,
                    files: vec![name.clone()],
                    nodes,
                    majors,
                }),
            }
        }
    }
    found
}

/// The library behind a name in DT_NEEDED, if there are stubs for it.
pub fn replaced_library(image: &Inspection, name: &str) -> Option<&'static Library> {
    let by_node = nodes(image, name).find_map(|node| gpu_file(node)?.library);
    by_node.or_else(|| gpu_file(name)?.library)
}

fn nodes<'a>(image: &'a Inspection, file: &'a str) -> impl Iterator<Item = &'a str> {
    let needs = image.verneed.iter().filter(move |need| need.file == file);
    needs.flat_map(|need| need.nodes.iter().map(String::as_str))
}

/// Toolkit majors with a load name that the names begin with. `libcudart.so.12.0.107` and the node
/// `libcudart.so.12` are both of 12; a name without a number is of any major.
fn majors<'a>(library: &Library, names: impl Iterator<Item = &'a str>) -> Option<BTreeSet<u32>> {
    let load_names = library
        .load_names
        .get("linux")
        .map_or(&[][..], Vec::as_slice);
    let mut found: Option<BTreeSet<u32>> = None;
    for name in names {
        let Some(file) = gpu_file(name).filter(|file| file.major.is_some()) else {
            continue;
        };
        let plain = match name.split_once(".so") {
            Some((_, version)) => format!("lib{}.so{version}.", file.stem),
            None => continue,
        };
        let matching = load_names
            .iter()
            .filter(|load| plain.starts_with(&format!("{}.", load.name)));
        let majors: BTreeSet<u32> = matching.filter_map(|load| load.major).collect();
        if !majors.is_empty() {
            found = intersection(found, Some(majors));
        }
    }
    // The number of a driver's soname is no major of its toolkit.
    found.filter(|_| library.role == gpustub_core::library::Role::Toolkit)
}

/// The majors that both allow.
pub fn intersection(a: Option<BTreeSet<u32>>, b: Option<BTreeSet<u32>>) -> Option<BTreeSet<u32>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.intersection(&b).copied().collect()),
        (a, b) => a.or(b),
    }
}

/// Owner of each function that the libraries may define. A file may hold two libraries (hiprtc of ROCm 5 is
/// in libamdhip64), so a function of another library with a load name of the same file counts as well.
pub struct Functions {
    by_library: BTreeMap<&'static str, Vec<&'static Library>>,
}

impl Functions {
    /// Functions of the required libraries.
    pub fn new(required: &[Required]) -> Self {
        let all: Vec<&'static Library> = Library::builtin_ids()
            .filter_map(Library::builtin)
            .collect();
        let by_library = required.iter().map(|one| {
            let mut libraries = vec![one.library];
            libraries.extend(
                all.iter()
                    .filter(|other| other.id != one.library.id && shares_file(other, one.library)),
            );
            (one.library.id.as_str(), libraries)
        });
        Self {
            by_library: by_library.collect(),
        }
    }

    /// The library whose stubs have a function that an image binds to `library`.
    pub fn owner(&self, library: &Library, function: &str) -> Option<&'static Library> {
        let libraries = self.by_library.get(library.id.as_str())?;
        libraries
            .iter()
            .copied()
            .find(|one| has_function(one, function))
    }
}

fn shares_file(a: &Library, b: &Library) -> bool {
    let names = |library: &Library| -> BTreeSet<String> {
        let names = library.load_names.get("linux").into_iter().flatten();
        names.map(|name| name.name.clone()).collect()
    };
    !names(a).is_disjoint(&names(b))
}

/// Whether there are stubs of a function of this name in the library.
pub fn has_function(library: &Library, name: &str) -> bool {
    library
        .symbols
        .lookup(name)
        .iter()
        .any(|symbol| !symbol.kind.is_data())
}

#[cfg(test)]
mod tests {
    use gpustub_image::VersionNeed;

    use super::*;

    fn image(needs: &[(&str, &[&str])]) -> Inspection {
        let needs = needs.iter();
        Inspection {
            needed: needs.clone().map(|(file, _)| (*file).to_owned()).collect(),
            verneed: needs
                .map(|(file, nodes)| VersionNeed {
                    file: (*file).to_owned(),
                    nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
                })
                .collect(),
            ..Inspection::default()
        }
    }

    /// Libraries of an image with one requirement: id and majors.
    fn found(file: &str, nodes: &[&str]) -> Vec<(String, Option<Vec<u32>>)> {
        let all = required(&image(&[(file, nodes)]));
        let majors = |one: &Required| one.majors.clone().map(|m| m.into_iter().collect());
        all.iter()
            .map(|one| (one.library.id.clone(), majors(one)))
            .collect()
    }

    #[test]
    fn libraries_are_found_by_name_and_by_node() {
        let cudart = |majors: &[u32]| vec![("cudart".to_owned(), Some(majors.to_vec()))];
        assert_eq!(found("libcudart.so.12", &[]), cudart(&[12]));
        assert_eq!(
            found("libcudart.so.11.0", &["libcudart.so.11.0"]),
            cudart(&[11])
        );
        assert_eq!(
            found("libcudart-5a077122.so.12.0.107", &["libcudart.so.12"]),
            cudart(&[12])
        );
        assert_eq!(found("libcudart-5a077122.so.12.0.107", &[]), cudart(&[12]));
        // A name that says nothing.
        assert_eq!(found("libx.so", &["libcudart.so.13"]), cudart(&[13]));
        assert_eq!(found("libcuda.so.1", &[]), [("cuda".to_owned(), None)]);
        assert_eq!(found("libc.so.6", &["GLIBC_2.2.5"]), []);
    }

    #[test]
    fn a_soname_of_two_toolkits_allows_both() {
        let found = found("libcusolver.so.11", &["libcusolver.so.11"]);
        let majors = found[0].1.clone().unwrap();
        assert!(majors.len() > 1 && majors.contains(&12), "{majors:?}");
    }
}
