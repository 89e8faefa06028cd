//! Identification of images by data that survives stripping: names, exports and strings.

use std::collections::HashMap;
use std::sync::LazyLock;

use gpustub_core::library::Library;
use gpustub_image::ImageFacts;

use crate::gpu_file::{gpu_file, is_vendor_file, names_gpu_file};
use crate::package::PackageImage;

/// Parts of strings that rules need; [`is_kept`] selects from them. Rare parts come first, because not
/// all strings of a file with thousands are kept.
pub const TEXTS: &[&str] = &[GPUSTUB, CUDART[0], CUDART[1], ".so"];

/// Prefix of the message of gpustub's run time about a malformed variable.
const GPUSTUB: &str = "GPUSTUB_FAIL is ";

/// Strings that both libcudart and libcudart_static contain, from 11.8 to 13.5, but neither the
/// driver nor the library's users: the name of its shared memory, and an error message.
const CUDART: [&str; 2] = ["/cudart.shm.%x.%x.%llx", "startup failure in cuda runtime"];

/// Prefix of the message of aborting Implib.so stubs: `implib-gen: libcuda.so.1: failed to load …`.
const IMPLIB: &str = "implib-gen: ";

/// Whether a string identifies a GPU library or a user of one.
pub fn is_kept(text: &str) -> bool {
    is_run_time_message(text) || CUDART.contains(&text) || names_gpu_file(text)
}

/// Whether a string is the run time's message with its continuation. In Rust or Go programs that only
/// contain the mark, such as this one, other strings follow it.
fn is_run_time_message(text: &str) -> bool {
    text.strip_prefix(GPUSTUB)
        .is_some_and(|rest| rest.starts_with("name["))
}

/// The file names, without directories, by which an image may open GPU libraries that also have longer
/// names, unless another string extends them: `libcuda.so` is not one if `libcuda.so.1` or
/// `/lib/libcuda.so.%d` is in the image. Empty for vendors' images, which know each other's names.
pub fn dlopen_candidates<'a>(facts: &'a ImageFacts, file: &str) -> Vec<&'a str> {
    let is_vendor =
        is_vendor_file(file) || facts.link.soname.as_deref().is_some_and(is_vendor_file);
    if is_vendor || !opens_libraries(facts) {
        return Vec::new();
    }
    let mut candidates = Vec::new();
    for name in &facts.strings {
        let gpu = gpu_file(name).filter(|gpu| !gpu.hashed);
        let Some(library) = gpu.and_then(|gpu| gpu.library) else {
            continue;
        };
        let longer = format!("{name}.");
        if longer_load_name(library, name).is_some()
            && !facts.strings.iter().any(|text| text.contains(&longer))
        {
            candidates.push(name.as_str());
        }
    }
    candidates
}

/// Whether the image imports a function that opens libraries.
pub fn opens_libraries(facts: &ImageFacts) -> bool {
    facts
        .imports
        .iter()
        .any(|import| matches!(import.name.as_str(), "dlopen" | "dlmopen"))
}

/// The load name of a library that begins with this name and a dot.
pub fn longer_load_name(library: &'static Library, name: &str) -> Option<&'static str> {
    let longer = format!("{name}.");
    library
        .load_names
        .get("linux")
        .into_iter()
        .flatten()
        .map(|load_name| load_name.name.as_str())
        .find(|load_name| load_name.starts_with(&longer))
}

/// Whether the image is a vendor's, by its file name, or by its soname if the file was renamed.
pub fn is_from_vendor(image: &PackageImage<'_>) -> bool {
    image_names(image).any(is_vendor_file)
}

/// The image's file name and its soname.
pub fn image_names<'a>(image: &PackageImage<'a>) -> impl Iterator<Item = &'a str> {
    let soname = image.facts.link.soname.as_deref();
    [Some(image.member.file_name()), soname]
        .into_iter()
        .flatten()
}

