//! Counter of open calls by which a device wakes a waiting server.

use alloc::sync::Arc;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

/// Doorbell of a device, for clients of LLVM 23: a counter of open calls, and the interrupt for its first
/// call. Of an HSA signal these are the addresses of `value` and of `event_mailbox_ptr`, and `event_id`.
///
/// A client adds 1 to the counter when it opens a call, **before** the first packet is in the memory; if the
/// counter was 0, it stores `event_id` in the mailbox and raises an interrupt. The server subtracts 1 when a
/// call has ended or was dropped. So a host may wait for the counter only while it is 0, and has to poll
/// while any call is open.
///
/// ```
/// use std::ptr::NonNull;
/// use std::sync::Arc;
/// use std::sync::atomic::AtomicU64;
///
/// use gpurpc::memory::Region;
/// use gpurpc::server::{Device, Doorbell, Handlers, Limits};
/// use gpurpc::{Generation, Layout};
///
/// // Replaces a signal that a GPU runtime creates.
/// static SIGNAL: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
/// let [value, mailbox] = SIGNAL.each_ref().map(|word| NonNull::new(word.as_ptr()).unwrap());
/// // SAFETY: statics are always valid, and these are only accessed atomically.
/// let doorbell = unsafe { Doorbell::new(value, mailbox, 7) };
/// let memory = Region::zeroed(Layout::with_generation(Generation::LLVM_23, 8, 64)?)?;
/// let handlers = Arc::new(Handlers::new());
/// let device = Device::new(memory, handlers, Limits::default());
/// let device = device.with_doorbell(doorbell)?;
/// # Ok::<(), gpurpc::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Doorbell {
    value: NonNull<u64>,
    mailbox: NonNull<u64>,
    event_id: u32,
    /// Counter and mailbox, if they are memory of this library.
    owner: Option<Arc<[AtomicU64; 2]>>,
}

// SAFETY: the counter is only accessed atomically, the mailbox never.
unsafe impl Send for Doorbell {}
// SAFETY: as above.
unsafe impl Sync for Doorbell {}

impl Doorbell {
    /// A doorbell by the addresses of its counter and its mailbox, which must be the same on the host and on
    /// the device. The server never accesses the mailbox. Both are required, because clients of LLVM 23.1
    /// store to the mailbox whenever there is a counter (llvm-project#214037).
    ///
    /// # Safety
    ///
    /// `value` is aligned to 8, stays readable and writable while a device with this doorbell exists, and is
    /// accessed only atomically by this process.
    pub const unsafe fn new(value: NonNull<u64>, mailbox: NonNull<u64>, event_id: u32) -> Self {
        Self {
            value,
            mailbox,
            event_id,
            owner: None,
        }
    }

    /// Keeps the memory of the counter and the mailbox.
    pub(crate) fn with_owner(mut self, words: Arc<[AtomicU64; 2]>) -> Self {
        self.owner = Some(words);
        self
    }

    /// The counter of open calls.
    pub(crate) fn value(&self) -> &AtomicU64 {
        // SAFETY: valid, aligned and atomic, as `new` requires.
        unsafe { self.value.cast().as_ref() }
    }

    /// Address of the mailbox.
    pub(crate) fn mailbox(&self) -> NonNull<u64> {
        self.mailbox
    }

    /// The event of the first call.
    pub(crate) fn event_id(&self) -> u32 {
        self.event_id
    }

    /// The members in the shared memory: `value`, `mailbox`, and `event_id` with its padding.
    pub(crate) fn words(&self) -> [u64; 3] {
        let [a, b, c, d] = self.event_id.to_ne_bytes();
        [
            self.value.as_ptr().expose_provenance() as u64,
            self.mailbox.as_ptr().expose_provenance() as u64,
            u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]),
        ]
    }

    /// Subtracts an ended call.
    pub(crate) fn count_ended_call(&self) {
        self.value().fetch_sub(1, Ordering::Relaxed);
    }
}
