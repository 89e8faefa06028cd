//! Declarations of `gpustub.h`, which the C run time in the stub archive implements.

use core::ffi::c_int;

pub(crate) const OK: c_int = 0;
pub(crate) const UNAVAILABLE: c_int = 1;
pub(crate) const ALREADY_BOUND: c_int = 3;

mod without_stubs;

#[allow(unused_imports, reason = "shadowed on targets that can have stubs")]
pub(crate) use without_stubs::*;

// As `Target::check` of gpustub-core.
#[cfg(all(
    any(
        all(
            any(
                target_arch = "x86_64",
                target_arch = "aarch64",
                target_arch = "riscv64",
                target_arch = "loongarch64",
                target_arch = "powerpc64"
            ),
            target_endian = "little",
            target_pointer_width = "64",
        ),
        target_arch = "s390x",
        target_arch = "x86",
        // Only ARMv7 has stubs. Stable compilers describe ARMv6 in the same way.
        all(
            target_arch = "arm",
            target_endian = "little",
            target_abi = "eabihf"
        ),
    ),
    any(
        all(target_os = "linux", any(target_env = "gnu", target_env = "musl")),
        all(
            target_os = "freebsd",
            any(target_arch = "x86_64", target_arch = "aarch64")
        ),
        all(
            target_os = "windows",
            any(target_arch = "x86_64", target_arch = "aarch64")
        ),
    ),
))]
pub(crate) use stubs::{
    gpustub_counts, gpustub_has_function, gpustub_is_available, gpustub_load, gpustub_path,
    gpustub_reason, gpustub_report, gpustub_set_handle, gpustub_version,
};

#[allow(dead_code, reason = "unused on other targets")]
mod stubs {
    use core::ffi::{c_char, c_int, c_void};

    unsafe extern "C" {
        pub(crate) fn gpustub_load(library: *const c_char) -> c_int;
        pub(crate) fn gpustub_is_available(library: *const c_char) -> c_int;
        pub(crate) fn gpustub_has_function(
            library: *const c_char,
            function: *const c_char,
        ) -> c_int;
        pub(crate) fn gpustub_path(library: *const c_char) -> *const c_char;
        pub(crate) fn gpustub_version(library: *const c_char) -> c_int;
        pub(crate) fn gpustub_reason(library: *const c_char) -> *const c_char;
        pub(crate) fn gpustub_report(library: *const c_char) -> *const c_char;
        pub(crate) fn gpustub_counts(
            library: *const c_char,
            bound: *mut c_int,
            refused: *mut c_int,
            missing: *mut c_int,
        ) -> c_int;
        pub(crate) fn gpustub_set_handle(library: *const c_char, handle: *mut c_void) -> c_int;
    }
}
