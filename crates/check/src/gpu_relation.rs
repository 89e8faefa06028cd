//! Images that use GPUs, and images that are loaded into one process. Faults of other images are not
//! reported; but a wheel's tag applies to all of its images.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use gpustub_core::define_id;
use gpustub_core::ids::IndexVec;

use crate::evidence::image_names;
use crate::gpu_file::{impersonated_library, is_vendor_file};
use crate::package::{Package, PackageImage};
use crate::search_dirs::{SearchDir, resolve_entry};
use crate::symbol_names::{is_gpu, is_support};

/// Words in names of GPU files and directories: `libc10_cuda.so`, `/opt/rocm/lib`.
const WORDS: &[&str] = &["cuda", "rocm", "hip", "nvidia", "opencl"];

/// Sections with device code of nvcc and hipcc.
const SECTIONS: &[&str] = &[".nv_fatbin", "__nv_relfatbin", ".hip_fatbin"];

/// Images that need, import, export or name GPU libraries or functions, and images of the package that
/// need one of these, sorted by path.
pub fn gpu_images(package: &Package) -> impl Iterator<Item = PackageImage<'_>> {
    let images: IndexVec<ImageId, PackageImage<'_>> = package.all_images().collect();
    let mut users: HashMap<Cow<'_, str>, Vec<ImageId>> = HashMap::new();
    for (id, image) in images.ids().zip(&images) {
        for name in image.needed() {
            users.entry(loader_name(name)).or_default().push(id);
        }
    }
    let mut queue: Vec<ImageId> = images.ids().filter(|&id| uses_gpu(&images[id])).collect();
    let mut related: BTreeSet<ImageId> = queue.iter().copied().collect();
    while let Some(id) = queue.pop() {
        for name in image_names(&images[id]) {
            // Each name is processed once, even if several files have it.
            let users = users.remove(&*loader_name(name)).unwrap_or_default();
            queue.extend(users.into_iter().filter(|user| related.insert(*user)));
        }
    }
    related.into_iter().map(move |id| images[id])
}

/// Whether the image itself uses GPUs.
fn uses_gpu(image: &PackageImage<'_>) -> bool {
    let facts = image.facts;
    let mut files = image_names(image).chain(image.needed().iter().map(String::as_str));
    let mut functions = facts
        .exports
        .iter()
        .chain(&facts.hidden)
        .chain(facts.imports.iter().map(|import| &import.name));
    // The reader kept only strings and Implib.so's names that refer to GPU libraries.
    files.any(|name| is_vendor_file(name) || impersonated_library(name).is_some() || has_word(name))
        || image.runpath().any(has_word)
        || !facts.strings.is_empty()
        || facts
            .sections
            .iter()
            .any(|name| SECTIONS.contains(&&name[..]))
        || !(facts.device.modules.is_empty() && facts.device.links.is_empty())
        || functions.any(|name| is_gpu(name) || is_support(name))
}

fn has_word(name: &str) -> bool {
    name.split(|c: char| !c.is_ascii_alphabetic()).any(|word| {
        WORDS
            .iter()
            .any(|gpu_word| word.eq_ignore_ascii_case(gpu_word))
    })
}

/// The name by which a loader compares libraries: that of Windows ignores case.
fn loader_name(name: &str) -> Cow<'_, str> {
    let extension = name.rsplit('.').next().unwrap_or_default();
    let is_windows = ["dll", "pyd", "exe"]
        .iter()
        .any(|windows| windows.eq_ignore_ascii_case(extension));
    if is_windows {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

define_id! {
    /// Index of an image among those of its package.
    pub struct ImageId;
}

/// Images of a package and those that the loader loads with them.
pub struct LoadGraph<'a> {
    images: IndexVec<ImageId, PackageImage<'a>>,
    by_name: BTreeMap<Cow<'a, str>, BTreeSet<ImageId>>,
}

/// Maximum number of images followed from one: more than any process has.
const MAX_FOLLOWED: usize = 1000;

impl<'a> LoadGraph<'a> {
    /// Load graph of a package's ELF images.
    pub fn from_package(package: &'a Package) -> Self {
        Self::from_images(package.images())
    }

    /// Load graph of images of a package.
    pub fn from_images(images: impl Iterator<Item = PackageImage<'a>>) -> Self {
        let images: IndexVec<ImageId, PackageImage<'a>> = images.collect();
        let mut by_name: BTreeMap<Cow<'a, str>, BTreeSet<ImageId>> = BTreeMap::new();
        for (id, image) in images.ids().zip(&images) {
            for name in image_names(image) {
                by_name.entry(loader_name(name)).or_default().insert(id);
            }
        }
        Self { images, by_name }
    }

    /// All images of the package with their ids, sorted by path.
    pub fn entries(&self) -> impl Iterator<Item = (ImageId, &PackageImage<'a>)> {
        self.images.ids().zip(&self.images)
    }

    /// The image of an id.
    pub fn image(&self, id: ImageId) -> PackageImage<'a> {
        self.images[id]
    }

    /// The image that another needs by this name: of several with one name the one in its run path, or
    /// else in the same directory, otherwise none, as the loader's choice is unknown.
    pub fn find(&self, id: ImageId, name: &str) -> Option<ImageId> {
        let candidates = self.by_name.get(&*loader_name(name))?;
        if candidates.len() == 1 {
            return candidates.first().copied();
        }
        let image = self.image(id);
        image
            .runpath()
            .find_map(|entry| match resolve_entry(&image, entry) {
                SearchDir::Inside(directory) => self.in_directory(candidates, &directory),
                _ => None,
            })
            .or_else(|| self.in_directory(candidates, image.member.directory()))
    }

    fn in_directory(&self, candidates: &BTreeSet<ImageId>, directory: &str) -> Option<ImageId> {
        candidates
            .iter()
            .copied()
            .find(|&candidate| self.image(candidate).member.directory() == directory)
    }

    /// Images of the package that an image needs.
    pub fn needed_by(&self, id: ImageId) -> impl Iterator<Item = ImageId> {
        self.images[id]
            .needed()
            .iter()
            .filter_map(move |name| self.find(id, name))
    }

    /// An image and all images that the loader loads with it, in its order.
    pub fn loaded_with(&self, id: ImageId) -> Vec<ImageId> {
        let mut loaded = BTreeSet::from([id]);
        let mut order = vec![id];
        let mut index = 0;
        while index < order.len() && order.len() < MAX_FOLLOWED {
            let needed = self.needed_by(order[index]);
            order.extend(needed.filter(|needed| loaded.insert(*needed)));
            index += 1;
        }
        order
    }
}
