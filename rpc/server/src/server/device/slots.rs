//! Ports of a device, and the blocks in which they are scanned.

use alloc::boxed::Box;
use core::task::Waker;

use crate::handshake::Handshake;
use crate::layout::PortIndex;
use crate::server::session::Session;

/// State of the calls of a port.
pub(super) enum State {
    /// No call is open.
    Idle,
    Open,
    /// The port is no longer served.
    Dropped,
}

/// A port.
pub(super) struct Slot {
    pub state: State,
    /// State of the open call, or of the last one.
    pub handshake: Handshake,
    /// Opcode of the open call.
    pub opcode: u32,
    /// Session of the last call that had one, with the index of its handler.
    pub session: Option<(usize, Box<dyn Session>)>,
    pub waker: Option<Waker>,
}

/// A block of 64 ports, scanned together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Block(pub usize);

impl Block {
    pub fn containing(port: PortIndex) -> Self {
        Self(port.slot() / 64)
    }

    pub fn port(self, bit: u32) -> PortIndex {
        PortIndex::new(self.0 as u32 * 64 + bit)
    }
}
