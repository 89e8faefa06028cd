//! The runtime of a shared library: errors of the build, with the same messages.

use gpustub_core::device_link::{hidden_stubs, runtime_names, static_runtime};
use gpustub_core::diag::Diagnostic;
use gpustub_core::gpu_arch::Vendor;
use gpustub_core::manifest::{Cudart, DeviceCode, DeviceLink, LibraryType};

use crate::graph::PackageGraph as Packages;
use crate::package_index::PackageIndex;

/// Error in a library with `type = "shared"` and code for a vendor's GPUs that the package `index` declares.
pub fn runtime_error(
    packages: &Packages,
    index: PackageIndex,
    library: &DeviceLink,
    vendor: Vendor,
) -> Option<Diagnostic> {
    let name = &library.name.value;
    let declared = packages.declared[index].as_ref()?;
    let error = match (vendor, library.cudart) {
        // A library of headers is not linked.
        _ if matches!(library.code, DeviceCode::Headers) => return None,
        (Vendor::Nvidia, Cudart::None) => return None,
        (Vendor::Nvidia, Cudart::Static) => static_runtime(name),
        _ => {
            let (_, runtime) = runtime_names(vendor);
            let mut stubs = declared.manifest.stubs.iter();
            let stub = stubs.find(|stub| stub.id.value == runtime)?;
            let is_shared = if packages.nodes[index].provides.contains_key(runtime) {
                stub.library_type == LibraryType::Shared
            } else {
                is_shared_elsewhere(packages, runtime)
            };
            if is_shared {
                return None;
            }
            hidden_stubs(name, vendor)
        }
    };
    Some(error.with_origin(&declared.display_path, library.name.span.clone()))
}

/// Whether a package with device code has the stubs of a runtime in a shared library. The
/// build learns of them from that package's device-link metadata.
fn is_shared_elsewhere(packages: &Packages, runtime: &str) -> bool {
    for (declared, node) in packages.declared.iter().zip(&packages.nodes) {
        let Some(declared) = declared else { continue };
        if !declared.has_rdc() || !node.provides.contains_key(runtime) {
            continue;
        }
        for stub in &declared.manifest.stubs {
            if stub.id.value == runtime && stub.library_type == LibraryType::Shared {
                return true;
            }
        }
    }
    false
}
