//! Accesses to shared memory, and the sides of the protocol.

use core::ops::Deref;

use crate::lanes::Lanes;
use crate::layout::{Layout, Packet, PortIndex};

/// Memory that the other side may write at any time: each word is read and written whole, and two reads of
/// one word may differ.
///
/// Only accesses to mailboxes are ordered. A side that finds its inbox changed sees all that the other side
/// wrote before the change. LLVM uses relaxed accesses and fences there; an acquire load and a release
/// store order no less, and race detectors understand them.
/// ```
/// use gpurpc::memory::{Memory, Region, Side};
/// use gpurpc::{Layout, PortIndex};
///
/// let (memory, port) = (Region::zeroed(Layout::new(8, 32)?)?, PortIndex::new(3));
/// memory.set_word(port, 31, 0, 42);
/// memory.set_outbox(Side::Client, port, 1);
/// assert_eq!(memory.inbox(Side::Server, port), 1);
/// assert_eq!(memory.word(port, 31, 0), 42);
/// # Ok::<(), gpurpc::Error>(())
/// ```
pub trait Memory {
    /// Access to the packets of a port.
    type Port<'m>: PortMemory
    where
        Self: 'm;

    /// Layout of the memory.
    fn layout(&self) -> Layout;

    /// Returns access to the packets of a port.
    fn port(&self, port: PortIndex) -> Self::Port<'_>;

    /// Reads the mailbox of a port that the other side writes: 0 or 1, which stands for any other value. Acquire load.
    fn inbox(&self, side: Side, port: PortIndex) -> u32;

    /// Reads the mailbox of a port that this side writes.
    fn outbox(&self, side: Side, port: PortIndex) -> u32;

    /// Writes the mailbox of a port. Release store.
    fn set_outbox(&self, side: Side, port: PortIndex, value: u32);

    /// Reads the lane mask of a header.
    fn mask(&self, port: PortIndex) -> u64;

    /// Reads the opcode of a header.
    fn opcode(&self, port: PortIndex) -> u32;

    /// Writes a header.
    fn set_header(&self, port: PortIndex, mask: u64, opcode: u32);

    /// Reads a word of the packet of a lane.
    fn word(&self, port: PortIndex, lane: u32, word: usize) -> u64 {
        self.port(port).word(lane, word)
    }

    /// Writes a word of the packet of a lane.
    fn set_word(&self, port: PortIndex, lane: u32, word: usize, value: u64) {
        self.port(port).set_word(lane, word, value);
    }

    /// Bit mask of those of 64 ports, starting at `first`, whose inbox at the server is not zero. An acquire fence must
    /// follow before packets are read.
    /// Bits beyond the last port are zero.
    fn nonzero_inboxes(&self, first: PortIndex) -> u64 {
        let ports = first.get()..self.layout().ports().min(first.get() + 64);
        ports.fold(0, |bits, port| {
            let nonzero = self.inbox(Side::Server, PortIndex::new(port)) != 0;
            bits | u64::from(nonzero) << (port - first.get())
        })
    }
}

/// Packets of the lanes of a port.
///
/// ```
/// use gpurpc::memory::{Memory, PortMemory, Region};
/// use gpurpc::{Layout, PortIndex};
///
/// let memory = Region::zeroed(Layout::new(8, 32)?)?;
/// let port = memory.port(PortIndex::new(7));
/// port.set_word(31, 0, 42);
/// assert_eq!(port.word(31, 0), 42);
/// # Ok::<(), gpurpc::Error>(())
/// ```
pub trait PortMemory {
    /// Reads a word of the packet of a lane.
    fn word(&self, lane: u32, word: usize) -> u64;

    /// Writes a word of the packet of a lane.
    fn set_word(&self, lane: u32, word: usize, value: u64);

    /// Reads the packet of a lane: each word once.
    fn packet(&self, lane: u32) -> Packet {
        core::array::from_fn(|word| self.word(lane, word))
    }

    /// Writes the packet of a lane.
    fn set_packet(&self, lane: u32, packet: &Packet) {
        for (word, value) in packet.iter().enumerate() {
            self.set_word(lane, word, *value);
        }
    }

    /// Reads at least the first `words` words of the packets of the lanes of a mask: each word once.
    fn read_packets(&self, mask: u64, words: usize, packets: &mut [Packet; 64]) {
        for lane in Lanes::from_mask(mask) {
            for (word, value) in packets[lane as usize].iter_mut().take(words).enumerate() {
                *value = self.word(lane, word);
            }
        }
    }

    /// Writes the packets of the lanes of a mask.
    fn write_packets(&self, mask: u64, packets: &[Packet; 64]) {
        for lane in Lanes::from_mask(mask) {
            for (word, value) in packets[lane as usize].iter().enumerate() {
                self.set_word(lane, word, *value);
            }
        }
    }
}

/// Memory accessed through a pointer, such as a [`Region`](super::Region) or a reference.
impl<P: Deref<Target: Memory>> Memory for P {
    type Port<'m>
        = <P::Target as Memory>::Port<'m>
    where
        Self: 'm;

    fn layout(&self) -> Layout {
        (**self).layout()
    }

    fn port(&self, port: PortIndex) -> Self::Port<'_> {
        (**self).port(port)
    }

    fn inbox(&self, side: Side, port: PortIndex) -> u32 {
        (**self).inbox(side, port)
    }

    fn outbox(&self, side: Side, port: PortIndex) -> u32 {
        (**self).outbox(side, port)
    }

    fn set_outbox(&self, side: Side, port: PortIndex, value: u32) {
        (**self).set_outbox(side, port, value);
    }

    fn mask(&self, port: PortIndex) -> u64 {
        (**self).mask(port)
    }

    fn opcode(&self, port: PortIndex) -> u32 {
        (**self).opcode(port)
    }

    fn set_header(&self, port: PortIndex, mask: u64, opcode: u32) {
        (**self).set_header(port, mask, opcode);
    }

    fn nonzero_inboxes(&self, first: PortIndex) -> u64 {
        (**self).nonzero_inboxes(first)
    }
}

/// A side of the protocol.
/// ```
/// use gpurpc::memory::Side;
///
/// // The client has changed its outbox: the packets are the server's.
/// let (primary, secondary) = (0, 1);
/// assert!(!Side::Client.owns(primary, secondary));
/// assert!(Side::Server.owns(secondary, primary));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Opens calls, each with a packet of its own first.
    Client,
    /// Answers calls.
    Server,
}

impl Side {
    /// The opposite side.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Whether a side owns the packets of a port and may touch them: the client while both mailboxes are
    /// equal, as they are initially, and the server while they differ.
    pub const fn owns(self, inbox: u32, outbox: u32) -> bool {
        (inbox == outbox) == matches!(self, Self::Client)
    }
}
