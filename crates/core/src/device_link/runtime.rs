//! Errors in the CUDA runtime of a shared library, shared by the plan and the build.

use crate::diag::{Diagnostic, INVALID_VALUE};

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
pub fn hidden_stubs(library: &str) -> Diagnostic {
    let message = format!(
        "device-link.{library} has type = \"shared\", and the stubs of the CUDA runtime are static: \
         they are hidden in the program, where the library cannot call them"
    );
    let help = "write type = \"shared\" in the [stub.*] tables of this package, or of one with \
                [device-link.*] tables that this package depends on and that provides them; or leave [stub.cudart] out, and the library \
                needs the toolkit's libcudart.so";
    Diagnostic::error(&INVALID_VALUE, message).help(help)
}
