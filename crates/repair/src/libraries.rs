//! GPU libraries that an image requires, by names and version nodes.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::PackageImage;
use gpustub_check::evidence::{
    gpu_library_exporting, image_names, is_from_vendor, opens_libraries,
};
use gpustub_check::gpu_file::{GpuFile, gpu_file};
use gpustub_check::user_defined::{is_other_version, user_defined_file};
use gpustub_core::library::Library;
use gpustub_core::symbols::Symbol;
use gpustub_image::edit::Inspection;

/// A library that an image requires and stubs can replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Manifest of the library.
    pub library: &'static Library,
    /// Names of the library in DT_NEEDED and in version needs, in the image's order.
    pub files: Vec<String>,
    /// Version nodes of the library.
    pub nodes: BTreeSet<String>,
    /// Toolkit majors that the names and nodes allow; `None`: they contain no major.
    pub majors: Option<BTreeSet<u32>>,
}

/// Libraries that a repair knows: the GPU libraries of gpustub, and user-defined ones.
#[derive(Debug, Clone, Default)]
pub struct KnownLibraries {
    user_defined: Vec<&'static Library>,
}

impl KnownLibraries {
    /// All libraries of gpustub, and these. They live as long as the process, like those of gpustub.
    pub fn new(user_defined: impl IntoIterator<Item = Library>) -> Self {
        Self {
            user_defined: user_defined
                .into_iter()
                .map(|library| &*Box::leak(Box::new(library)))
                .collect(),
        }
    }

    /// Whether the library is not one of gpustub's.
    pub fn is_user_defined(&self, library: &Library) -> bool {
        self.user_defined.iter().any(|known| known.id == library.id)
    }

    /// The library that a file of this name, without directories, is or is a copy of.
    pub fn file(&self, name: &str) -> Option<GpuFile> {
        self.user_defined
            .iter()
            .find_map(|library| user_defined_file(library, name))
            .or_else(|| gpu_file(name))
    }

    /// Whether a name in DT_NEEDED or a version node is that of such a library.
    pub fn is_file(&self, name: &str) -> bool {
        self.file(name).is_some()
    }

    /// The user-defined library of which a name is another version.
    pub fn other_version(&self, name: &str) -> Option<&'static Library> {
        let mut libraries = self.user_defined.iter().copied();
        libraries.find(|library| !self.is_file(name) && is_other_version(library, name))
    }

    /// Whether a library exports a symbol of this name.
    pub fn is_symbol(&self, name: &str) -> bool {
        gpu_library_exporting(name).is_some()
            || (self.user_defined.iter()).any(|library| !library.symbols.lookup(name).is_empty())
    }

    /// Whether a name of a symbol or file belongs to a user-defined library: readers of packages keep those of others.
    pub fn is_of_user_defined(&self, name: &str) -> bool {
        self.user_defined.iter().any(|library| {
            !library.symbols.lookup(name).is_empty() || user_defined_file(library, name).is_some()
        })
    }

    /// Whether an image is a library of a vendor, or a user-defined one.
    pub fn contains_image(&self, image: &PackageImage<'_>) -> bool {
        is_from_vendor(image) || self.is_user_defined_image(image)
    }

    /// Whether an image is a user-defined library.
    pub fn is_user_defined_image(&self, image: &PackageImage<'_>) -> bool {
        image_names(image).any(|name| {
            let mut libraries = self.user_defined.iter();
            libraries.any(|library| user_defined_file(library, name).is_some())
        })
    }

    /// Names by which an image may open libraries.
    pub fn opened_names<'a>(&self, image: &PackageImage<'a>) -> Vec<&'a String> {
        if !opens_libraries(image.facts) {
            return Vec::new();
        }
        let names = image.facts.strings.iter();
        names.filter(|text| self.is_file(text)).collect()
    }

    /// The libraries that an image requires by these of its names in DT_NEEDED. Tools that copy a library into a package
    /// rename the file and leave its version nodes, so that both are compared.
    pub fn requirements<'a>(
        &self,
        image: &Inspection,
        needed: impl Iterator<Item = &'a String>,
    ) -> Vec<Requirement> {
        let mut requirements: Vec<Requirement> = Vec::new();
        for name in needed {
            let Some(library) = self.replaced_library(image, name) else {
                continue;
            };
            let nodes: BTreeSet<String> = nodes(image, name).map(str::to_owned).collect();
            let majors = majors(
                library,
                nodes.iter().map(String::as_str).chain([name.as_str()]),
            );
            match requirements
                .iter_mut()
                .find(|requirement| requirement.library.id == library.id)
            {
                Some(requirement) => {
                    requirement.files.push(name.clone());
                    requirement.nodes.extend(nodes);
                    requirement.majors = intersection(requirement.majors.take(), majors);
                }
                None => requirements.push(Requirement {
                    library,
                    files: vec![name.clone()],
                    nodes,
                    majors,
                }),
            }
        }
        requirements
    }

    /// The library behind a name in DT_NEEDED, if there are stubs for it.
    pub fn replaced_library(&self, image: &Inspection, name: &str) -> Option<&'static Library> {
        nodes(image, name)
            .find_map(|node| self.file(node)?.library)
            .or_else(|| self.file(name)?.library)
    }
}

