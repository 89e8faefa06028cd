//! The CUDA runtime of a shared library: what the build refuses of it, in the build's words.

use gpustub_core::diag::{BAD_VALUE, Diagnostic};
use gpustub_core::manifest::{Cudart, DeviceCode, DeviceLink, Form};

use crate::graph::Graph as Packages;

/// What stands against a library with `form = "shared"` that the package `at` declares.
pub fn refused(packages: &Packages, at: usize, library: &DeviceLink) -> Option<Diagnostic> {
    let name = &library.name.value;
    let declared = packages.declared[at].as_ref()?;
    let stubs = || declared.manifest.stubs.iter();
    let (why, help) = match library.cudart {
        // Headers are linked with nothing.
        _ if matches!(library.code, DeviceCode::Headers) => return None,
        Cudart::None => return None,
        Cudart::Static => (
            "cudart = \"static\"",
            "a static CUDA runtime in each shared library knows only what that one registers: leave \
             `cudart` out, or write form = \"static\"",
        ),
        Cudart::Shared => {
            let stub = stubs().find(|stub| stub.id.value == "cudart")?;
            let is_own = packages.nodes[at].provides.contains_key("cudart");
            let is_fine = match is_own {
                true => stub.form == Form::Shared,
                false => is_shared_elsewhere(packages),
            };
            if is_fine {
                return None;
            }
            (
                "the stubs of the CUDA runtime are static: they are hidden in the program, where the \
                 library cannot call them",
                "write form = \"shared\" in the [stub.*] tables of this package, or of one that this \
                 package depends on and that provides them; or leave [stub.cudart] out, and the library \
                 needs the toolkit's libcudart.so",
            )
        }
    };
    let joined = match library.cudart {
        Cudart::Static => " and ",
        _ => ", and ",
    };
    let message = format!("device-link.{name} has form = \"shared\"{joined}{why}");
    let error = Diagnostic::error(&BAD_VALUE, message).help(help);
    Some(error.at(&declared.shown, library.name.span.clone()))
}

/// Whether any package has the stubs of the CUDA runtime in a shared library.
fn is_shared_elsewhere(packages: &Packages) -> bool {
    let mut all = packages.declared.iter().zip(&packages.nodes);
    all.any(|(declared, node)| {
        let stubs = declared.iter().flat_map(|one| &one.manifest.stubs);
        let mut cudart = stubs.filter(|stub| stub.id.value == "cudart");
        node.provides.contains_key("cudart") && cudart.any(|stub| stub.form == Form::Shared)
    })
}
