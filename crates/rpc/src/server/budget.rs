//! How much memory the calls of a device hold.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::Fault;

/// What a device's calls may hold at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of one message of one lane.
    pub message: usize,
    /// Bytes of all messages of all calls of a device.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 16 << 20,
            memory: 256 << 20,
        }
    }
}

/// What is left of a device's memory.
#[derive(Debug)]
pub(crate) struct Budget {
    pub limits: Limits,
    used: AtomicUsize,
}

impl Budget {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            used: AtomicUsize::new(0),
        }
    }

    /// Takes so many bytes.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reservation, Fault> {
        let limit = self.limits.memory;
        let more = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= limit);
        // Nothing else depends on the number.
        let reserved = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        match reserved {
            Ok(_) => Ok(Reservation {
                of: Arc::clone(self),
                bytes,
            }),
            Err(_) => Err(Fault::Memory {
                size: bytes as u64,
                limit,
            }),
        }
    }
}

/// Bytes that are given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    of: Arc<Budget>,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.of.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
