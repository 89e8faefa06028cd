//! Memory of a call.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

use gpurpc::server::{Budget, Fault, Reservation};

use crate::callback::ALIGN;

/// Memory for the program, all zero in the beginning.
pub struct Block {
    start: NonNull<u8>,
    layout: Layout,
    _reserved: Reservation,
}

// SAFETY: this only holds it; what the program does with it, the header says.
unsafe impl Send for Block {}

impl Block {
    /// Memory that counts as what the calls of a device hold.
    pub fn new(size: usize, budget: &Arc<Budget>) -> Result<Self, Fault> {
        let reserved = budget.reserve(size)?;
        let none = Fault::Memory {
            size: size as u64,
            limit: budget.limits().memory,
        };
        // Nothing is allocated of no bytes.
        let layout = Layout::from_size_align(size.max(1), ALIGN).map_err(|_| none.clone())?;
        // SAFETY: the layout has a byte or more.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(none)?;
        Ok(Self {
            start,
            layout,
            _reserved: reserved,
        })
    }

    /// Where it begins.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no call has it any more.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
