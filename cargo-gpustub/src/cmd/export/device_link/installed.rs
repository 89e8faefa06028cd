//! Parts of a device-link library that are installed, and their names.

use std::path::Path;

use gpustub_core::gpu_arch::Vendor;
use gpustub_engine::device_link::metadata::{DeviceLibrary, Stubs};

/// Vendors of GPUs that libraries may have code for.
const VENDORS: [Vendor; 2] = [Vendor::Nvidia, Vendor::Amd];

/// Whether the library has device code, and not headers alone.
pub fn has_code(library: &DeviceLibrary) -> bool {
    !library.archive.as_os_str().is_empty()
}

/// Whether the library has device code for the GPUs of a vendor.
pub fn has_code_for(library: &DeviceLibrary, vendor: Vendor) -> bool {
    has_code(library) && library.has_code(vendor)
}

/// Shared stubs of a vendor's runtime that a library calls: its package's own, or those of another package.
pub fn stubs_of<'a>(
    library: &'a DeviceLibrary,
    vendor: Vendor,
    libraries: &'a [DeviceLibrary],
) -> Option<&'a Path> {
    match library.stubs(vendor) {
        Stubs::External => libraries
            .iter()
            .find_map(|library| library.shared_stubs(vendor)),
        _ => library.shared_stubs(vendor),
    }
}

/// Shared stubs of all runtimes that a library calls, each once.
pub fn all_stubs<'a>(library: &'a DeviceLibrary, libraries: &'a [DeviceLibrary]) -> Vec<&'a Path> {
    let stubs = VENDORS.map(|vendor| stubs_of(library, vendor, libraries));
    let mut stubs = Vec::from_iter(stubs.into_iter().flatten());
    stubs.dedup();
    stubs
}

/// Path of the archive, whose name differs from the shared library's: `-l` would confuse the two.
pub fn static_name(library: &DeviceLibrary) -> String {
    format!("lib/lib{}_static.a", library.name)
}

/// Name of a file that is installed.
pub fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
