//! A library for C with CUDA code of its own. C code calls `native_run`.

use base as _;

unsafe extern "C" {
    fn native_run() -> i32;
}

#[unsafe(no_mangle)]
pub extern "C" fn native_status() -> i32 {
    // SAFETY: takes no arguments, and launches a kernel that writes no memory.
    unsafe { native_run() }
}