/// Version nodes that an image requires of a file.
fn nodes<'a>(image: &'a Inspection, file: &'a str) -> impl Iterator<Item = &'a str> {
    image
        .verneed
        .iter()
        .filter(move |need| need.file == file)
        .flat_map(|need| need.nodes.iter().map(String::as_str))
}

/// Toolkit majors with a load name that the names begin with. `libcudart.so.12.0.107` and the node
/// `libcudart.so.12` are both of 12; a name without a number is of any major. The name of a DLL has the whole version.
fn majors<'a>(library: &Library, names: impl Iterator<Item = &'a str>) -> Option<BTreeSet<u32>> {
    let load_names = library
        .load_names
        .get("linux")
        .map_or(&[][..], Vec::as_slice);
    let mut common: Option<BTreeSet<u32>> = None;
    for name in names {
        let Some(file) = gpu_file(name).filter(|file| file.major.is_some()) else {
            continue;
        };
        let majors: BTreeSet<u32> = match name.split_once(".so") {
            _ if file.system == "windows" => file.toolkit_majors(),
            None => continue,
            Some((_, version)) => {
                let unhashed_name = format!("lib{}.so{version}.", file.stem);
                load_names
                    .iter()
                    .filter(|load_name| unhashed_name.starts_with(&format!("{}.", load_name.name)))
                    .filter_map(|load_name| load_name.major)
                    .collect()
            }
        };
        if !majors.is_empty() {
            common = intersection(common, Some(majors));
        }
    }
    // The number of a driver's soname is no major of its toolkit.
    common.filter(|_| library.role == gpustub_core::library::Role::Toolkit)
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
    pub fn new(requirements: &[Requirement]) -> Self {
        let builtin: Vec<&'static Library> = Library::builtin_ids()
            .filter_map(Library::builtin)
            .collect();
        let mut by_library = BTreeMap::new();
        for &Requirement { library, .. } in requirements {
            let mut libraries = vec![library];
            libraries.extend(
                builtin.iter().filter(|candidate| {
                    candidate.id != library.id && shares_file(candidate, library)
                }),
            );
            by_library.insert(library.id.as_str(), libraries);
        }
        Self { by_library }
    }

    /// The library whose stubs have a function, or a copy of data, that an image binds to `library`.
    pub fn owner(&self, library: &Library, name: &str) -> Option<&'static Library> {
        self.by_library
            .get(library.id.as_str())?
            .iter()
            .copied()
            .find(|candidate| has_function(candidate, name) || is_copied(candidate, name))
    }
}

