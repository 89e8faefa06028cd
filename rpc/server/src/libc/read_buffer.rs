//! Buffer of a read, counted against the device's memory budget before it is allocated.

use std::sync::Arc;

use crate::server::{Budget, Reservation};

/// Smallest growth of the buffer, unless fewer bytes are wanted. It grows only when it is full.
const MIN_GROWTH: usize = 4096;
/// Largest growth of the buffer.
const MAX_GROWTH: usize = 1 << 20;

/// Bytes that a lane has read.
#[derive(Debug)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    reserved: Reservation,
    limit: usize,
}

impl ReadBuffer {
    /// An empty buffer for at most `limit` bytes.
    pub fn new(budget: &Arc<Budget>, limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            reserved: budget.empty_reservation(),
            limit,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of bytes that can be appended until the buffer holds `wanted`; grows a full buffer. A size that
    /// a device requests costs nothing until as many bytes were read.
    pub fn spare(&mut self, wanted: u64) -> usize {
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let wanted = wanted.min(self.limit).saturating_sub(self.bytes.len());
        let free = self.reserved.bytes() - self.bytes.len();
        if free > 0 || wanted == 0 {
            return free.min(wanted);
        }
        let more = self.bytes.len().clamp(MIN_GROWTH, MAX_GROWTH).min(wanted);
        if self.grow(more) { more } else { 0 }
    }

    /// Appends bytes, at most [`Self::spare`].
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a byte beyond the limit, such as a terminator. Returns whether there was memory for it.
    pub fn terminate(&mut self, byte: u8) -> bool {
        let fits = self.reserved.bytes() > self.bytes.len() || self.grow(1);
        if fits {
            self.bytes.push(byte);
        }
        fits
    }

    /// Releases unused memory.
    pub fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.reserved.shrink_to(self.bytes.len());
    }

    fn grow(&mut self, more: usize) -> bool {
        let before = self.reserved.bytes();
        if self.reserved.grow(more).is_err() {
            return false;
        }
        let allocated = self.bytes.try_reserve_exact(more).is_ok();
        if !allocated {
            // Only allocated memory is counted.
            self.reserved.shrink_to(before);
        }
        allocated
    }
}
