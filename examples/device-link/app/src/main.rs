//! Prints a report. With the path of the plugin as argument, also prints the plugin's result.

use std::ffi::{CString, c_char, c_int, c_void};

use gpustub_final_app as _; // the device link of its CUDA code

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// RTLD_NOW of `dlfcn.h`.
const NOW: c_int = 2;

fn main() {
    println!("app: {}", report::report(1000));
    for path in std::env::args().skip(1) {
        match plugin_area(&path, 4) {
            Some(area) if area < 0.0 => println!("plugin: no CUDA: status {}", -area),
            Some(area) => println!("plugin: area {area}"),
            None => println!("plugin: {path} is none"),
        }
    }
}

/// Area of `n` triangles, computed by the plugin at `path`.
fn plugin_area(path: &str, n: u32) -> Option<f64> {
    let path = CString::new(path).ok()?;
    // SAFETY: both names are NUL-terminated, and the plugin declares the function with this type.
    unsafe {
        let library = dlopen(path.as_ptr(), NOW);
        if library.is_null() {
            return None;
        }
        let found = dlsym(library, c"plugin_area".as_ptr());
        let area: Option<extern "C" fn(u32) -> f64> = std::mem::transmute(found);
        area.map(|area| area(n))
    }
}

#[test]
fn a_report_is_written_everywhere() {
    assert!(!report::report(3).contains("WRONG"));
}
