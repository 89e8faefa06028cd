//! Registration of a device link whose objects are in other images.
//!
//! The objects' handles are hidden, so that each library of objects has handles of its own. It gets their value from
//! functions of the image with the device link, one for each object, as nvlink makes them for CUDA: a device link over
//! other objects leaves a function undefined.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::generated;
use super::super::metadata::DeviceLibrary;
use super::super::symbol_index;
use crate::error::Error;
use crate::files;
use crate::toolchain::Toolchain;

/// The code object of an object; LLVM 15 has no ids.
pub(super) const FATBIN: &str = "__hip_fatbin";

/// Its handle, of which objects without an id have a weak one.
pub(super) const HANDLE: &str = "__hip_gpubin_handle";

/// Symbol that names the id of an object (`-cuid`), with an underscore in front.
const CUID: &str = "__hip_cuid";

/// Ids of the objects of archives, each once: an empty one for all objects without an id.
pub(super) fn ids(archives: &[PathBuf]) -> Result<BTreeSet<String>, Error> {
    let mut ids = BTreeSet::new();
    for archive in archives {
        let names = symbol_index::names(archive).map_err(|e| files::unread(archive, &e))?;
        for name in names.unwrap_or_default() {
            let id = name.strip_prefix(CUID).map(str::to_owned);
            let unnamed = (name == HANDLE).then(String::new);
            ids.extend(id.or(unnamed));
        }
    }
    Ok(ids)
}

/// Suffixes of the functions for a library's objects: their ids, or the library's name.
pub(in crate::device_link) fn suffixes(library: &DeviceLibrary) -> Result<Vec<String>, Error> {
    let mut suffixes = Vec::new();
    for id in ids(std::slice::from_ref(&library.archive))? {
        suffixes.push(if id.is_empty() {
            format!("_library_{}", library.name.replace('-', "_"))
        } else {
            id
        });
    }
    Ok(suffixes)
}

/// File that both sources include.
const LIST: &str = "gpustub_hip.inc";

fn list(functions: &[String]) -> String {
    functions
        .iter()
        .map(|name| format!("FUNCTION({name})\n"))
        .collect()
}

/// Source with the functions of a device link.
pub(super) const SOURCE: (&str, &str) = ("gpustub_hip_register.c", include_str!("register.c"));

/// Makes the object with the functions of a device link.
pub(super) fn link_object(
    functions: &[String],
    dir: &Path,
    tools: &dyn Fn() -> Result<Toolchain, Error>,
) -> Result<PathBuf, Error> {
    generated::object(
        dir,
        [SOURCE, (LIST, &list(functions))],
        "hip_register.o",
        tools,
    )
}

/// Makes the object that calls these functions in a library with the objects of others, its own included.
pub(in crate::device_link) fn middle_object(
    libraries: &[&DeviceLibrary],
    functions: &[String],
    dir: &Path,
    tools: &dyn Fn() -> Result<Toolchain, Error>,
) -> Result<PathBuf, Error> {
    let archives = Vec::from_iter(libraries.iter().map(|library| library.archive.clone()));
    let mut list = list(functions);
    for id in ids(&archives)? {
        list += &format!("SYMBOL({FATBIN}{id})\nSYMBOL({HANDLE}{id})\n");
    }
    let source = ("gpustub_hip_middle.c", include_str!("middle.c"));
    generated::object(dir, [source, (LIST, &list)], "hip_middle.o", tools)
}
