//! The environment: what the program gets of it, and what the driver is told by it.
#![allow(
    clippy::disallowed_methods,
    reason = "a program is given its environment, and CUDA's driver can be told so only by its own"
)]

use crate::arguments::Vector;
use crate::error::Result;
use crate::run::c_string;

/// The environment of this process, as it was given.
pub fn all() -> Result<Vector> {
    let entry = |(mut name, value): (std::ffi::OsString, std::ffi::OsString)| {
        name.push("=");
        name.push(value);
        c_string(&name)
    };
    std::env::vars_os()
        .map(entry)
        .collect::<Result<_>>()
        .map(Vector::new)
}

/// Has CUDA's driver load modules whole: one that it loads when a kernel needs it first would wait for
/// kernels that run (CUDA Programming Guide, "Lazy Loading"), which wait for the host. The driver reads
/// it when it is initialised.
///
/// # Safety
///
/// No other thread reads or writes the environment.
pub unsafe fn load_eagerly() {
    // SAFETY: the caller's promise.
    unsafe { std::env::set_var("CUDA_MODULE_LOADING", "EAGER") };
}
