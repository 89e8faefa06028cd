//! The CUDA runtime of a shared library: errors of the build, with the same messages.

use gpustub_core::device_link::{hidden_stubs, static_runtime};
use gpustub_core::diag::Diagnostic;
use gpustub_core::manifest::{Cudart, DeviceCode, DeviceLink, LibraryType};

use crate::graph::Graph as Packages;
use crate::package_index::PackageIndex;

/// Error in a library with `type = "shared"` that the package `at` declares.
pub fn refused(packages: &Packages, at: PackageIndex, library: &DeviceLink) -> Option<Diagnostic> {
    let name = &library.name.value;
    let declared = packages.declared[at].as_ref()?;
    let stubs = || declared.manifest.stubs.iter();
    let error = match library.cudart {
        // A library of headers is not linked.
        _ if matches!(library.code, DeviceCode::Headers) => return None,
        Cudart::None => return None,
        Cudart::Static => static_runtime(name),
        Cudart::Shared => {
            let stub = stubs().find(|stub| stub.id.value == "cudart")?;
            let is_own = packages.nodes[at].provides.contains_key("cudart");
            let is_fine = if is_own {
                stub.library_type == LibraryType::Shared
            } else {
                is_shared_elsewhere(packages)
            };
            (!is_fine).then(|| hidden_stubs(name))?
        }
    };
    Some(error.with_origin(&declared.shown, library.name.span.clone()))
}

/// Whether a package with device code has the stubs of the CUDA runtime in a shared library. The
/// build learns of them from that package's device-link metadata.
fn is_shared_elsewhere(packages: &Packages) -> bool {
    let mut all = packages.declared.iter().zip(&packages.nodes);
    all.any(|(declared, node)| {
        let stubs = declared.iter().flat_map(|one| &one.manifest.stubs);
        let mut cudart = stubs.filter(|stub| stub.id.value == "cudart");
        let has_libraries = declared
            .iter()
            .any(|one| !one.manifest.device_links.is_empty());
        has_libraries
            && node.provides.contains_key("cudart")
            && cudart.any(|stub| stub.library_type == LibraryType::Shared)
    })
}
