//! Next step for an image that needs GPU libraries, as far as facts about it tell what `repair` does.

use gpustub_core::diag::listing;
use gpustub_core::library::Role;
use gpustub_image::edit::{ELF_MACHINES, PE_MACHINES};

use crate::evidence::is_found_as;
use crate::gpu_file::{GpuFile, gpu_file};
use crate::package::PackageImage;

/// Kind of libraries that have no stubs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutStubs {
    /// All are loaders in front of vendors' drivers, which a package may bring.
    Loaders,
    /// The interface of one is C++ classes.
    Classes,
    /// Functions that gpustub has no list of.
    Functions,
}

impl WithoutStubs {
    /// Kind of these libraries, together.
    pub fn of(files: &[GpuFile]) -> Self {
        if files.iter().all(|file| file.role == Role::Loader) {
            Self::Loaders
        } else if files.iter().any(|file| file.is_cxx) {
            Self::Classes
        } else {
            Self::Functions
        }
    }
}

/// The next step for an image that needs these GPU libraries, which its package lacks.
pub fn remedy(image: &PackageImage<'_>, missing: &[&str]) -> String {
    let (link, repair, wheel) = if image.is_pe() {
        (
            "link the gpustub stubs for Windows instead (`cargo gpustub add`, or `export stubs` without cargo)",
            "edit the finished file with `cargo gpustub repair FILE`",
            ", or require the wheel that has the DLL",
        )
    } else {
        (
            "link the gpustub stubs instead",
            "or edit the finished file with `cargo gpustub repair`",
            "",
        )
    };
    if let Some(images) = unrepaired_kind(image) {
        return format!("{link}{wheel}; `cargo gpustub repair` does not edit images for {images}");
    }
    // `repair` decides about the image with all of its libraries, whichever rule reports them.
    let needed = image.needed().iter().map(String::as_str);
    let (names, files): (Vec<&str>, Vec<GpuFile>) = needed
        .filter(|name| !is_in_package(image, name))
        .filter_map(|name| Some((name, gpu_file(name)?)))
        .filter(|(_, file)| file.library.is_none())
        .unzip();
    let Some(first) = names.first() else {
        return format!("{link}, {repair}{wheel}");
    };
    let way = match WithoutStubs::of(&files) {
        WithoutStubs::Loaders => {
            "a package may bring a loader, which auditwheel or delvewheel copies".to_owned()
        }
        WithoutStubs::Classes => {
            "stubs cannot replace C++ classes; build the file without, or leave the file out of the package"
                .to_owned()
        }
        WithoutStubs::Functions => {
            format!("`cargo gpustub repair --library NAME=path/to/{first}` makes stubs of its functions")
        }
    };
    let reason = format!("there are no stubs of {}: {way}", listing(&names));
    if missing.iter().all(|name| names.contains(name)) {
        return format!("{reason}{wheel}");
    }
    format!(
        "{link}{wheel}; {reason}; `--partial` of `cargo gpustub repair` replaces the other libraries"
    )
}

/// Whether the loader finds the library in the package of the image.
pub(crate) fn is_in_package(image: &PackageImage<'_>, name: &str) -> bool {
    let mut images = image.package.all_images();
    images.any(|candidate| is_found_as(&candidate, name))
}

/// Machine or C library whose images `repair` refuses, if it is the image's.
fn unrepaired_kind<'a>(image: &PackageImage<'a>) -> Option<&'a str> {
    let link = &image.facts.link;
    if link
        .needed
        .iter()
        .any(|name| name.starts_with("libc.musl-"))
    {
        return Some("musl");
    }
    let machines = if image.is_pe() {
        PE_MACHINES
    } else {
        ELF_MACHINES
    };
    let machine = link.machine.as_str();
    (!machines.contains(&machine)).then_some(machine)
}
