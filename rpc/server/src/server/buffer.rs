//! Zeroed bytes for data of calls.

use alloc::alloc::{alloc_zeroed, dealloc};
use alloc::sync::Arc;
use core::alloc::Layout;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::slice;

use super::budget::{Budget, Reservation};
use super::fault::Fault;
use crate::memory::{LARGE, Pages};

/// Zeroed bytes that count against the [`Budget`] of a device until they are dropped, aligned to 16. Large ones are
/// pages of the system: they go back to it when they are dropped, where an allocator would keep what a device once
/// requested, and take memory only as they are written.
///
/// ```
/// use gpurpc::server::{Buffer, Fault, OpenCall};
///
/// /// Fails, which drops the call, if the client requests more than the device's calls may hold.
/// fn sevens(call: &OpenCall<'_>, size: usize) -> Result<Buffer, Fault> {
///     let mut bytes = call.budget().allocate(size)?;
///     bytes.fill(7);
///     Ok(bytes)
/// }
/// ```
pub struct Buffer {
    start: NonNull<u8>,
    size: usize,
    storage: Storage,
    _reserved: Reservation,
}

enum Storage {
    Heap(Layout),
    Mapped { _pages: Pages },
}

// SAFETY: the bytes are owned, and accessed through references to this type only.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Budget {
    /// Allocates zeroed bytes.
    ///
    /// # Errors
    ///
    /// [`Fault::OutOfMemory`] if the device's calls hold too many, or the system has none.
    pub fn allocate(self: &Arc<Self>, size: usize) -> Result<Buffer, Fault> {
        let reserved = self.reserve(size)?;
        let out_of_memory = Fault::OutOfMemory {
            size: size as u64,
            limit: self.limits.memory,
        };
        let (start, storage) = if size >= LARGE {
            let pages = Pages::new(size).ok_or(out_of_memory)?;
            (pages.start(), Storage::Mapped { _pages: pages })
        } else {
            // An allocation has at least one byte.
            let layout = Layout::from_size_align(size.max(1), Buffer::ALIGN);
            let layout = layout.map_err(|_| out_of_memory.clone())?;
            // SAFETY: the layout has a byte or more.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(out_of_memory)?;
            (start, Storage::Heap(layout))
        };
        Ok(Buffer {
            start,
            size,
            storage,
            _reserved: reserved,
        })
    }
}

impl Buffer {
    /// Alignment of the bytes: that of any C type, `_Alignof(max_align_t)` of all supported targets.
    pub const ALIGN: usize = 16;

    /// Start address, for code that accesses the bytes without references to them.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: this many bytes, all of them initialised.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.size) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Storage::Heap(layout) = self.storage {
            // SAFETY: allocated with this layout, and no longer used.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Limits;

    #[test]
    fn buffers_of_any_size_are_zeroed_and_counted() {
        let limits = Limits {
            message: 0,
            memory: LARGE + 10,
            ..Limits::default()
        };
        let budget = Arc::new(Budget::new(limits));
        for size in [0, 1, 100, LARGE - 1, LARGE, LARGE + 10] {
            let mut buffer = budget.allocate(size).expect("as much as is left");
            assert_eq!(
                (buffer.len(), buffer.as_ptr() as usize % Buffer::ALIGN),
                (size, 0)
            );
            assert!(buffer.iter().all(|byte| *byte == 0));
            buffer.fill(0xff);
            assert!(budget.reserve(LARGE + 11 - size).is_err(), "it counts");
        }
        assert!(budget.allocate(LARGE + 11).is_err());
        assert!(budget.reserve(LARGE + 10).is_ok(), "nothing is held");
    }
}
