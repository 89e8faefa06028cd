//! Memory budget of the calls of a device.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::fault::Fault;

/// Limits of the calls of a device.
///
/// ```
/// use gpurpc::server::Limits;
///
/// let limits = Limits { memory: 64 << 20, ..Limits::default() };
/// assert_eq!(limits.message, 16 << 20);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum size in bytes of one message of one lane.
    pub message: usize,
    /// Maximum number of bytes of all messages of all calls of a device, and of data derived from them. Each
    /// call also uses some kilobytes, independent of the client, that are not counted.
    pub memory: usize,
    /// Size in bytes of the stack of a blocking handler, at least 4096. The stacks of calls that wait count as
    /// [`Self::memory`]: they limit the number of these calls.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 16 << 20,
            memory: 256 << 20,
            stack: 128 << 10,
        }
    }
}

/// Remaining part of a device's [`Limits::memory`].
///
/// ```
/// use gpurpc::server::{Fault, OpenCall, Reservation};
///
/// /// Fails, which drops the call, if the client requests more than the device's calls may hold.
/// fn reserve(call: &OpenCall<'_>, size: usize) -> Result<Reservation, Fault> {
///     call.budget().reserve(size)
/// }
/// ```
#[derive(Debug)]
pub struct Budget {
    pub(crate) limits: Limits,
    used: AtomicUsize,
    /// Whether the device is gone.
    closed: AtomicBool,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            used: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// The limits that the budget started with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Number of bytes that are reserved now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Refuses further reservations: what its calls have queued on other threads takes no more memory.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Reserves a number of bytes.
    ///
    /// # Errors
    ///
    /// [`Fault::OutOfMemory`] if fewer bytes remain, or the device is gone: dropped or removed from its server.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reservation, Fault> {
        self.try_use(bytes)?;
        Ok(Reservation {
            budget: Arc::clone(self),
            bytes,
        })
    }

    /// A reservation of no bytes, to be grown.
    #[cfg(feature = "std")]
    pub(crate) fn empty_reservation(self: &Arc<Self>) -> Reservation {
        Reservation {
            budget: Arc::clone(self),
            bytes: 0,
        }
    }

    fn try_use(&self, bytes: usize) -> Result<(), Fault> {
        let limit = self.limits.memory;
        let closed = self.closed.load(Ordering::Relaxed);
        // Relaxed: no other memory depends on the number.
        let reserved = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes)
                    .filter(|sum| *sum <= limit && !closed)
            });
        match reserved {
            Ok(_) => Ok(()),
            Err(_) => Err(Fault::OutOfMemory {
                size: bytes as u64,
                limit,
            }),
        }
    }
}

/// Bytes of a device's [`Limits::memory`], released when this is dropped. Returned by [`Budget::reserve`].
///
/// ```
/// use std::sync::Arc;
///
/// use gpurpc::server::{Budget, Fault, Reservation};
///
/// /// A buffer that counts as long as it exists.
/// struct Buffer {
///     bytes: Vec<u8>,
///     reserved: Reservation,
/// }
///
/// fn buffer(budget: &Arc<Budget>, size: usize) -> Result<Buffer, Fault> {
///     let reserved = budget.reserve(size)?;
///     Ok(Buffer { bytes: vec![0; size], reserved })
/// }
/// ```
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

#[cfg(feature = "std")]
impl Reservation {
    /// The budget that the bytes are reserved from.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Number of reserved bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves `more` bytes in addition.
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), Fault> {
        self.budget.try_use(more)?;
        self.bytes += more;
        Ok(())
    }

    /// Releases all but `size` bytes.
    pub(crate) fn shrink_to(&mut self, size: usize) {
        let excess = self.bytes.saturating_sub(size);
        self.budget.used.fetch_sub(excess, Ordering::Relaxed);
        self.bytes -= excess;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
