//! Protocol of one port, from either side: ownership of the packets and how it changes hands.

use crate::layout::PortIndex;
use crate::memory::{Memory, Side};
use crate::packets::Packets;

/// One side of a call on a port.
///
/// A call is a sequence of ownership transfers: a side waits until it owns the packets, reads or writes
/// them, or both, and passes them on by changing its outbox. A received packet is returned unchanged unless
/// an answer is written into it first.
/// ```
/// use gpurpc::handshake::Handshake;
/// use gpurpc::memory::{Region, Side};
/// use gpurpc::{Layout, PortIndex};
///
/// let memory = Region::zeroed(Layout::new(1, 1)?)?;
/// let mut client = Handshake::new(Side::Client, PortIndex::new(0), 0, 0b1);
/// assert!(client.poll_send(&memory).is_some());
/// client.finish_send(&memory);
/// // The server has not returned the packets.
/// assert!(!client.owns() && client.poll_recv(&memory).is_none());
/// # Ok::<(), gpurpc::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Handshake {
    side: Side,
    port: PortIndex,
    mask: u64,
    /// Value of the outbox. It is never read again: only this side should write it.
    outbox: u32,
    owns: bool,
    /// Whether the packets hold a received message and are due to be returned.
    received: bool,
}

impl Handshake {
    /// Starts a call on a port that this side owns, with the value of its outbox, for the lanes of a mask.
    #[inline]
    pub fn new(side: Side, port: PortIndex, outbox: u32, mask: u64) -> Self {
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
    #[inline]
    pub fn port(&self) -> PortIndex {
        self.port
    }

    /// Bit mask of the participating lanes.
    #[inline]
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Value that this side has written to its outbox.
    #[inline]
    pub fn outbox(&self) -> u32 {
        self.outbox
    }

    /// Whether this side owns the packets.
    #[inline]
    pub fn owns(&self) -> bool {
        self.owns
    }

    /// Returns the packets to fill if this side owns them. [`Self::finish_send`] passes them on.
    #[inline]
    pub fn poll_send<'m, M: Memory>(&mut self, memory: &'m M) -> Option<Packets<'m, M>> {
        self.update_ownership(memory);
        self.owns.then(|| self.packets(memory))
    }

    /// Passes filled packets to the other side.
    #[inline]
    pub fn finish_send<M: Memory>(&mut self, memory: &M) {
        self.release(memory);
    }

    /// Returns the packets that the other side has filled, if it has. Packets received earlier are returned
    /// to it first.
    #[inline]
    pub fn poll_recv<'m, M: Memory>(&mut self, memory: &'m M) -> Option<Packets<'m, M>> {
        if self.received {
            self.release(memory);
        }
        self.update_ownership(memory);
        self.received = self.owns;
        self.owns.then(|| self.packets(memory))
    }

    /// Ends the call. A server returns packets that it owns; a client keeps them, because an idle port belongs to the
    /// client.
    #[inline]
    pub fn close<M: Memory>(&mut self, memory: &M) {
        if self.owns && self.side == Side::Server {
            self.release(memory);
        }
    }

    /// State of a call that another copy of this value has continued.
    pub(crate) fn set_state(&mut self, outbox: u32, owns: bool) {
        (self.outbox, self.owns) = (outbox, owns);
    }

    #[inline]
    fn update_ownership<M: Memory>(&mut self, memory: &M) {
        self.owns = self.owns
            || self
                .side
                .owns(memory.inbox(self.side, self.port), self.outbox);
    }

    #[inline]
    fn packets<'m, M: Memory>(&self, memory: &'m M) -> Packets<'m, M> {
        Packets::new(memory, self.port, self.mask)
    }

    #[inline]
    fn release<M: Memory>(&mut self, memory: &M) {
        // Mailboxes are 0 or 1, as in LLVM.
        self.outbox = u32::from(self.outbox == 0);
        self.owns = false;
        self.received = false;
        memory.set_outbox(self.side, self.port, self.outbox);
    }
}
