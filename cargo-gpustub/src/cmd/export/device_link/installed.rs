//! Parts of a device-link library that are installed, and their names.

use std::path::Path;

use gpustub_engine::device_link::metadata::{DeviceLibrary, Stubs};

/// Whether the library has device code, and not headers alone.
pub fn has_code(library: &DeviceLibrary) -> bool {
    !library.archive.as_os_str().is_empty()
}

/// Shared stubs that a library calls: its package's own, or those of another package.
pub fn stubs_of<'a>(
    library: &'a DeviceLibrary,
    libraries: &'a [DeviceLibrary],
) -> Option<&'a Path> {
    match library.stubs {
        Stubs::External => libraries.iter().find_map(shared_stubs),
        _ => shared_stubs(library),
    }
}

fn shared_stubs(library: &DeviceLibrary) -> Option<&Path> {
    match &library.stubs {
        Stubs::Shared(path) => Some(path),
        _ => None,
    }
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
