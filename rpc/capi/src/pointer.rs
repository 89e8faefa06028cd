//! Checks of pointers that the program passes.

use std::ptr::NonNull;

use crate::status::Status;

/// Converts a pointer of the program to a reference.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers); the target stays valid during `'a`.
pub unsafe fn deref<'a, T>(pointer: *const T) -> Result<&'a T, Status> {
    if !pointer.is_aligned() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { pointer.as_ref() }.ok_or(Status::INVALID_ARGUMENT)
}

/// Checks the pointer to an output.
pub fn output<T>(pointer: *mut T) -> Result<NonNull<T>, Status> {
    match NonNull::new(pointer) {
        Some(output) if output.is_aligned() => Ok(output),
        _ => Err(Status::INVALID_ARGUMENT),
    }
}
