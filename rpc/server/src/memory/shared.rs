//! The memory itself, by its address. All that is unsafe about it is here and in `wide`.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Memory, Side, wide};
use crate::layout::PACKET_WORDS;
use crate::{Error, Layout};

/// Memory at an address, as a device sees it too.
// No `Clone`: a copy of what a `Region` lends would outlive its memory.
#[derive(Debug)]
pub struct Shared {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: all accesses are atomic.
unsafe impl Send for Shared {}
// SAFETY: all accesses are atomic.
unsafe impl Sync for Shared {}

impl Shared {
    /// Memory of `size` bytes that holds what `layout` says. For a client to begin with, all of it is
    /// zero.
    ///
    /// # Errors
    ///
    /// If it is smaller than [`Layout::size`] or lies at no multiple of 8.
    ///
    /// # Safety
    ///
    /// The memory stays readable and writable for as long as this value is there, or a [`Region`](super::Region)
    /// that was made of it. Nothing in this process makes references to it, or touches it but by atomic accesses.
    pub unsafe fn new(start: NonNull<u8>, size: usize, layout: Layout) -> Result<Self, Error> {
        if size < layout.size() || start.cast::<u64>().as_ptr() as usize % 8 != 0 {
            return Err(Error::Memory(size));
        }
        Ok(Self { start, layout })
    }

    /// The same memory: for who keeps both.
    pub(super) fn again(&self) -> Self {
        Self { ..*self }
    }

    /// Where it begins.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn mailbox(&self, of: Side, port: u32) -> &AtomicU32 {
        assert!(port < self.layout.ports());
        // The client reads `primary`.
        let mailboxes = match of {
            Side::Client => self.layout.primary(),
            Side::Server => self.layout.secondary(),
        };
        // SAFETY: within the memory, as `new` asks for it, and aligned.
        unsafe {
            self.start
                .add(mailboxes + 4 * port as usize)
                .cast()
                .as_ref()
        }
    }

    fn word_at(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset % 8 == 0 && offset < self.layout.size());
        // SAFETY: within the memory, as `new` asks for it: callers have checked port, lane and word.
        unsafe { self.start.add(offset).cast().as_ref() }
    }

    fn read(&self, port: u32, word: &AtomicU64) -> u64 {
        let value = word.load(Ordering::Relaxed);
        #[cfg(all(test, feature = "std"))]
        super::changing::was_read(port, word);
        let _ = port;
        value
    }

    fn header(&self, port: u32, word: usize) -> &AtomicU64 {
        assert!(port < self.layout.ports());
        self.word_at(self.layout.header(port) + 8 * word)
    }

    fn packet(&self, port: u32, lane: u32, word: usize) -> &AtomicU64 {
        assert!(port < self.layout.ports() && lane < self.layout.lanes() && word < PACKET_WORDS);
        self.word_at(self.layout.packet(port, lane) + 8 * word)
    }
}

impl Memory for Shared {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn inbox(&self, side: Side, port: u32) -> u32 {
        self.mailbox(side, port).load(Ordering::Acquire)
    }

    fn outbox(&self, side: Side, port: u32) -> u32 {
        self.mailbox(side.other(), port).load(Ordering::Relaxed)
    }

    fn set_outbox(&self, side: Side, port: u32, value: u32) {
        self.mailbox(side.other(), port)
            .store(value, Ordering::Release);
    }

    fn mask(&self, port: u32) -> u64 {
        self.read(port, self.header(port, 0))
    }

    fn opcode(&self, port: u32) -> u32 {
        // The opcode is the first half in memory, whatever the byte order; the rest is padding.
        let [a, b, c, d, ..] = self.read(port, self.header(port, 1)).to_ne_bytes();
        u32::from_ne_bytes([a, b, c, d])
    }

    fn set_header(&self, port: u32, mask: u64, opcode: u32) {
        self.header(port, 0).store(mask, Ordering::Relaxed);
        let [a, b, c, d] = opcode.to_ne_bytes();
        let word = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
        self.header(port, 1).store(word, Ordering::Relaxed);
    }

    fn word(&self, port: u32, lane: u32, word: usize) -> u64 {
        self.read(port, self.packet(port, lane, word))
    }

    fn set_word(&self, port: u32, lane: u32, word: usize, value: u64) {
        self.packet(port, lane, word)
            .store(value, Ordering::Relaxed);
    }

    fn changed(&self, first: u32, quiet: &[u32; 64]) -> u64 {
        if first + 64 <= self.layout.ports() {
            let inbox = self.mailbox(Side::Server, first).as_ptr();
            // SAFETY: 64 mailboxes from this one on are within the memory.
            if !unsafe { wide::differ(inbox, quiet) } {
                return 0;
            }
        }
        let last = self.layout.ports().min(first + 64);
        (first..last).zip(quiet).fold(0, |bits, (port, quiet)| {
            let now = self.mailbox(Side::Server, port).load(Ordering::Relaxed);
            bits | u64::from(now != *quiet) << (port - first)
        })
    }
}
