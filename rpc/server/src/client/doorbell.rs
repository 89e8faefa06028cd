//! Doorbell that a client on the host rings.

use alloc::sync::Arc;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::server::Doorbell;

/// Doorbell for clients on the host, which replaces the signal of a GPU runtime in tests. Clones share it.
///
/// The addresses come from the program, as for a [`Device`](crate::server::Device): a client that took them from
/// the shared memory, as clients on devices do, would trust whatever else writes there. No interrupt follows.
///
/// ```
/// use std::sync::Arc;
///
/// use gpurpc::client::{Client, HostDoorbell, HostLocks};
/// use gpurpc::memory::Region;
/// use gpurpc::server::{Device, Handlers, Limits};
/// use gpurpc::{Generation, Layout};
///
/// let memory = Region::zeroed(Layout::with_generation(Generation::LLVM_23, 8, 32)?)?;
/// let doorbell = HostDoorbell::new(7);
/// let client = Client::new(memory.clone(), HostLocks::new()).with_doorbell(doorbell.clone())?;
/// let mut handlers = Handlers::new();
/// handlers.on_warp(0x7800_0001, 0, |_| ())?;
/// let device = Device::new(memory, Arc::new(handlers), Limits::default());
/// let mut device = device.with_doorbell(doorbell.clone().into())?;
///
/// let mut call = client.open(0x7800_0001, 0b1);
/// assert_eq!((doorbell.open_calls(), doorbell.take_event()), (1, 7));
/// call.send(|_| ());
/// device.poll();
/// assert_eq!(doorbell.open_calls(), 0);
/// # Ok::<(), gpurpc::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct HostDoorbell(Doorbell);

impl HostDoorbell {
    /// A doorbell with a counter of 0 and an empty mailbox in memory of this process.
    pub fn new(event_id: u32) -> Self {
        let words = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let [value, mailbox] = words.each_ref().map(|word| NonNull::from(word).cast());
        // SAFETY: the doorbell keeps the words, and both ends access them only atomically.
        Self(unsafe { Doorbell::new(value, mailbox, event_id) }.with_owner(words))
    }

    /// A doorbell by the addresses of its counter and its mailbox, for a device of another process or a signal of a
    /// GPU runtime.
    ///
    /// # Safety
    ///
    /// As for [`Doorbell::new`], for both addresses, and while a client or a clone has this doorbell.
    pub const unsafe fn from_addresses(
        value: NonNull<u64>,
        mailbox: NonNull<u64>,
        event_id: u32,
    ) -> Self {
        // SAFETY: guaranteed by the caller.
        Self(unsafe { Doorbell::new(value, mailbox, event_id) })
    }

    /// Number of calls that clients have opened and that have neither ended nor been dropped.
    pub fn open_calls(&self) -> u64 {
        self.0.value().load(Ordering::Relaxed)
    }

    /// Empties the mailbox. Returns the event in it, or 0.
    pub fn take_event(&self) -> u64 {
        self.mailbox().swap(0, Ordering::Relaxed)
    }

    /// Adds an opened call. The mailboxes of its port order its packets, so LLVM's clients have no order here either.
    pub(super) fn ring(&self) {
        if self.0.value().fetch_add(1, Ordering::Relaxed) == 0 {
            let event = self.0.event_id().into();
            self.mailbox().store(event, Ordering::Relaxed);
        }
    }

    /// Subtracts a call that no server has seen.
    pub(super) fn cancel(&self) {
        self.0.count_ended_call();
    }

    fn mailbox(&self) -> &AtomicU64 {
        // SAFETY: the owner keeps the word, or the caller of `from_addresses` does.
        unsafe { self.0.mailbox().cast().as_ref() }
    }
}

/// The end of the server.
impl From<HostDoorbell> for Doorbell {
    fn from(doorbell: HostDoorbell) -> Self {
        doorbell.0
    }
}