fn shares_file(a: &Library, b: &Library) -> bool {
    !file_names(a).is_disjoint(&file_names(b))
}

fn file_names(library: &Library) -> BTreeSet<&str> {
    library
        .load_names
        .get("linux")
        .into_iter()
        .flatten()
        .map(|load_name| load_name.name.as_str())
        .collect()
}

/// Whether the library has data of this name.
pub fn has_data(library: &Library, name: &str) -> bool {
    let symbols = library.symbols.lookup(name);
    symbols.iter().any(|symbol| symbol.kind.is_data())
}

/// Whether stubs of the library have a copy of data of this name.
pub fn is_copied(library: &Library, name: &str) -> bool {
    let symbols = library.symbols.lookup(name);
    symbols.iter().any(Symbol::is_copied)
}

/// Whether there are stubs of a function of this name in the library.
pub fn has_function(library: &Library, name: &str) -> bool {
    library
        .symbols
        .lookup(name)
        .iter()
        .any(|symbol| !symbol.kind.is_data() && !symbol.is_weak_cxx())
}

#[cfg(test)]
mod tests {
    use gpustub_image::VersionNeed;

    use super::*;

    fn image(needs: &[(&str, &[&str])]) -> Inspection {
        Inspection {
            needed: needs.iter().map(|(file, _)| (*file).to_owned()).collect(),
            verneed: needs
                .iter()
                .map(|(file, nodes)| VersionNeed {
                    file: (*file).to_owned(),
                    nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
                })
                .collect(),
            ..Inspection::default()
        }
    }

    /// Libraries of an image with one needed file: id and majors.
    fn ids_and_majors(file: &str, nodes: &[&str]) -> Vec<(String, Option<Vec<u32>>)> {
        let image = image(&[(file, nodes)]);
        KnownLibraries::default()
            .requirements(&image, image.needed.iter())
            .into_iter()
            .map(|requirement| {
                let majors = requirement.majors.map(Vec::from_iter);
                (requirement.library.id.clone(), majors)
            })
            .collect()
    }

    fn cudart(majors: &[u32]) -> Vec<(String, Option<Vec<u32>>)> {
        vec![("cudart".to_owned(), Some(majors.to_vec()))]
    }

    #[test]
    fn libraries_are_found_by_name_and_by_node() {
        for (file, nodes, expected) in [
            ("libcudart.so.12", &[][..], cudart(&[12])),
            ("libcudart.so.11.0", &["libcudart.so.11.0"], cudart(&[11])),
            (
                "libcudart-5a077122.so.12.0.107",
                &["libcudart.so.12"],
                cudart(&[12]),
            ),
            ("libcudart-5a077122.so.12.0.107", &[], cudart(&[12])),
            // The file name is not that of a GPU library.
            ("libx.so", &["libcudart.so.13"], cudart(&[13])),
            ("libcuda.so.1", &[], vec![("cuda".to_owned(), None)]),
            ("libc.so.6", &["GLIBC_2.2.5"], Vec::new()),
            ("cudart64_110.dll", &[], cudart(&[11])),
            ("CUDART64_12.DLL", &[], cudart(&[12])),
            (
                "cudart64_12-c8a0a2ff1ac1f9ef9ec7ae4fb74ba7c5.dll",
                &[],
                cudart(&[12]),
            ),
            ("nvcuda.dll", &[], vec![("cuda".to_owned(), None)]),
        ] {
            assert_eq!(ids_and_majors(file, nodes), expected, "{file} {nodes:?}");
        }
    }

    #[test]
    fn a_soname_of_two_toolkits_allows_both() {
        let libraries = ids_and_majors("libcusolver.so.11", &["libcusolver.so.11"]);
        let majors = libraries[0].1.clone().unwrap();
        assert!(majors.len() > 1 && majors.contains(&12), "{majors:?}");
    }
}
