//! Memory by its address. All its unsafe code is in this file and in `simd_scan`.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::access::{Memory, Side};
use super::simd_scan;
use crate::error::Error;
use crate::layout::{Layout, PACKET_WORDS, PortIndex};
use crate::server::Doorbell;

/// Memory at an address, shared with a device.
///
/// ```
/// use std::alloc::{alloc_zeroed, dealloc};
/// use std::ptr::NonNull;
///
/// use gpurpc::memory::{Region, SharedMemory};
/// use gpurpc::{Error, Layout};
///
/// let layout = Layout::new(8, 32)?;
/// // Replaces memory that a GPU runtime allocates for the host and the device.
/// let block = std::alloc::Layout::from_size_align(layout.size(), 64).unwrap();
/// // SAFETY: the layout is not empty; only the region uses the memory, and releases it once.
/// let start = NonNull::new(unsafe { alloc_zeroed(block) }).unwrap();
/// let memory = unsafe { SharedMemory::new(start, layout.size(), layout) }?;
/// let region = Region::new(memory, move |start| unsafe { dealloc(start.as_ptr(), block) });
/// # Ok::<(), Error>(())
/// ```
// No `Clone`: a clone of the memory that a `Region` lends could outlive the region.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: all accesses are atomic.
unsafe impl Send for SharedMemory {}
// SAFETY: all accesses are atomic.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Memory of `size` bytes with this layout. Before its first client all of it is zero.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidMemory`] if it is smaller than [`Layout::size`] or not aligned to
    /// [`Generation::alignment`](crate::Generation::alignment).
    ///
    /// # Safety
    ///
    /// The memory stays readable and writable while this value, or a [`Region`](super::Region) made from it,
    /// exists. Nothing in this process creates references to it or accesses it other than atomically.
    pub unsafe fn new(start: NonNull<u8>, size: usize, layout: Layout) -> Result<Self, Error> {
        let is_aligned = start.as_ptr().addr() % layout.generation().alignment == 0;
        if size < layout.size() || !is_aligned {
            return Err(Error::InvalidMemory(size));
        }
        Ok(Self { start, layout })
    }

    /// A second handle to the memory, for an owner that keeps both.
    pub(super) fn duplicate(&self) -> Self {
        Self { ..*self }
    }

    /// Start address of the memory.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Writes a doorbell, for clients to ring.
    pub(crate) fn set_doorbell(&self, doorbell: &Doorbell) -> Result<(), Error> {
        if !self.layout.generation().has_doorbell() {
            return Err(Error::NoDoorbell);
        }
        self.write_doorbell(doorbell.words());
        Ok(())
    }

    /// Removes the doorbell, if the generation has one.
    pub(crate) fn clear_doorbell(&self) {
        if self.layout.generation().has_doorbell() {
            self.write_doorbell([0; 3]);
        }
    }

    /// Writes the members `value`, `mailbox` and `event_id`. Clients test the first one, which is written
    /// last.
    fn write_doorbell(&self, words: [u64; 3]) {
        for (at, word) in words.into_iter().enumerate().rev() {
            self.word_at(8 * at).store(word, Ordering::Release);
        }
    }

    fn mailbox(&self, reader: Side, port: PortIndex) -> &AtomicU32 {
        assert!(port.get() < self.layout.ports());
        // The client reads `primary`.
        let mailboxes = match reader {
            Side::Client => self.layout.primary(),
            Side::Server => self.layout.secondary(),
        };
        // SAFETY: within the memory, which `new` requires to be valid, and aligned.
        unsafe { self.start.add(mailboxes + 4 * port.slot()).cast().as_ref() }
    }

    fn word_at(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset % 8 == 0 && offset < self.layout.size());
        // SAFETY: within the memory, which `new` requires to be valid: callers have checked port, lane and word.
        unsafe { self.start.add(offset).cast().as_ref() }
    }

    fn read(&self, port: PortIndex, word: &AtomicU64) -> u64 {
        let value = word.load(Ordering::Relaxed);
        #[cfg(all(test, feature = "std"))]
        super::racing::was_read(port, word);
        let _ = port;
        value
    }

    fn header(&self, port: PortIndex, word: usize) -> &AtomicU64 {
        assert!(port.get() < self.layout.ports());
        self.word_at(self.layout.header(port) + 8 * word)
    }

    fn packet(&self, port: PortIndex, lane: u32, word: usize) -> &AtomicU64 {
        let exists = port.get() < self.layout.ports() && lane < self.layout.lanes();
        assert!(exists && word < PACKET_WORDS);
        self.word_at(self.layout.packet(port, lane) + 8 * word)
    }
}

impl Memory for SharedMemory {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn inbox(&self, side: Side, port: PortIndex) -> u32 {
        self.mailbox(side, port).load(Ordering::Acquire)
    }

    fn outbox(&self, side: Side, port: PortIndex) -> u32 {
        self.mailbox(side.other(), port).load(Ordering::Relaxed)
    }

    fn set_outbox(&self, side: Side, port: PortIndex, value: u32) {
        self.mailbox(side.other(), port)
            .store(value, Ordering::Release);
    }

    fn mask(&self, port: PortIndex) -> u64 {
        self.read(port, self.header(port, 0))
    }

    fn opcode(&self, port: PortIndex) -> u32 {
        // The opcode is the first half in memory, in either byte order; the rest is padding.
        let [a, b, c, d, ..] = self.read(port, self.header(port, 1)).to_ne_bytes();
        u32::from_ne_bytes([a, b, c, d])
    }

    fn set_header(&self, port: PortIndex, mask: u64, opcode: u32) {
        self.header(port, 0).store(mask, Ordering::Relaxed);
        let [a, b, c, d] = opcode.to_ne_bytes();
        let word = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
        self.header(port, 1).store(word, Ordering::Relaxed);
    }

    fn word(&self, port: PortIndex, lane: u32, word: usize) -> u64 {
        self.read(port, self.packet(port, lane, word))
    }

    fn set_word(&self, port: PortIndex, lane: u32, word: usize, value: u64) {
        self.packet(port, lane, word)
            .store(value, Ordering::Relaxed);
    }

    fn changed_inboxes(&self, first: PortIndex, expected: &[u32; 64]) -> u64 {
        if first.get() + 64 <= self.layout.ports() {
            let inbox = self.mailbox(Side::Server, first).as_ptr();
            // SAFETY: 64 mailboxes from this one on are within the memory.
            if !unsafe { simd_scan::any_differs(inbox, expected) } {
                return 0;
            }
        }
        let ports = first.get()..self.layout.ports().min(first.get() + 64);
        ports.zip(expected).fold(0, |bits, (port, expected)| {
            let mailbox = self.mailbox(Side::Server, PortIndex::new(port));
            let changed = mailbox.load(Ordering::Relaxed) != *expected;
            bits | u64::from(changed) << (port - first.get())
        })
    }
}
