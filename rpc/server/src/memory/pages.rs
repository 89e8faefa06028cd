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

/// Size in bytes from which memory for a device's requests is mapped, not allocated: glibc's default for mappings,
/// which it raises up to 32 MiB as soon as a large block is freed (`M_MMAP_THRESHOLD` in mallopt(3)).
pub(crate) const LARGE: usize = 128 << 10;

/// Pages that no device sees.
#[cfg(feature = "std")]
#[derive(Debug)]
pub(crate) struct PrivatePages {
    pages: Pages,
    size: usize,
}

#[cfg(feature = "std")]
impl PrivatePages {
    /// Zeroed pages, as for [`Pages::new`].
    pub fn new(size: usize) -> Option<Self> {
        let pages = Pages::new(size)?;
        Some(Self { pages, size })
    }
}

#[cfg(feature = "std")]
impl core::ops::Deref for PrivatePages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: this many bytes, all of them initialised, which only this value refers to.
        unsafe { core::slice::from_raw_parts(self.pages.start().as_ptr(), self.size) }
    }
}

#[cfg(feature = "std")]
impl core::ops::DerefMut for PrivatePages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.pages.start().as_ptr(), self.size) }
    }
}

// SAFETY: this type only owns the memory.
unsafe impl Send for Pages {}
// SAFETY: it never accesses the memory.
unsafe impl Sync for Pages {}
