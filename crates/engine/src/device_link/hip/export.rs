//! A device link that another build system makes of installed archives.

use super::super::exports;
use super::super::metadata::DeviceLibrary;
use super::{link, register};
use crate::error::Error;
use gpustub_core::gpu_arch::Vendor;

/// Sources of a device link for AMD, each a name and a text: the object with the code, and the functions that objects in
/// other images call.
pub const HIP_SOURCES: [(&str, &str); 2] = [link::SOURCE, register::SOURCE];

/// Lines of the files that [`HIP_SOURCES`] include, for the objects of a library. Those that begin with `FUNCTION` are of
/// `gpustub_hip.inc`, if the objects are in another image, all others of `gpustub_hip_link.inc`.
///
/// # Errors
///
/// An archive that cannot be read.
pub fn hip_symbols(library: &DeviceLibrary) -> Result<Vec<String>, Error> {
    let functions = exports::functions(library)?.into_iter();
    let functions = functions.filter(|function| function.vendor == Vendor::Amd);
    let mut lines =
        Vec::from_iter(functions.map(|function| format!("FUNCTION({})", function.name())));
    lines.extend(link::symbols(&register::ids(std::slice::from_ref(
        &library.archive,
    ))?));
    Ok(lines)
}
