//! The protocol of one port, from either end: who owns the packets, and how they change hands.

use crate::memory::{Memory, Side};
use crate::packets::Packets;

/// One end of a call on a port.
///
/// What a call consists of is a row of *turns*: a side waits until it owns the packets, reads them,
/// writes them, or both, and gives them away by changing its outbox. A packet that is received is
/// given back as it is, unless an answer is written into it before.
#[derive(Debug)]
pub struct Turns {
    side: Side,
    port: u32,
    mask: u64,
    /// What is in the outbox. It is never read again: only this side should write it.
    outbox: u32,
    owns: bool,
    /// Whether the packets hold what was received, and are to be given back.
    received: bool,
}

impl Turns {
    /// A call on a port that this side owns, with what is in its outbox, for the lanes of a mask.
    pub fn new(side: Side, port: u32, outbox: u32, mask: u64) -> Self {
        Self {
            side,
            port,
            mask,
            outbox,
            owns: true,
            received: false,
        }
    }

    /// The port.
    pub fn port(&self) -> u32 {
        self.port
    }

    /// The lanes that take part.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// What this side has written to its outbox.
    pub fn outbox(&self) -> u32 {
        self.outbox
    }

    /// Whether this side owns the packets.
    pub fn owns(&self) -> bool {
        self.owns
    }

    /// The packets to be filled, once they are this side's: then [`Self::sent`].
    pub fn sendable<'m, M: Memory>(&mut self, memory: &'m M) -> Option<Packets<'m, M>> {
        self.look(memory);
        self.owns.then(|| self.packets(memory))
    }

    /// Gives away packets that were filled.
    pub fn sent<M: Memory>(&mut self, memory: &M) {
        self.give_away(memory);
    }

    /// The packets that the other side has filled, once it has. What was received before is given back
    /// for it.
    pub fn received<'m, M: Memory>(&mut self, memory: &'m M) -> Option<Packets<'m, M>> {
        if self.received {
            self.give_away(memory);
        }
        self.look(memory);
        self.received = self.owns;
        self.owns.then(|| self.packets(memory))
    }

    /// Ends the call. A server gives back what it has; a client keeps it, as an idle port is its. Gives
    /// what is in the outbox then.
    pub fn close<M: Memory>(mut self, memory: &M) -> u32 {
        if self.owns && self.side == Side::Server {
            self.give_away(memory);
        }
        self.outbox
    }

    fn look<M: Memory>(&mut self, memory: &M) {
        self.owns = self.owns
            || self
                .side
                .owns(memory.inbox(self.side, self.port), self.outbox);
    }

    fn packets<'m, M: Memory>(&self, memory: &'m M) -> Packets<'m, M> {
        Packets::new(memory, self.port, self.mask)
    }

    fn give_away<M: Memory>(&mut self, memory: &M) {
        // As LLVM has it: mailboxes are 0 or 1.
        self.outbox = u32::from(self.outbox == 0);
        self.owns = false;
        self.received = false;
        memory.set_outbox(self.side, self.port, self.outbox);
    }
}
