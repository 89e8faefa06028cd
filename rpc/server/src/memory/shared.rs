//! Memory by its address. All its unsafe code is in this file and in `vectors`.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::access::{Memory, Side};
use super::vectors;
use crate::error::Error;
use crate::layout::{Layout, PACKET_WORDS, Packet, PortIndex};
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

    #[inline]
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

    #[inline]
    fn word_at(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset % 8 == 0 && offset < self.layout.size());
        // SAFETY: within the memory, which `new` requires to be valid: callers have checked port, lane and word.
        unsafe { self.start.add(offset).cast().as_ref() }
    }

    #[inline]
    fn read(&self, port: PortIndex, word: &AtomicU64) -> u64 {
        let value = word.load(Ordering::Relaxed);
        #[cfg(all(test, feature = "std"))]
        super::racing::was_read(port, word);
        let _ = port;
        value
    }

    #[inline]
    fn header(&self, port: PortIndex, word: usize) -> &AtomicU64 {
        assert!(port.get() < self.layout.ports());
        self.word_at(self.layout.header(port) + 8 * word)
    }

    #[inline]
    fn packet(&self, port: PortIndex, lane: u32, word: usize) -> &AtomicU64 {
        let exists = port.get() < self.layout.ports() && lane < self.layout.lanes();
        assert!(exists && word < PACKET_WORDS);
        self.word_at(self.layout.packet(port, lane) + 8 * word)
    }

    /// Address of the packets of a port that has all lanes of the mask.
    #[inline]
    fn packets(&self, port: PortIndex, mask: u64) -> *mut Packet {
        assert!(port.get() < self.layout.ports() && mask & !self.layout.lane_mask() == 0);
        let offset = self.layout.packet(port, 0);
        // SAFETY: within the memory, which `new` requires to be valid.
        unsafe { self.start.add(offset) }.cast().as_ptr()
    }

    /// Address of the packet of a lane. Other accesses may race with those of the device.
    ///
    /// # Panics
    ///
    /// If the layout has no such lane.
    #[inline]
    pub fn packet_address(&self, port: PortIndex, lane: u32) -> NonNull<Packet> {
        assert!(port.get() < self.layout.ports() && lane < self.layout.lanes());
        let offset = self.layout.packet(port, lane);
        // SAFETY: within the memory, which `new` requires to be valid.
        unsafe { self.start.add(offset) }.cast()
    }
}

impl Memory for SharedMemory {
    #[inline]
    fn layout(&self) -> Layout {
        self.layout
    }

    #[inline]
    fn inbox(&self, side: Side, port: PortIndex) -> u32 {
        u32::from(self.mailbox(side, port).load(Ordering::Acquire) != 0)
    }

    #[inline]
    fn outbox(&self, side: Side, port: PortIndex) -> u32 {
        u32::from(self.mailbox(side.other(), port).load(Ordering::Relaxed) != 0)
    }

    #[inline]
    fn set_outbox(&self, side: Side, port: PortIndex, value: u32) {
        self.mailbox(side.other(), port)
            .store(value, Ordering::Release);
    }

    #[inline]
    fn mask(&self, port: PortIndex) -> u64 {
        self.read(port, self.header(port, 0))
    }

    #[inline]
    fn opcode(&self, port: PortIndex) -> u32 {
        // The opcode is the first half in memory, in either byte order; the rest is padding.
        let [a, b, c, d, ..] = self.read(port, self.header(port, 1)).to_ne_bytes();
        u32::from_ne_bytes([a, b, c, d])
    }

    #[inline]
    fn set_header(&self, port: PortIndex, mask: u64, opcode: u32) {
        self.header(port, 0).store(mask, Ordering::Relaxed);
        let [a, b, c, d] = opcode.to_ne_bytes();
        let word = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
        self.header(port, 1).store(word, Ordering::Relaxed);
    }

    #[inline]
    fn word(&self, port: PortIndex, lane: u32, word: usize) -> u64 {
        self.read(port, self.packet(port, lane, word))
    }

    #[inline]
    fn set_word(&self, port: PortIndex, lane: u32, word: usize, value: u64) {
        self.packet(port, lane, word)
            .store(value, Ordering::Relaxed);
    }

    #[inline]
    fn read_packets(&self, port: PortIndex, mask: u64, words: usize, packets: &mut [Packet; 64]) {
        let shared = self.packets(port, mask);
        for (first, count) in Runs(mask) {
            // SAFETY: `packets` has checked that the lanes exist, and a mask has 64 bits; code of this process accesses
            // shared packets word by word, atomically.
            unsafe {
                let (from, to) = (shared.add(first), packets.as_mut_ptr().add(first));
                if words <= 2 {
                    vectors::copy_two_words(from, to, count);
                } else {
                    vectors::copy(from, to, count);
                }
            }
        }
        #[cfg(all(test, feature = "std"))]
        for lane in crate::lanes::Lanes::from_mask(mask) {
            for word in 0..if words <= 2 { 2 } else { PACKET_WORDS } {
                super::racing::was_read(port, self.packet(port, lane, word));
            }
        }
    }

    #[inline]
    fn write_packets(&self, port: PortIndex, mask: u64, packets: &[Packet; 64]) {
        let shared = self.packets(port, mask);
        for (first, count) in Runs(mask) {
            // SAFETY: as above.
            unsafe {
                vectors::copy(packets.as_ptr().add(first), shared.add(first), count);
            }
        }
    }

    #[inline]
    fn nonzero_inboxes(&self, first: PortIndex) -> u64 {
        let inboxes = self.mailbox(Side::Server, first).as_ptr();
        if self.layout.ports() - first.get() >= 64 {
            // SAFETY: 64 mailboxes from this one on are within the memory.
            return unsafe { vectors::nonzero(inboxes) };
        }
        let end = self.layout.ports();
        (first.get()..end).fold(0, |bits, port| {
            let mailbox = self.mailbox(Side::Server, PortIndex::new(port));
            let nonzero = mailbox.load(Ordering::Relaxed) != 0;
            bits | u64::from(nonzero) << (port - first.get())
        })
    }
}

/// First bit and length of each run of bits that are set.
struct Runs(u64);

impl Iterator for Runs {
    type Item = (usize, usize);

    #[inline]
    fn next(&mut self) -> Option<(usize, usize)> {
        if self.0 == 0 {
            return None;
        }
        let first = self.0.trailing_zeros();
        let count = (self.0 >> first).trailing_ones();
        // The sum carries into the bit after the run.
        self.0 &= self.0.wrapping_add(1 << first);
        Some((first as usize, count as usize))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn runs_cover_a_mask() {
        let cases: [(u64, &[(usize, usize)]); 6] = [
            (0, &[]),
            (1, &[(0, 1)]),
            (u64::MAX, &[(0, 64)]),
            (0xffff_ffff, &[(0, 32)]),
            (0b1011_0010, &[(1, 1), (4, 2), (7, 1)]),
            (1 << 63 | 0b11, &[(0, 2), (63, 1)]),
        ];
        for (mask, expected) in cases {
            assert_eq!(Runs(mask).collect::<Vec<_>>(), expected, "{mask:#x}");
        }
    }
}
