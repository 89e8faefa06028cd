//! Buffer of a read, counted against the device's memory budget before it is allocated.

use std::sync::Arc;

use super::growing_bytes::GrowingBytes;
use crate::memory::LARGE;
use crate::server::{Budget, Reservation};

/// Smallest growth of the buffer, unless fewer bytes are missing. It grows only when it is full.
const MIN_GROWTH: usize = 4096;
/// Largest growth of the buffer.
const MAX_GROWTH: usize = 1 << 20;

/// Bytes that a lane has read.
#[derive(Debug)]
pub(crate) struct ReadBuffer {
    bytes: GrowingBytes,
    reserved: Reservation,
    limit: usize,
}

impl ReadBuffer {
    /// An empty buffer for at most `limit` bytes.
    pub fn new(budget: &Arc<Budget>, limit: usize) -> Self {
        Self {
            bytes: GrowingBytes::default(),
            reserved: budget.empty_reservation(),
            limit,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// Number of bytes that can be appended until the buffer holds `requested` bytes; grows a full buffer. A size
    /// that a device requests costs nothing until as many bytes were read.
    pub fn spare(&mut self, requested: u64) -> usize {
        let size = self.bytes().len();
        let max_size = usize::try_from(requested)
            .unwrap_or(usize::MAX)
            .min(self.limit);
        let missing = max_size.saturating_sub(size);
        let free = self.reserved.bytes() - size;
        if free > 0 || missing == 0 {
            return free.min(missing);
        }
        let growth = size.clamp(MIN_GROWTH, MAX_GROWTH).min(missing);
        if self.grow(growth, max_size) {
            growth
        } else {
            0
        }
    }

    /// Appends bytes, at most [`Self::spare`].
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.append(bytes);
    }

    /// Appends a byte beyond the limit, such as a terminator. Returns whether there was memory for it.
    pub fn terminate(&mut self, byte: u8) -> bool {
        let size = self.bytes().len();
        let fits = self.reserved.bytes() > size || self.grow(1, size + 1);
        if fits {
            self.bytes.append(&[byte]);
        }
        fits
    }

    /// Releases unused memory.
    pub fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.reserved.shrink_to(self.bytes.bytes().len());
    }

    /// Reserves `growth` more bytes. `max_size` is the largest size that the buffer may reach.
    fn grow(&mut self, growth: usize, max_size: usize) -> bool {
        let before = self.reserved.bytes();
        if self.reserved.grow(growth).is_err() {
            return false;
        }
        let capacity = match before + growth {
            // Pages for all bytes and a terminator, so that they are copied once: unwritten ones take no memory.
            large @ LARGE.. => large.max(max_size.saturating_add(1)),
            small => small,
        };
        let allocated = self.bytes.reserve(capacity);
        if !allocated {
            // Only allocated memory is counted.
            self.reserved.shrink_to(before);
        }
        allocated
    }
}
