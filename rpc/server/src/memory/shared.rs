//! Memory by its address. All its unsafe code is in this file and in `vectors`.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::access::{Memory, PortMemory, Side};
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
    // Start of each part, computed once.
    primary: NonNull<AtomicU32>,
    secondary: NonNull<AtomicU32>,
    headers: NonNull<AtomicU64>,
    packets: NonNull<Packet>,
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
        // SAFETY: offsets within the memory.
        let part = |offset| unsafe { start.add(offset) };
        Ok(Self {
            start,
            layout,
            primary: part(layout.primary()).cast(),
            secondary: part(layout.secondary()).cast(),
            headers: part(layout.header(PortIndex::new(0))).cast(),
            packets: part(layout.packet(PortIndex::new(0), 0)).cast(),
        })
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
        for (index, word) in words.into_iter().enumerate().rev() {
            // SAFETY: a generation with a doorbell begins with these words.
            let member = unsafe { self.start.cast::<AtomicU64>().add(index).as_ref() };
            member.store(word, Ordering::Release);
        }
    }

    #[inline]
    fn mailboxes(&self, reader: Side) -> NonNull<AtomicU32> {
        match reader {
            Side::Client => self.primary,
            Side::Server => self.secondary,
        }
    }

    #[inline]
    fn mailbox(&self, reader: Side, port: PortIndex) -> &AtomicU32 {
        assert!(port.get() < self.layout.ports());
        // SAFETY: within the memory, which `new` requires to be valid, and aligned.
        unsafe { self.mailboxes(reader).add(port.slot()).as_ref() }
    }

    /// The mask, and the word that begins with the opcode.
    #[inline]
    fn header(&self, port: PortIndex) -> [&AtomicU64; 2] {
        assert!(port.get() < self.layout.ports());
        // SAFETY: as for mailboxes; each header has two words.
        unsafe {
            let mask = self.headers.add(2 * port.slot());
            [mask.as_ref(), mask.add(1).as_ref()]
        }
    }
}

#[inline]
fn read(port: PortIndex, word: &AtomicU64) -> u64 {
    let value = word.load(Ordering::Relaxed);
    #[cfg(all(test, feature = "std"))]
    super::racing::was_read(port, word);
    let _ = port;
    value
}

impl Memory for SharedMemory {
    type Port<'m> = SharedPort<'m>;

    #[inline]
    fn layout(&self) -> Layout {
        self.layout
    }

    #[inline]
    fn port(&self, port: PortIndex) -> SharedPort<'_> {
        assert!(port.get() < self.layout.ports());
        let lanes = self.layout.lanes();
        SharedPort {
            // SAFETY: within the memory, which `new` requires to be valid.
            packets: unsafe { self.packets.add(port.slot() * lanes as usize) },
            lanes,
            index: port,
            memory: PhantomData,
        }
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
        let [mask, _] = self.header(port);
        read(port, mask)
    }

    #[inline]
    fn opcode(&self, port: PortIndex) -> u32 {
        // The opcode is the first half in memory, in either byte order; the rest is padding.
        let [_, opcode] = self.header(port);
        let [a, b, c, d, ..] = read(port, opcode).to_ne_bytes();
        u32::from_ne_bytes([a, b, c, d])
    }

    #[inline]
    fn set_header(&self, port: PortIndex, mask: u64, opcode: u32) {
        let header = self.header(port);
        header[0].store(mask, Ordering::Relaxed);
        let [a, b, c, d] = opcode.to_ne_bytes();
        let word = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
        header[1].store(word, Ordering::Relaxed);
    }

    #[inline]
    fn nonzero_inboxes(&self, first: PortIndex) -> u64 {
        let inboxes = self.mailbox(Side::Server, first).as_ptr();
        let count = self.layout.ports() - first.get();
        if count >= 64 {
            // SAFETY: 64 mailboxes from this one on are within the memory.
            return unsafe { vectors::nonzero(inboxes) };
        }
        (0..count).fold(0, |bits, index| {
            // SAFETY: as many mailboxes follow.
            let mailbox = unsafe { AtomicU32::from_ptr(inboxes.add(index as usize)) };
            bits | u64::from(mailbox.load(Ordering::Acquire) != 0) << index
        })
    }
}

