//! Memory that both sides read and write.

#[cfg(all(test, feature = "std"))]
pub(crate) mod changing;
mod region;
mod shared;
mod wide;

use core::ops::Deref;

use crate::Layout;
pub use region::Region;
pub use shared::Shared;

/// Memory that the other side may write at any time: each word is read and written whole, and what was
/// read twice may differ.
///
/// Only mailboxes order anything. A side that finds its inbox changed sees all that the other side
/// wrote before it changed it. LLVM has relaxed accesses and fences there; an acquiring load and a
/// releasing store order no less, and tools that look for races understand them.
pub trait Memory {
    /// Where everything lies.
    fn layout(&self) -> Layout;

    /// The mailbox of a port that the other side writes; an acquiring load.
    fn inbox(&self, side: Side, port: u32) -> u32;

    /// The mailbox of a port that this side writes.
    fn outbox(&self, side: Side, port: u32) -> u32;

    /// Writes the mailbox of a port; a releasing store.
    fn set_outbox(&self, side: Side, port: u32, value: u32);

    /// The mask of lanes in a header.
    fn mask(&self, port: u32) -> u64;

    /// The opcode in a header.
    fn opcode(&self, port: u32) -> u32;

    /// Writes a header.
    fn set_header(&self, port: u32, mask: u64, opcode: u32);

    /// A word of the packet of a lane.
    fn word(&self, port: u32, lane: u32, word: usize) -> u64;

    /// Writes a word of the packet of a lane.
    fn set_word(&self, port: u32, lane: u32, word: usize, value: u64);

    /// A bit for each of 64 ports, from `first` on: those whose inbox at the server is not what `quiet`
    /// has. Orders nothing. Bits of ports that there are not are zero.
    fn changed(&self, first: u32, quiet: &[u32; 64]) -> u64 {
        let last = self.layout().ports().min(first + 64);
        (first..last).zip(quiet).fold(0, |bits, (port, quiet)| {
            let changed = self.inbox(Side::Server, port) != *quiet;
            bits | u64::from(changed) << (port - first)
        })
    }
}

/// Memory that is somewhere else: of a [`Region`], or lent.
impl<P: Deref<Target: Memory>> Memory for P {
    fn layout(&self) -> Layout {
        (**self).layout()
    }

    fn inbox(&self, side: Side, port: u32) -> u32 {
        (**self).inbox(side, port)
    }

    fn outbox(&self, side: Side, port: u32) -> u32 {
        (**self).outbox(side, port)
    }

    fn set_outbox(&self, side: Side, port: u32, value: u32) {
        (**self).set_outbox(side, port, value);
    }

    fn mask(&self, port: u32) -> u64 {
        (**self).mask(port)
    }

    fn opcode(&self, port: u32) -> u32 {
        (**self).opcode(port)
    }

    fn set_header(&self, port: u32, mask: u64, opcode: u32) {
        (**self).set_header(port, mask, opcode);
    }

    fn word(&self, port: u32, lane: u32, word: usize) -> u64 {
        (**self).word(port, lane, word)
    }

    fn set_word(&self, port: u32, lane: u32, word: usize, value: u64) {
        (**self).set_word(port, lane, word, value);
    }

    fn changed(&self, first: u32, quiet: &[u32; 64]) -> u64 {
        (**self).changed(first, quiet)
    }
}

/// An end of the shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Asks; a call begins with a packet of its.
    Client,
    /// Answers.
    Server,
}

impl Side {
    /// The end across.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Whether a side owns the packets of a port, and may touch them: the client while both mailboxes
    /// are the same, as they are in the beginning, and the server while they differ.
    pub const fn owns(self, inbox: u32, outbox: u32) -> bool {
        (inbox == outbox) == matches!(self, Self::Client)
    }
}
