//! Which images have to do with GPUs. What is wrong with others, and would be with them on any
//! machine, is not for this tool to say; but a wheel's tag speaks of all that is in it. And which
//! images come into a process together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::evidence::names;
use crate::gpu::{is_vendors, taken_for};
use crate::names::{is_gpu, is_support};
use crate::package::{Image, Package};

/// Words in names of files and directories that are of GPUs: `libc10_cuda.so`, `/opt/rocm/lib`.
const WORDS: &[&str] = &["cuda", "rocm", "hip", "nvidia", "opencl"];

/// Device code, as nvcc and hipcc put it into images.
const SECTIONS: &[&str] = &[".nv_fatbin", "__nv_relfatbin", ".hip_fatbin"];

/// The images that need, import, export or name something of GPUs, and those of the package that
/// need one of these, sorted by path.
pub fn gpu_images(package: &Package) -> impl Iterator<Item = Image<'_>> {
    let images: Vec<Image<'_>> = package.images().collect();
    let mut users: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, image) in images.iter().enumerate() {
        for name in image.needed() {
            users.entry(name).or_default().push(index);
        }
    }
    let own = images.iter().enumerate();
    let own = own.filter_map(|(index, image)| is_of_gpus(image).then_some(index));
    let mut open: Vec<usize> = own.collect();
    let mut found: BTreeSet<usize> = open.iter().copied().collect();
    while let Some(index) = open.pop() {
        for name in names(&images[index]) {
            // Each name once, however many files have it.
            let users = users.remove(name).into_iter().flatten();
            open.extend(users.filter(|user| found.insert(*user)));
        }
    }
    found.into_iter().map(move |index| images[index])
}

/// Whether the image by itself has to do with GPUs.
fn is_of_gpus(image: &Image<'_>) -> bool {
    let facts = image.facts;
    let mut names = names(image).chain(image.needed().iter().map(String::as_str));
    let functions = facts.exports.iter().chain(&facts.hidden);
    let mut functions = functions.chain(facts.imports.iter().map(|import| &import.name));
    // Only texts and implib's names that are of GPUs were kept.
    names.any(|name| is_vendors(name) || taken_for(name).is_some() || has_word(name))
        || image.runpath().any(has_word)
        || !facts.strings.is_empty()
        || facts
            .sections
            .iter()
            .any(|name| SECTIONS.contains(&&name[..]))
        || functions.any(|name| is_gpu(name) || is_support(name))
}

fn has_word(name: &str) -> bool {
    name.split(|c: char| !c.is_ascii_alphabetic())
        .any(|word| WORDS.iter().any(|w| word.eq_ignore_ascii_case(w)))
}

/// Which images of a package the loader brings in together.
pub struct Together<'a> {
    images: Vec<Image<'a>>,
    by_name: BTreeMap<&'a str, BTreeSet<usize>>,
}

/// How many images are followed from one: more than any process has.
const MOST: usize = 1000;

impl<'a> Together<'a> {
    /// Those of a package.
    pub fn of(package: &'a Package) -> Self {
        let images: Vec<Image<'a>> = package.images().collect();
        let mut by_name: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for (index, image) in images.iter().enumerate() {
            for name in names(image) {
                by_name.entry(name).or_default().insert(index);
            }
        }
        Self { images, by_name }
    }

    /// All images of the package, sorted by path.
    pub fn images(&self) -> &[Image<'a>] {
        &self.images
    }

    /// The image that another needs by this name: of several with one name the one beside it; which of
    /// others the loader takes is not known.
    pub fn find(&self, index: usize, name: &str) -> Option<usize> {
        let all = self.by_name.get(name)?;
        let folder = self.images[index].member.folder();
        let mut beside = (all.iter()).filter(|&&i| self.images[i].member.folder() == folder);
        match (all.len(), beside.next()) {
            (1, _) => all.first().copied(),
            (_, found) => found.copied(),
        }
    }

    /// What an image needs of the package.
    pub fn needed_by(&self, index: usize) -> impl Iterator<Item = usize> {
        let needed = self.images[index].needed().iter();
        needed.filter_map(move |name| self.find(index, name))
    }

    /// An image and all that comes with it, in the loader's order.
    pub fn with(&self, index: usize) -> Vec<usize> {
        let mut seen = BTreeSet::from([index]);
        let mut order = vec![index];
        let mut at = 0;
        while at < order.len() && order.len() < MOST {
            order.extend(self.needed_by(order[at]).filter(|next| seen.insert(*next)));
            at += 1;
        }
        order
    }
}
