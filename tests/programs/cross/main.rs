//! Calls a library that exists for the target, with arguments of each class, and OpenCL, which is absent.

use std::ffi::{c_float, c_int, c_long, c_uint, c_void};
use std::ptr::null_mut;

unsafe extern "C" {
    safe fn acmeMix(
        a: c_int,
        b: f64,
        c: i64,
        d: c_float,
        e: c_long,
        f: f64,
        g: i64,
        h: c_int,
        i: *const c_int,
    ) -> c_int;
    fn clGetPlatformIDs(room: c_uint, platforms: *mut *mut c_void, count: *mut c_uint) -> c_int;
}

fn main() {
    for _ in 0..2 {
        let mixed = acmeMix(1, 2.0, 3 << 40, 4.0, 5, 6.0, -7, 8, &9);
        println!("acme: {mixed}");
    }
    println!("acme: available {}", gpustub::is_available("acme"));
    let mut count = 1;
    // SAFETY: writes one integer.
    let status = unsafe { clGetPlatformIDs(0, null_mut(), &mut count) };
    println!("opencl: {status}, {count} platforms");
}
