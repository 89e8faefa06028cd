//! Memory that is given back when nobody uses it any more.

use alloc::alloc::{alloc_zeroed, dealloc, handle_alloc_error};
use alloc::boxed::Box;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

use super::Shared;
use crate::{Error, Layout};

/// Memory of a device, and what gives it back.
///
/// A device keeps it for as long as one of its calls is there, which may be longer than the device.
pub struct Region {
    memory: Shared,
    release: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Region {
    /// Memory, and what is to be done once nobody uses it.
    pub fn new(memory: Shared, release: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self {
            memory,
            release: Some(Box::new(release)),
        }
    }

    /// Memory of the process, all zero, for a client on the host, or for a device that is told of it.
    ///
    /// # Errors
    ///
    /// None that a layout can cause.
    pub fn zeroed(layout: Layout) -> Result<Self, Error> {
        let size = layout.size();
        // Of a cache line's alignment, so that nothing else shares a line with mailboxes.
        let of = core::alloc::Layout::from_size_align(size, 64).map_err(|_| Error::Memory(size))?;
        // SAFETY: no layout is empty.
        let start = unsafe { alloc_zeroed(of) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(of)
        };
        // SAFETY: the memory is there until it is released below, and nothing else knows of it.
        let memory = unsafe { Shared::new(start, size, layout) }?;
        // SAFETY: allocated above, by the same layout; nobody uses it any more.
        let release = move |memory: Shared| unsafe { dealloc(memory.start().as_ptr(), of) };
        Ok(Self::new(memory, move || release(memory)))
    }
}

impl Deref for Region {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.memory
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.fmt(f)
    }
}
