//! Errors in the runtime of a shared library, shared by the plan and the build.

use crate::diag::{Diagnostic, INVALID_VALUE};
use crate::gpu_arch::Vendor;

/// Name of a vendor's runtime, and id of its stubs.
#[must_use]
pub fn runtime_names(vendor: Vendor) -> (&'static str, &'static str) {
    match vendor {
        Vendor::Nvidia => ("CUDA", "cudart"),
        Vendor::Amd => ("HIP", "hip"),
    }
}

/// Reports a library with `type = "shared"` and a runtime of its own.
#[must_use]
pub fn static_runtime(library: &str) -> Diagnostic {
    let message = format!("device-link.{library} has type = \"shared\" and cudart = \"static\"");
    let help = "a static CUDA runtime in each shared library knows only what that one registers: \
                leave `cudart` out, or write type = \"static\"";
    Diagnostic::error(&INVALID_VALUE, message).help(help)
}

/// Reports a library with `type = "shared"` that requires kernels which launch kernels.
#[must_use]
pub fn shared_launches(library: &str, required: &str) -> Diagnostic {
    let message =
        format!("device-link.{library} is shared and requires `{required}`, which has `cudadevrt`");
    let help = "write type = \"static\": programs are linked with libcudadevrt";
    Diagnostic::error(&INVALID_VALUE, message).help(help)
}

/// Reports a library with `type = "shared"` over stubs of the runtime that are static.
#[must_use]
pub fn hidden_stubs(library: &str, vendor: Vendor) -> Diagnostic {
    let (runtime, stub) = runtime_names(vendor);
    let file = match vendor {
        Vendor::Nvidia => "the toolkit's libcudart.so",
        Vendor::Amd => "ROCm's libamdhip64.so",
    };
    let message = format!(
        "device-link.{library} has type = \"shared\", and the stubs of the {runtime} runtime are static: \
         they are hidden in the program, where the library cannot call them"
    );
    let help = format!(
        "write type = \"shared\" in the [stub.*] tables of this package, or of one with \
         [device-link.*] tables that this package depends on and that provides them; or leave [stub.{stub}] out, and the library \
         needs {file}"
    );
    Diagnostic::error(&INVALID_VALUE, message).help(help)
}
