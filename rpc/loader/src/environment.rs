//! Environment variables of the program and of the driver.
#![allow(
    clippy::disallowed_methods,
    reason = "the program receives the environment, and CUDA's driver is configured only through it"
)]

use crate::arguments::{CStringArray, c_string};
use crate::error::Result;

/// Environment of this process.
pub fn process_environment() -> Result<CStringArray> {
    let mut entries = Vec::new();
    for (mut entry, value) in std::env::vars_os() {
        entry.push("=");
        entry.push(value);
        entries.push(c_string(&entry)?);
    }
    Ok(CStringArray::new(entries))
}

/// Makes CUDA's driver load modules completely: lazy loading of a kernel would wait for running kernels (CUDA
/// Programming Guide, "Lazy Loading"), which wait for the host. The driver reads the variable when it is
/// initialised.
///
/// # Safety
///
/// No other thread reads or writes the environment.
pub unsafe fn disable_lazy_loading() {
    // SAFETY: guaranteed by the caller.
    unsafe { std::env::set_var("CUDA_MODULE_LOADING", "EAGER") };
}
