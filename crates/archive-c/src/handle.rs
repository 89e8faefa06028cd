//! Access to the caller's structs, numbers and bytes through pointers.

use std::ffi::c_int;
use std::mem::{align_of, size_of};

use gpustub_archive::{Contents, Member, SuperArchive, Symbols, View};

use crate::status::{ARGUMENT, NONE, OK, error_status};

/// A struct of the header: a tag and the value.
///
/// # Safety
///
/// `TAG` belongs to this type alone, and a value fits after it.
pub unsafe trait Handle: Sized {
    /// Type of the value in the struct.
    type Value;
    const TAG: u64;
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident, $words:literal, $tag:literal, $value:ty;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy)]
        pub struct $name {
            opaque: [u64; $words],
        }

        const _: () = {
            assert!(size_of::<$name>() == $words * 8);
            assert!(size_of::<$value>() + 8 <= size_of::<$name>());
            assert!(align_of::<$value>() <= align_of::<$name>());
            assert!(!std::mem::needs_drop::<$value>());
        };

        impl Default for $name {
            fn default() -> Self {
                Self { opaque: [0; $words] }
            }
        }

        // SAFETY: the tags differ, as their texts do; the assertions above check that a value fits.
        unsafe impl Handle for $name {
            type Value = $value;
            const TAG: u64 = u64::from_le_bytes(*$tag);
        }
    )*};
}

/// Contents, with the name of the member that has them; of contents without a view, none.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    pub name: &'a [u8],
    pub contents: Contents<'a>,
}

impl<'a> From<Member<'a>> for Named<'a> {
    fn from(member: Member<'a>) -> Self {
        let (name, contents) = (member.name(), member.contents());
        Self { name, contents }
    }
}

// The caller is responsible for the lifetime of the bytes.
handles! {
    /// `struct gpustub_archive`.
    CArchive, 64, b"gsarchiv", SuperArchive<'static>;
    /// `struct gpustub_archive_view`.
    CView, 40, b"gsa view", View<'static>;
    /// `struct gpustub_archive_member`.
    CMember, 32, b"gsa memb", Named<'static>;
    /// `struct gpustub_archive_symbols`.
    CSymbols, 48, b"gsa symb", Symbols<'static>;
}

/// Reads the value of a struct of the caller.
///
/// # Safety
///
/// `from` is null, or points to a struct of its type that is zeroed or was given to [`fill`].
pub unsafe fn read<T: Handle>(from: *const T) -> Result<T::Value, c_int> {
    if from.is_null() || !from.is_aligned() {
        return Err(ARGUMENT);
    }
    let tag: *const u64 = from.cast();
    // SAFETY: as the caller promises; a struct begins with its tag.
    if unsafe { tag.read() } != T::TAG {
        return Err(ARGUMENT);
    }
    // SAFETY: only `fill` writes this tag, followed by the value; `Handle` guarantees its alignment.
    Ok(unsafe { tag.add(1).cast::<T::Value>().read() })
}

/// Writes a value to a struct of the caller, and returns the status. Without a value the struct counts
/// as not opened.
///
/// # Safety
///
/// `to` is null, or points to a struct of its type.
pub unsafe fn fill<T: Handle>(
    to: *mut T,
    value: Result<Option<T::Value>, gpustub_archive::Error>,
) -> c_int {
    if to.is_null() || !to.is_aligned() {
        return ARGUMENT;
    }
    let tag: *mut u64 = to.cast();
    let (status, value) = match value {
        Ok(Some(value)) => (OK, Some(value)),
        Ok(None) => (NONE, None),
        Err(error) => (error_status(error), None),
    };
    // SAFETY: as the caller promises; `Handle` guarantees that a value fits after the tag.
    unsafe {
        tag.write(0);
        if let Some(value) = value {
            tag.add(1).cast::<T::Value>().write(value);
            tag.write(T::TAG);
        }
    }
    status
}

/// Writes a number or a pointer for the caller.
///
/// # Safety
///
/// `to` is null, or points to memory for a `T`.
pub unsafe fn put<T>(to: *mut T, value: T) -> c_int {
    if to.is_null() || !to.is_aligned() {
        return ARGUMENT;
    }
    // SAFETY: as the caller promises.
    unsafe { to.write(value) };
    OK
}

/// The caller's bytes.
///
/// # Safety
///
/// `at` is null, or points to `size` bytes, which stay unchanged during `'a`.
pub unsafe fn bytes<'a>(at: *const u8, size: usize) -> Result<&'a [u8], c_int> {
    // No object is larger, nor extends beyond the end of memory.
    let is_possible = isize::try_from(size).is_ok() && at.addr().checked_add(size).is_some();
    if at.is_null() || !is_possible {
        return Err(ARGUMENT);
    }
    // SAFETY: as the caller promises, and checked above.
    Ok(unsafe { std::slice::from_raw_parts(at, size) })
}
