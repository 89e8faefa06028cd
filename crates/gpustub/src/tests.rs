//! Tests with a fake run time, whose results depend on the requested names.

extern crate std;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::NonNull;
use std::string::{String, ToString};

use super::*;

/// Name passed by the caller.
fn text_of(name: *const c_char) -> &'static str {
    // SAFETY: the crate passes NUL-terminated names; the tests read them only during the call.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap()
}

#[unsafe(no_mangle)]
extern "C" fn gpustub_load(library: *const c_char) -> c_int {
    match text_of(library) {
        "cudart" => 0,
        "hip" => 1,
        "odd" => 99,
        _ => 2,
    }
}

#[unsafe(no_mangle)]
extern "C" fn gpustub_is_available(library: *const c_char) -> c_int {
    (text_of(library) == "cudart").into()
}

#[unsafe(no_mangle)]
extern "C" fn gpustub_has_function(library: *const c_char, function: *const c_char) -> c_int {
    (text_of(library) == "cudart" && text_of(function) == "cudaFree").into()
}

#[unsafe(no_mangle)]
extern "C" fn gpustub_path(library: *const c_char) -> *const c_char {
    match text_of(library) {
        "cudart" => c"/lib/libcudart.so.12".as_ptr(),
        "latin" => c"/m\xfcll".as_ptr(),
        _ => core::ptr::null(),
    }
}

#[unsafe(no_mangle)]
extern "C" fn gpustub_version(library: *const c_char) -> c_int {
    match text_of(library) {
        "cudart" => 12090,
        "odd" => -1,
        _ => 0,
    }
}

#[unsafe(no_mangle)]
extern "C" fn gpustub_reason(library: *const c_char) -> *const c_char {
    if text_of(library) == "hip" {
        c"no libamdhip64.so".as_ptr()
    } else {
        c"".as_ptr()
    }
}

#[unsafe(no_mangle)]
extern "C" fn gpustub_report(library: *const c_char) -> *const c_char {
    if text_of(library) == "hip" {
        c"hip\ntried".as_ptr()
    } else {
        core::ptr::null()
    }
}

#[unsafe(no_mangle)]
extern "C" fn gpustub_counts(
    library: *const c_char,
    bound: *mut c_int,
    refused: *mut c_int,
    missing: *mut c_int,
) -> c_int {
    if text_of(library) != "cudart" {
        return 1;
    }
    // SAFETY: the crate passes pointers to its own integers.
    unsafe { (*bound, *refused, *missing) = (5, 2, 1) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn gpustub_set_handle(library: *const c_char, _handle: *mut c_void) -> c_int {
    match text_of(library) {
        "cudart" => 3,
        "hip" => 0,
        "broken" => 1,
        _ => 2,
    }
}

#[test]
fn load_describes_the_library() {
    let cudart = load("cudart").unwrap();
    assert_eq!(cudart.path().to_string(), "/lib/libcudart.so.12");
    assert_eq!(
        cudart.version(),
        Some(Version {
            major: 12,
            minor: 9
        })
    );
    assert_eq!(cudart.version().unwrap().to_string(), "12.9");
    assert_eq!(
        cudart.counts(),
        Counts {
            bound: 5,
            refused: 2,
            missing: 1
        }
    );
    assert!(is_available("cudart"));
    assert!(has_function("cudart", "cudaFree") && !has_function("cudart", "cudaMalloc"));
    assert!(reason("cudart").is_empty());
}

#[test]
fn load_returns_the_reason_if_the_library_is_missing() {
    let error = load("hip").unwrap_err();
    assert_eq!(error.to_string(), "no libamdhip64.so");
    assert_eq!(error, Unavailable::Missing(reason("hip")));
    assert_eq!(report("hip").unwrap().to_string(), "hip\ntried");
    assert_eq!(
        (path("hip"), version("hip"), counts("hip")),
        (None, None, None)
    );
    assert!(!is_available("hip"));
}

#[test]
fn unknown_names_and_unknown_status_codes_are_errors() {
    assert_eq!(load("acme"), Err(Unavailable::UnknownLibrary));
    assert_eq!(load("odd"), Err(Unavailable::UnknownLibrary));
    assert_eq!(version("odd"), None);
    assert_eq!(report("acme"), None);
}

#[test]
fn names_with_nul_or_too_long_are_unknown() {
    let long = "x".repeat(5000);
    for name in ["cud\0art", "cudart\0", long.as_str()] {
        assert_eq!(load(name), Err(Unavailable::UnknownLibrary));
        assert!(
            !is_available(name) && !has_function(name, "cudaFree") && !has_function("cudart", name)
        );
        assert_eq!(
            (path(name), version(name), counts(name), report(name)),
            (None, None, None, None)
        );
        assert!(reason(name).is_empty());
    }
}

#[test]
fn invalid_utf8_is_displayed_with_replacement_characters() {
    let path = path("latin").unwrap();
    assert_eq!(path.to_string(), "/m\u{fffd}ll");
    assert_eq!(path.to_str(), None);
    assert_eq!(path.as_c_str().to_bytes(), b"/m\xfcll");
    let padded: String = std::format!("[{:>22}]", super::path("cudart").unwrap());
    assert_eq!(padded, "[  /lib/libcudart.so.12]");
}

#[test]
fn set_handle_returns_the_reason_of_a_rejection() {
    let handle = NonNull::dangling();
    for (library, expected) in [
        ("hip", Ok(())),
        ("cudart", Err(HandleError::AlreadyBound)),
        ("broken", Err(HandleError::Rejected)),
        ("acme", Err(HandleError::UnknownLibrary)),
        ("hip\0", Err(HandleError::UnknownLibrary)),
    ] {
        // SAFETY: the functions above do not use the handle.
        let result = unsafe { set_handle(library, handle) };
        assert_eq!(result, expected, "{library:?}");
    }
}
