//! Memory of a call.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

use gpurpc::server::{Budget, Fault, Reservation};

/// Alignment for any C type: `_Alignof(max_align_t)` of all supported targets.
pub const MAX_ALIGN: usize = 16;

/// Zeroed memory for the program.
pub struct Block {
    start: NonNull<u8>,
    layout: Layout,
    _reserved: Reservation,
}

// SAFETY: this type only owns the memory; the header states the rules for its use by the program.
unsafe impl Send for Block {}

impl Block {
    /// Allocates memory counted against the budget of the device.
    pub fn new(size: usize, budget: &Arc<Budget>) -> Result<Self, Fault> {
        let reserved = budget.reserve(size)?;
        let out_of_memory = Fault::OutOfMemory {
            size: size as u64,
            limit: budget.limits().memory,
        };
        // An allocation has at least one byte.
        let layout =
            Layout::from_size_align(size.max(1), MAX_ALIGN).map_err(|_| out_of_memory.clone())?;
        // SAFETY: the layout has a byte or more.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(out_of_memory)?;
        Ok(Self {
            start,
            layout,
            _reserved: reserved,
        })
    }

    /// Start address.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no longer used by a call.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
