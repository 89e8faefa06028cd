//! Loads a module, as a GPU's runtime does.

use std::error::Error;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

// <dlfcn.h>
const RTLD_NOW: c_int = 2;

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

/// Module in memory, which stays loaded until the program ends.
pub struct Module(*mut c_void);

impl Module {
    pub fn open(file: &Path) -> Result<Self, Box<dyn Error>> {
        let file = CString::new(file.as_os_str().as_bytes())?;
        // SAFETY: a NUL-terminated string; the module has no constructors.
        let handle = unsafe { dlopen(file.as_ptr(), RTLD_NOW) };
        if handle.is_null() {
            // SAFETY: after a failure it is a string, until the next call.
            let reason = unsafe { CStr::from_ptr(dlerror()) };
            return Err(reason.to_string_lossy().into());
        }
        Ok(Self(handle))
    }

    /// Calls a function that maps sixteen numbers to sixteen.
    pub fn cos16(&self, name: &str, x: &[f32; 16]) -> Result<[f32; 16], Box<dyn Error>> {
        let name = CString::new(name)?;
        // SAFETY: the handle is of a module, and the string is NUL-terminated.
        let function = unsafe { dlsym(self.0, name.as_ptr()) };
        if function.is_null() {
            return Err("the module does not define the function".into());
        }
        // SAFETY: clc/common/cos16.c declares it with this type.
        let function: extern "C" fn(*const f32, *mut f32) =
            unsafe { std::mem::transmute(function) };
        let mut y = [0.0; 16];
        function(x.as_ptr(), y.as_mut_ptr());
        Ok(y)
    }
}
