//! Packets of a port, one for each lane.

use core::fmt;
use core::hint::black_box;
use core::ptr::NonNull;

use crate::lanes::Lanes;
use crate::layout::{PACKET_SIZE, PACKET_WORDS, Packet, PortIndex};
use crate::memory::{Memory, PortMemory, SharedMemory};

/// Packets of the lanes that take part in a call. Packets of other lanes are not touched.
///
/// Any value may be read: a device is not trusted. Two reads of one word may differ.
///
/// ```
/// use gpurpc::Packets;
/// use gpurpc::memory::Memory;
///
/// /// Sends the name of each lane back, in upper case.
/// fn shout<M: Memory>(packets: &mut Packets<'_, M>) {
///     for lane in packets.lanes() {
///         let mut name = [0; 16];
///         packets.read(lane, 0, &mut name);
///         packets.write(lane, 0, &name.map(|byte| byte.to_ascii_uppercase()));
///     }
/// }
/// ```
pub struct Packets<'m, M: Memory + 'm> {
    port: M::Port<'m>,
    width: u32,
    mask: u64,
}

impl<'m, M: Memory> Packets<'m, M> {
    /// Packets of those lanes of a mask that the port has.
    #[inline]
    pub(crate) fn new(memory: &'m M, port: PortIndex, mask: u64) -> Self {
        Self {
            port: memory.port(port),
            width: memory.layout().lanes(),
            mask: mask & memory.layout().lane_mask(),
        }
    }

    /// Packets of the lanes of a mask in a header.
    ///
    /// The header and the packets were written by the client: an access waits for the other processor or for the bus.
    /// Usually all lanes take part. The processor predicts this comparison, and accesses the packets while it waits for
    /// the header, because the mask that it uses does not depend on it. Otherwise a call of one lane takes half as long
    /// again.
    #[inline]
    pub(crate) fn predicted(memory: &'m M, port: PortIndex, mask: u64) -> Self {
        let layout = memory.layout();
        let mask = if mask == layout.lane_mask() {
            // Otherwise the compiler would use the mask from the header, as both are the same here.
            u64::MAX >> (64 - black_box(layout.lanes()))
        } else {
            mask & layout.lane_mask()
        };
        Self {
            port: memory.port(port),
            width: layout.lanes(),
            mask,
        }
    }

    /// The participating lanes.
    #[inline]
    pub fn lanes(&self) -> Lanes {
        Lanes::from_mask(self.mask)
    }

    /// Bit mask of the participating lanes.
    #[inline]
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Number of lanes of the port, of which some participate.
    #[inline]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Reads one of the eight words of 8 bytes of a lane's packet.
    ///
    /// # Panics
    ///
    /// If the layout has no such lane, or `word` is 8 or more.
    #[inline]
    pub fn word(&self, lane: u32, word: usize) -> u64 {
        self.port.word(lane, word)
    }

    /// Writes a word of a lane's packet.
    ///
    /// # Panics
    ///
    /// As [`Self::word`] does.
    #[inline]
    pub fn set_word(&mut self, lane: u32, word: usize, value: u64) {
        self.port.set_word(lane, word, value);
    }

