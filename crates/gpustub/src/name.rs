//! Names for C.

use core::ffi::CStr;

/// Maximum length of a library or function name, with its NUL.
const MAX_LENGTH: usize = 1024;

/// Calls `f` with `name` as a C string, without allocating. `None` for a name that is too long or
/// contains a NUL, which no library or function can have.
pub(crate) fn with_c_str<R>(name: &str, f: impl FnOnce(&CStr) -> R) -> Option<R> {
    let mut buffer = [0; MAX_LENGTH];
    buffer
        .get_mut(..name.len())?
        .copy_from_slice(name.as_bytes());
    let name = CStr::from_bytes_with_nul(buffer.get(..=name.len())?).ok()?;
    Some(f(name))
}
