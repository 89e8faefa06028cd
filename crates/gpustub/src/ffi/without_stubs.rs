//! Answers on targets without trampolines, where no package brings stubs and `gpustub.h` has no definition, and on macOS,
//! where stubs are constant answers: no library is known. Programs of several platforms link everywhere.
#![allow(dead_code, reason = "used on other targets")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null;

const UNKNOWN_LIBRARY: c_int = 2;

const REASON: &CStr = if cfg!(target_os = "macos") {
    c"stubs for macOS load no library"
} else {
    c"this target has no stubs"
};

pub(crate) unsafe fn gpustub_load(_: *const c_char) -> c_int {
    UNKNOWN_LIBRARY
}

pub(crate) unsafe fn gpustub_is_available(_: *const c_char) -> c_int {
    0
}

pub(crate) unsafe fn gpustub_has_function(_: *const c_char, _: *const c_char) -> c_int {
    0
}

pub(crate) unsafe fn gpustub_path(_: *const c_char) -> *const c_char {
    null()
}

pub(crate) unsafe fn gpustub_version(_: *const c_char) -> c_int {
    0
}

pub(crate) unsafe fn gpustub_reason(_: *const c_char) -> *const c_char {
    REASON.as_ptr()
}

pub(crate) unsafe fn gpustub_report(_: *const c_char) -> *const c_char {
    null()
}

pub(crate) unsafe fn gpustub_counts(
    _: *const c_char,
    _: *mut c_int,
    _: *mut c_int,
    _: *mut c_int,
) -> c_int {
    UNKNOWN_LIBRARY
}

pub(crate) unsafe fn gpustub_set_handle(_: *const c_char, _: *mut c_void) -> c_int {
    UNKNOWN_LIBRARY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_library_is_known() {
        let name = c"cudart".as_ptr();
        // SAFETY: no function reads its arguments.
        unsafe {
            assert_eq!(gpustub_load(name), UNKNOWN_LIBRARY);
            assert_eq!(
                gpustub_counts(
                    name,
                    null::<c_int>().cast_mut(),
                    null::<c_int>().cast_mut(),
                    null::<c_int>().cast_mut()
                ),
                UNKNOWN_LIBRARY
            );
            assert_eq!(
                gpustub_set_handle(name, null::<c_void>().cast_mut()),
                UNKNOWN_LIBRARY
            );
            assert_eq!(gpustub_is_available(name), 0);
            assert_eq!(gpustub_has_function(name, name), 0);
            assert_eq!(gpustub_version(name), 0);
            assert!(gpustub_path(name).is_null() && gpustub_report(name).is_null());
            let reason = CStr::from_ptr(gpustub_reason(name));
            assert_eq!(reason, c"this target has no stubs");
        }
    }
}
