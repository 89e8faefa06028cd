//! What an image is, told by things that survive stripping: its names, its exports, its texts.

use std::collections::HashMap;
use std::sync::LazyLock;

use gpustub_core::library::Library;
use gpustub_image::{ImageFacts, Import};

use crate::gpu_file::{gpu_file, is_vendor_file, names_gpu_file};
use crate::package::Image;

/// What texts contain that rules look at; [`is_kept`] chooses among them. What is rare comes first,
/// because not all are kept of a file with thousands.
pub const TEXTS: &[&str] = &[GPUSTUB, CUDART[0], CUDART[1], ".so"];

/// What gpustub's run time has to say of a malformed variable begins like this.
const GPUSTUB: &str = "gpustub: GPUSTUB_FAIL is ";

/// Texts that are in libcudart and in libcudart_static alike, in 11.8 as in 13.5, and neither in
/// the driver nor in its users: the name of its shared memory, and an error's.
const CUDART: [&str; 2] = ["/cudart.shm.%x.%x.%llx", "startup failure in cuda runtime"];

/// What Implib.so's stubs say before they abort: `implib-gen: libcuda.so.1: failed to load …`.
const IMPLIB: &str = "implib-gen: ";

/// Whether a text tells something of GPU libraries.
pub fn is_kept(text: &str) -> bool {
    is_gpustubs(text) || CUDART.contains(&text) || names_gpu_file(text)
}

/// Whether it is the run time's, and goes on as there. In programs of Rust or Go that only know the mark, as
/// this one, other texts stand around it.
fn is_gpustubs(text: &str) -> bool {
    let rest = text.strip_prefix(GPUSTUB);
    rest.is_some_and(|rest| rest.starts_with("name["))
}

/// The file names, without folders, by which an image of this file name may open GPU libraries that have
/// longer names too, and that no other text takes further: of `libcuda.so` and `libcuda.so.1`, or
/// `/lib/libcuda.so.%d`, not the first. None of vendors' images: those know each other.
pub fn dlopen_candidates<'a>(facts: &'a ImageFacts, file: &str) -> Vec<&'a str> {
    let opens = |import: &Import| matches!(import.name.as_str(), "dlopen" | "dlmopen");
    let vendors = is_vendor_file(file) || facts.link.soname.as_deref().is_some_and(is_vendor_file);
    if vendors || !facts.imports.iter().any(opens) {
        return Vec::new();
    }
    let goes_on = |name: &str| {
        let library = gpu_file(name).filter(|gpu| !gpu.hashed)?.library?;
        longer_load_name(library, name)
    };
    let names = facts.strings.iter().map(String::as_str);
    let names = names.filter(|name| goes_on(name).is_some());
    names
        .filter(|name| {
            let longer = format!("{name}.");
            !facts.strings.iter().any(|text| text.contains(&longer))
        })
        .collect()
}

/// The load name of a library that goes on, after a dot, where this name ends.
pub fn longer_load_name(library: &'static Library, name: &str) -> Option<&'static str> {
    let longer = format!("{name}.");
    let names = library.load_names.get("linux").into_iter().flatten();
    let mut names = names.map(|name| name.name.as_str());
    names.find(|load| load.starts_with(&longer))
}

/// Whether a vendor made the image: by its file name, or by its soname where that was changed.
pub fn is_from_vendor(image: &Image<'_>) -> bool {
    image_names(image).any(is_vendor_file)
}

/// The image's file name and its soname.
pub fn image_names<'a>(image: &Image<'a>) -> impl Iterator<Item = &'a str> {
    let soname = image.facts.link.soname.as_deref();
    [Some(image.member.file_name()), soname]
        .into_iter()
        .flatten()
}

/// Whether stubs of gpustub are in the image.
pub fn has_gpustub(image: &Image<'_>) -> bool {
    let hidden = &image.facts.hidden;
    hidden.iter().any(|name| name.starts_with("gpustub1_")) || has_text(image, is_gpustubs)
}

/// Whether the image has a CUDA runtime of its own: libcudart_static.
pub fn has_cudart(image: &Image<'_>) -> bool {
    !is_from_vendor(image)
        && CUDART
            .iter()
            .all(|mark| has_text(image, |text| text == *mark))
}

/// The library that stubs made by Implib.so stand for.
pub fn implib_library<'a>(image: &Image<'a>) -> Option<&'a str> {
    let mut libraries = image
        .facts
        .strings
        .iter()
        .filter_map(|text| text.strip_prefix(IMPLIB)?.split(':').next());
    libraries.next()
}

/// The GPU library that has a function of this name.
pub fn gpu_library_exporting(function: &str) -> Option<&'static Library> {
    FUNCTIONS.get(function).copied()
}

/// The names of all functions that gpustub makes stubs for.
pub fn functions() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.keys().copied()
}

static FUNCTIONS: LazyLock<HashMap<&'static str, &'static Library>> = LazyLock::new(|| {
    let libraries = Library::builtin_ids().filter_map(Library::builtin);
    libraries
        .flat_map(|library| {
            let functions = library.symbols.functions();
            functions.map(move |function| (function.name.as_str(), library))
        })
        .collect()
});

fn has_text(image: &Image<'_>, is_it: impl Fn(&str) -> bool) -> bool {
    image.facts.strings.iter().any(|text| is_it(text))
}