/// Whether the loader finds a file of the package by `name`: the file name, or the soname, for which an
/// installation has a link that is no member. Files that a tool has renamed are not found.
pub fn is_found_as(image: &PackageImage<'_>, name: &str) -> bool {
    if image.is_pe() {
        return image.member.file_name().eq_ignore_ascii_case(name);
    }
    match image.member.file_name().strip_prefix(name) {
        Some("") => true,
        Some(rest) => rest.starts_with('.') && image.facts.link.soname.as_deref() == Some(name),
        None => false,
    }
}

/// Whether stubs of gpustub are in the image.
pub fn has_gpustub(image: &PackageImage<'_>) -> bool {
    image
        .facts
        .hidden
        .iter()
        .any(|name| name.starts_with("gpustub1_"))
        || has_run_time(image)
}

/// Whether gpustub's run time is in the image: not in one that calls no stub, or links a library of stubs.
pub fn has_run_time(image: &PackageImage<'_>) -> bool {
    has_text(image, is_run_time_message)
}

/// Whether the image contains a CUDA runtime: libcudart_static.
pub fn has_cudart(image: &PackageImage<'_>) -> bool {
    !is_from_vendor(image)
        && CUDART
            .iter()
            .all(|mark| has_text(image, |text| text == *mark))
}

/// The library that Implib.so's stubs in the image replace.
pub fn implib_library<'a>(image: &PackageImage<'a>) -> Option<&'a str> {
    image
        .facts
        .strings
        .iter()
        .find_map(|text| text.strip_prefix(IMPLIB)?.split(':').next())
}

/// The GPU library that has a function of this name; the first by id, if several have it.
pub fn gpu_library_exporting(function: &str) -> Option<&'static Library> {
    gpu_libraries_exporting(function).next()
}

/// The GPU libraries that have a function of this name: RCCL has NCCL's functions.
pub fn gpu_libraries_exporting(function: &str) -> impl Iterator<Item = &'static Library> {
    FUNCTIONS
        .get(function)
        .into_iter()
        .flat_map(|(first, others)| std::iter::once(*first).chain(others.iter().copied()))
}

/// The GPU library whose function an image means: of several the one that it needs, else one of the toolkit of another
/// library that it needs.
pub fn gpu_library_meant(image: &PackageImage<'_>, function: &str) -> Option<&'static Library> {
    let first = gpu_library_exporting(function)?;
    let mut others = gpu_libraries_exporting(function).skip(1).peekable();
    if others.peek().is_none() {
        return Some(first);
    }
    let needed: Vec<&Library> = (image.needed().iter())
        .filter_map(|name| gpu_file(name)?.library)
        .collect();
    let candidates = || gpu_libraries_exporting(function);
    candidates()
        .find(|library| needed.iter().any(|needed| needed.id == library.id))
        .or_else(|| {
            candidates().find(|library| needed.iter().any(|needed| needed.family == library.family))
        })
        .or(Some(first))
}

/// The names of all functions that gpustub generates stubs for.
pub fn functions() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.keys().copied()
}

/// Libraries of each function: the first by id, and others.
static FUNCTIONS: LazyLock<HashMap<&'static str, (&'static Library, Vec<&'static Library>)>> =
    LazyLock::new(|| {
        let mut functions = HashMap::new();
        for library in Library::builtin_ids().filter_map(Library::builtin) {
            for function in library.symbols.functions() {
                let (first, others) = functions
                    .entry(function.name.as_str())
                    .or_insert_with(|| (library, Vec::new()));
                // A name may have several symbol versions.
                let last: &Library = others.last().copied().unwrap_or(first);
                if last.id != library.id {
                    others.push(library);
                }
            }
        }
        functions
    });

fn has_text(image: &PackageImage<'_>, is_match: impl Fn(&str) -> bool) -> bool {
    image.facts.strings.iter().any(|text| is_match(text))
}
