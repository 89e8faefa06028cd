//! Which images have to do with GPUs. What is wrong with others, and would be with them on any
//! machine, is not for this tool to say; but a wheel's tag speaks of all that is in it.

use std::collections::{BTreeSet, HashMap};

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
        || !facts.texts.is_empty()
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