    /// Writes the size and the beginning of a message into the packet of each lane.
    pub(crate) fn write_first_chunks<'a>(&mut self, message: impl Fn(u32) -> &'a [u8]) {
        for lane in self.lanes() {
            let bytes = message(lane);
            self.set_word(lane, 0, bytes.len() as u64);
            self.write(lane, 1, bytes);
        }
    }

    /// Writes the part of a message from `offset` on into the packet of each lane.
    pub(crate) fn write_chunks<'a>(&mut self, offset: usize, message: impl Fn(u32) -> &'a [u8]) {
        for lane in self.lanes() {
            let rest = message(lane).get(offset..).unwrap_or_default();
            self.write(lane, 0, rest);
        }
    }

    /// Copies at least the first `words` words of the packets of all participating lanes: each word is read once.
    #[inline]
    pub(crate) fn read_all(&self, words: usize, copies: &mut PacketCopies) {
        copies.mask = self.mask;
        if words == 0 {
            return;
        }
        self.port
            .read_packets(self.mask, words, &mut copies.packets);
    }

    /// Writes copies to the packets of all participating lanes.
    #[inline]
    pub(crate) fn write_all(&mut self, copies: &PacketCopies) {
        self.port.write_packets(self.mask, &copies.packets);
    }

    /// Reads bytes of a lane's packet, starting at word `from`, until its end or the end of `bytes`.
    ///
    /// # Panics
    ///
    /// As [`Self::word`] does.
    #[inline]
    pub fn read(&self, lane: u32, from: usize, bytes: &mut [u8]) {
        if let (0, Some(bytes)) = (from, bytes.first_chunk_mut::<PACKET_SIZE>()) {
            let words = self.port.packet(lane);
            for (part, word) in bytes.chunks_exact_mut(8).zip(words) {
                part.copy_from_slice(&word.to_ne_bytes());
            }
            return;
        }
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
    #[inline]
    pub fn write(&mut self, lane: u32, from: usize, bytes: &[u8]) {
        if let (0, Some(bytes)) = (from, bytes.first_chunk::<PACKET_SIZE>()) {
            let mut words = [0; PACKET_WORDS];
            for (word, part) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = part.try_into().map_or(0, u64::from_ne_bytes);
            }
            return self.port.set_packet(lane, &words);
        }
        for (word, part) in (from..PACKET_WORDS).zip(bytes.chunks(8)) {
            let mut value = [0; 8];
            value[..part.len()].copy_from_slice(part);
            self.set_word(lane, word, u64::from_ne_bytes(value));
        }
    }
}

impl Packets<'_, SharedMemory> {
    /// Address of the packet of a lane, for a program that trusts the device: other accesses may race with the
    /// device's.
    ///
    /// # Panics
    ///
    /// If the layout has no such lane.
    #[inline]
    pub fn address(&self, lane: u32) -> NonNull<Packet> {
        self.port.address(lane)
    }
}

/// Private copies of the packets of a call, which no device changes.
///
/// ```
/// use gpurpc::server::Handlers;
///
/// let mut handlers = Handlers::new();
/// handlers.on_warp(0x7800_0007, 1, |warp| {
///     for lane in warp.lanes() {
///         let side = warp.input().get(lane)[0];
///         // The word that was checked is the one that is used.
///         warp.set_word(lane, 1, side.checked_mul(side).unwrap_or(0));
///     }
/// })?;
/// # Ok::<(), gpurpc::Error>(())
/// ```
pub struct PacketCopies {
    packets: [Packet; 64],
    mask: u64,
}

impl PacketCopies {
    /// No lanes.
    pub(crate) const fn new() -> Self {
        Self {
            packets: [[0; PACKET_WORDS]; 64],
            mask: 0,
        }
    }

    /// The participating lanes.
    #[inline]
    pub fn lanes(&self) -> Lanes {
        Lanes::from_mask(self.mask)
    }

    /// Bit mask of the participating lanes.
    #[inline]
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Address of the packets of all 64 lanes.
    #[inline]
    pub fn as_ptr(&self) -> *const Packet {
        self.packets.as_ptr()
    }

    /// The packet of a lane. That of a lane that does not participate has arbitrary contents.
    ///
    /// # Panics
    ///
    /// If `lane` is 64 or more.
    #[inline]
    pub fn get(&self, lane: u32) -> &Packet {
        &self.packets[lane as usize]
    }

    /// The packet of a lane, for changes in place.
    ///
    /// # Panics
    ///
    /// As [`Self::get`] does.
    #[inline]
    pub fn get_mut(&mut self, lane: u32) -> &mut Packet {
        &mut self.packets[lane as usize]
    }
}

impl fmt::Debug for PacketCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes = self.lanes().map(|lane| (lane, self.get(lane)));
        f.debug_map().entries(lanes).finish()
    }
}

/// Offsets in a message of any size at which its packets after the first one begin. The first packet holds
/// the size and up to 56 bytes, each further packet 64 bytes. All lanes send as many packets as the lane with
/// the largest message.
#[derive(Debug)]
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

    /// The next offset.
    pub fn peek(&self) -> Option<u64> {
        (self.next < self.largest).then_some(self.next)
    }
}

impl Iterator for ChunkOffsets {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let offset = self.peek()?;
        self.next = offset.saturating_add(PACKET_SIZE as u64);
        Some(offset)
    }
}