/// Packets of a port of [`SharedMemory`].
///
/// ```
/// use gpurpc::memory::{Memory, Region};
/// use gpurpc::{Layout, PortIndex};
///
/// let memory = Region::zeroed(Layout::new(8, 32)?)?;
/// let (first, last) = (memory.port(PortIndex::new(7)).address(0), memory.port(PortIndex::new(7)).address(31));
/// assert_eq!(last.as_ptr().addr() - first.as_ptr().addr(), 31 * 64);
/// # Ok::<(), gpurpc::Error>(())
/// ```
#[derive(Debug)]
pub struct SharedPort<'m> {
    /// The packets of all lanes: valid as long as the memory.
    packets: NonNull<Packet>,
    lanes: u32,
    index: PortIndex,
    memory: PhantomData<&'m SharedMemory>,
}

impl SharedPort<'_> {
    /// Address of the packet of a lane. Other accesses may race with those of the device.
    ///
    /// # Panics
    ///
    /// If the layout has no such lane.
    #[inline]
    pub fn address(&self, lane: u32) -> NonNull<Packet> {
        assert!(lane < self.lanes);
        // SAFETY: the port has this lane.
        unsafe { self.packets.add(lane as usize) }
    }

    #[inline]
    fn word_of(&self, lane: u32, word: usize) -> &AtomicU64 {
        assert!(word < PACKET_WORDS);
        // SAFETY: the packet has this word; the memory is valid and aligned.
        unsafe { self.address(lane).cast::<AtomicU64>().add(word).as_ref() }
    }

    /// Calls `copy` with the address of the packets, and the first lane and length of each run of lanes.
    #[inline(always)]
    fn for_each_run(&self, mask: u64, mut copy: impl FnMut(NonNull<Packet>, usize, usize)) {
        let all_lanes = u64::MAX >> (64 - self.lanes);
        if mask == all_lanes {
            // The usual case: addresses and sizes do not depend on the mask, for which a load may still wait.
            copy(self.packets, 0, self.lanes as usize);
        } else {
            assert!(mask & !all_lanes == 0);
            for_each_run_of(mask, |first, count| copy(self.packets, first, count));
        }
    }
}

/// Calls a function for each run of lanes. Not inlined: warps are rarely divergent.
#[inline(never)]
fn for_each_run_of(mask: u64, mut work: impl FnMut(usize, usize)) {
    Runs(mask).for_each(|(first, count)| work(first, count));
}

impl PortMemory for SharedPort<'_> {
    #[inline]
    fn word(&self, lane: u32, word: usize) -> u64 {
        read(self.index, self.word_of(lane, word))
    }

    #[inline]
    fn set_word(&self, lane: u32, word: usize, value: u64) {
        self.word_of(lane, word).store(value, Ordering::Relaxed);
    }

    #[inline]
    fn packet(&self, lane: u32) -> Packet {
        let mut packet = [0; PACKET_WORDS];
        // SAFETY: `address` has checked the lane; code of this process accesses shared packets word by word, atomically.
        unsafe { vectors::copy(self.address(lane).as_ptr(), &mut packet, 1) };
        #[cfg(all(test, feature = "std"))]
        (0..PACKET_WORDS)
            .for_each(|word| super::racing::was_read(self.index, self.word_of(lane, word)));
        packet
    }

    #[inline]
    fn set_packet(&self, lane: u32, packet: &Packet) {
        // SAFETY: as above.
        unsafe { vectors::copy(packet, self.address(lane).as_ptr(), 1) };
    }

    #[inline]
    fn read_packets(&self, mask: u64, words: usize, packets: &mut [Packet; 64]) {
        self.for_each_run(mask, |shared, first, count| {
            // SAFETY: the port has these lanes, and a mask has 64 bits; code of this process accesses shared packets
            // word by word, atomically.
            unsafe {
                let (from, to) = (shared.add(first).as_ptr(), packets.as_mut_ptr().add(first));
                if words <= 2 {
                    vectors::copy_two_words(from, to, count);
                } else {
                    vectors::copy(from, to, count);
                }
            }
        });
        #[cfg(all(test, feature = "std"))]
        for lane in crate::lanes::Lanes::from_mask(mask) {
            for word in 0..if words <= 2 { 2 } else { PACKET_WORDS } {
                super::racing::was_read(self.index, self.word_of(lane, word));
            }
        }
    }

    #[inline]
    fn write_packets(&self, mask: u64, packets: &[Packet; 64]) {
        self.for_each_run(mask, |shared, first, count| {
            // SAFETY: as above.
            unsafe {
                vectors::copy(
                    packets.as_ptr().add(first),
                    shared.add(first).as_ptr(),
                    count,
                )
            }
        });
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
