//! Zeroed memory that goes back to the system as soon as it is dropped.

use core::ptr::NonNull;

/// Zeroed pages, mapped for one owner.
///
/// An allocator may keep what is freed, and then hands the address to another owner. It is also part of Rust's
/// abstract machine, in which a device that writes does not exist.
#[cfg(all(unix, feature = "std", not(miri)))]
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    size: usize,
}

#[cfg(all(unix, feature = "std", not(miri)))]
impl Pages {
    /// Maps `size` bytes, which are more than none. Pages take memory when they are first written. Returns
    /// nothing if the system refuses.
    pub fn new(size: usize) -> Option<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the system chooses overlaps nothing.
        let start =
            unsafe { mmap_anonymous(core::ptr::null_mut(), size, access, MapFlags::PRIVATE) };
        let start = NonNull::new(start.ok()?.cast())?;
        Some(Self { start, size })
    }

    /// Start address, aligned to a page.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

#[cfg(all(unix, feature = "std", not(miri)))]
impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped with this size, and no longer used. Fails only for a range that is none.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.size) };
    }
}

/// Zeroed memory of the allocator: `no_std` has no system to ask, Windows has another one, and Miri knows no
/// memory but Rust's.
#[cfg(not(all(unix, feature = "std", not(miri))))]
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    layout: core::alloc::Layout,
}

#[cfg(not(all(unix, feature = "std", not(miri))))]
impl Pages {
    /// Allocates `size` bytes, which are more than none. Returns nothing if there is no memory.
    pub fn new(size: usize) -> Option<Self> {
        // Aligned to a cache line, so that no other data shares a line with mailboxes.
        let layout = core::alloc::Layout::from_size_align(size, 64).ok()?;
        // SAFETY: the caller asks for more than no bytes.
        let start = NonNull::new(unsafe { alloc::alloc::alloc_zeroed(layout) })?;
        Some(Self { start, layout })
    }

    /// Start address, aligned to a cache line.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

#[cfg(not(all(unix, feature = "std", not(miri))))]
impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no longer used.
        unsafe { alloc::alloc::dealloc(self.start.as_ptr(), self.layout) }
    }
}

// SAFETY: this type only owns the memory.
unsafe impl Send for Pages {}
// SAFETY: it never accesses the memory.
unsafe impl Sync for Pages {}
