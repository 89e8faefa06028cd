//! Packets of a port, one for each lane.

use crate::layout::{PACKET_SIZE, PACKET_WORDS, PortIndex};
use crate::memory::Memory;

/// Packets of the lanes that take part in a call. Packets of other lanes are not touched.
///
/// Any value may be read: a device is not trusted. Two reads of one word may differ.
/// ```
/// let mut handlers = gpurpc::server::Handlers::new();
/// handlers.on_request(0x7800_0001, |packets| {
///     for lane in packets.lanes() {
///         let mut name = [0; 16];
///         packets.read(lane, 0, &mut name);
///         packets.write(lane, 0, &name.map(|byte| byte.to_ascii_uppercase()));
///     }
/// })?;
/// # Ok::<(), gpurpc::Error>(())
/// ```
pub struct Packets<'m, M: Memory> {
    memory: &'m M,
    port: PortIndex,
    mask: u64,
}

/// Numbers of the bits set in a mask, in ascending order.
///
/// ```
/// assert_eq!(gpurpc::Lanes::from_mask(0b1010).collect::<Vec<u32>>(), [1, 3]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lanes(u64);

impl Lanes {
    /// The lanes whose bit is set in `mask`.
    pub const fn from_mask(mask: u64) -> Self {
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
    pub(crate) fn new(memory: &'m M, port: PortIndex, mask: u64) -> Self {
        let mask = mask & memory.layout().lane_mask();
        Self { memory, port, mask }
    }

    /// The participating lanes.
    pub fn lanes(&self) -> Lanes {
        Lanes(self.mask)
    }

    /// Reads one of the eight words of 8 bytes of a lane's packet.
    ///
    /// # Panics
    ///
    /// If the layout has no such lane, or `word` is 8 or more.
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

    /// Reads bytes of a lane's packet, starting at word `from`, until its end or the end of `bytes`.
    ///
    /// # Panics
    ///
    /// As [`Self::word`] does.
    pub fn read(&self, lane: u32, from: usize, bytes: &mut [u8]) {
        for (word, part) in (from..PACKET_WORDS).zip(bytes.chunks_mut(8)) {
            part.copy_from_slice(&self.word(lane, word).to_ne_bytes()[..part.len()]);
        }
    }

    /// Writes bytes into a lane's packet, starting at word `from`, as many as fit. The rest of the last
    /// word is zeroed.
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

/// Offsets in a message of any size at which its packets after the first one begin. The first packet holds
/// the size and up to 56 bytes, each further packet 64 bytes. All lanes send as many packets as the lane with
/// the largest message.
pub(crate) struct ChunkOffsets {
    largest: u64,
    next: u64,
}

/// Number of bytes of a message in its first packet, next to the size.
pub(crate) const FIRST_CHUNK: u64 = (PACKET_SIZE - 8) as u64;

impl ChunkOffsets {
    /// Offsets after the first packet, for the size of the largest message.
    pub fn after_first(largest: u64) -> Self {
        Self {
            largest,
            next: FIRST_CHUNK,
        }
    }
}

impl Iterator for ChunkOffsets {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let offset = self.next;
        self.next = offset.saturating_add(PACKET_SIZE as u64);
        (offset < self.largest).then_some(offset)
    }
}
