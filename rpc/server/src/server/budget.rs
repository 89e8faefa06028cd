//! How much memory the calls of a device hold.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::Fault;

/// What a device's calls may hold at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of one message of one lane.
    pub message: usize,
    /// Bytes of all messages of all calls of a device, and of what is made from them. What each call takes
    /// beside that does not depend on what a client says: some kilobytes.
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

/// What is left of a device's [`Limits::memory`].
#[derive(Debug)]
pub struct Budget {
    pub(crate) limits: Limits,
    used: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            used: AtomicUsize::new(0),
        }
    }

    /// What there was in the beginning.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Takes so many bytes.
    ///
    /// # Errors
    ///
    /// [`Fault::Memory`] if there are not as many left.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reservation, Fault> {
        self.take(bytes)?;
        Ok(Reservation {
            of: Arc::clone(self),
            bytes,
        })
    }

    /// Takes nothing yet.
    #[cfg(feature = "std")]
    pub(crate) fn none(self: &Arc<Self>) -> Reservation {
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

/// Bytes of a device's [`Limits::memory`] that are given back when this is dropped.
#[derive(Debug)]
pub struct Reservation {
    of: Arc<Budget>,
    bytes: usize,
}

#[cfg(feature = "std")]
impl Reservation {
    /// How many there are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes so many more.
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), Fault> {
        self.of.take(more)?;
        self.bytes += more;
        Ok(())
    }

    /// Gives back what is more than so many.
    pub(crate) fn shrink(&mut self, to: usize) {
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
