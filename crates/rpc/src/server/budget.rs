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
        self.take(bytes)?;
        Ok(Reservation {
            of: Arc::clone(self),
            bytes,
        })
    }

    /// Takes nothing yet.
    #[cfg(feature = "std")]
    pub fn none(self: &Arc<Self>) -> Reservation {
        Reservation {
            of: Arc::clone(self),
            bytes: 0,
        }
    }

    fn take(&self, bytes: usize) -> Result<(), Fault> {
        let limit = self.limits.memory;
        let more = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= limit);
        // Nothing else depends on the number.
        let reserved = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let refused = Fault::Memory {
            size: bytes as u64,
            limit,
        };
        reserved.map(drop).map_err(|_| refused)
    }
}

/// Bytes that are given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    of: Arc<Budget>,
    bytes: usize,
}

#[cfg(feature = "std")]
impl Reservation {
    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes so many more.
    pub fn grow(&mut self, more: usize) -> Result<(), Fault> {
        self.of.take(more)?;
        self.bytes += more;
        Ok(())
    }

    /// Gives back what is more than so many.
    pub fn shrink(&mut self, to: usize) {
        let more = self.bytes.saturating_sub(to);
        self.of.used.fetch_sub(more, Ordering::Relaxed);
        self.bytes -= more;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.of.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
