//! The packets of a port, one for each lane.

use crate::layout::{PACKET_SIZE, PACKET_WORDS};
use crate::memory::Memory;

/// The packets of the lanes that take part in a call. Those of other lanes are not touched.
///
/// Whatever is read may be anything: a device is not trusted. What was read twice may differ.
pub struct Packets<'m, M: Memory> {
    memory: &'m M,
    port: u32,
    mask: u64,
}

/// The numbers of the bits of a mask, in rising order.
#[derive(Clone, Copy, Debug)]
pub struct Lanes(u64);

impl Lanes {
    /// Those of a mask.
    pub const fn of(mask: u64) -> Self {
        Self(mask)
    }
}

impl Iterator for Lanes {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let lane = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (lane < 64).then_some(lane)
    }
}

impl<'m, M: Memory> Packets<'m, M> {
    pub(crate) fn new(memory: &'m M, port: u32, mask: u64) -> Self {
        let mask = mask & memory.layout().lane_mask();
        Self { memory, port, mask }
    }

    /// The lanes that take part.
    pub fn lanes(&self) -> Lanes {
        Lanes(self.mask)
    }

    /// A word of 8 bytes of a lane's packet, of the eight that it has.
    ///
    /// # Panics
    ///
    /// If the lane is none of the layout's, or there is no such word.
    pub fn word(&self, lane: u32, word: usize) -> u64 {
        self.memory.word(self.port, lane, word)
    }

    /// Writes a word of a lane's packet.
    ///
    /// # Panics
    ///
    /// As [`Self::word`] does.
    pub fn set_word(&mut self, lane: u32, word: usize, value: u64) {
        self.memory.set_word(self.port, lane, word, value);
    }

    /// The bytes of a lane's packet from a word on, as many as there are or `bytes` has room for.
    ///
    /// # Panics
    ///
    /// As [`Self::word`] does.
    pub fn read(&self, lane: u32, from: usize, bytes: &mut [u8]) {
        for (word, part) in (from..PACKET_WORDS).zip(bytes.chunks_mut(8)) {
            part.copy_from_slice(&self.word(lane, word).to_ne_bytes()[..part.len()]);
        }
    }

    /// Writes bytes into a lane's packet from a word on, as many as have room. What follows the last one
    /// in its word is zero then.
    ///
    /// # Panics
    ///
    /// As [`Self::word`] does.
    pub fn write(&mut self, lane: u32, from: usize, bytes: &[u8]) {
        for (word, part) in (from..PACKET_WORDS).zip(bytes.chunks(8)) {
            let mut value = [0; 8];
            value[..part.len()].copy_from_slice(part);
            self.set_word(lane, word, u64::from_ne_bytes(value));
        }
    }
}

/// How a message of any size goes in packets: its size and up to 56 bytes first, then 64 bytes each.
/// All lanes send as many packets as the one with the largest message needs.
pub(crate) struct Parts {
    largest: u64,
    next: u64,
}

/// Bytes of a message beside its size in the first packet.
pub(crate) const FIRST: u64 = (PACKET_SIZE - 8) as u64;

impl Parts {
    /// Behind the first packet.
    pub fn after_first(largest: u64) -> Self {
        Self {
            largest,
            next: FIRST,
        }
    }
}

/// Where in the messages the next packets begin.
impl Iterator for Parts {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let at = self.next;
        self.next = at.saturating_add(PACKET_SIZE as u64);
        (at < self.largest).then_some(at)
    }
}
