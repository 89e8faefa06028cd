//! Names for C.

use core::ffi::CStr;

/// The longest name that is looked up, with its NUL. Longer than that no library or function is.
const LONGEST: usize = 1024;

/// Calls `f` with `name` as a C string, without allocating. `None` for a name that no library or
/// function can have: one that is too long or contains a NUL.
pub(crate) fn with_c_str<R>(name: &str, f: impl FnOnce(&CStr) -> R) -> Option<R> {
    let mut buffer = [0; LONGEST];
    buffer
        .get_mut(..name.len())?
        .copy_from_slice(name.as_bytes());
    let name = CStr::from_bytes_with_nul(buffer.get(..=name.len())?).ok()?;
    Some(f(name))
}
