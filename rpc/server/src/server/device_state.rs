//! State of a device that its ports share.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use super::budget::Budget;
use super::refusal::Refusals;
use crate::handshake::Handshake;
use crate::layout::PortIndex;
use crate::memory::Region;

/// State of a device that its ports share.
#[derive(Debug)]
pub(crate) struct DeviceState {
    pub memory: Region,
    pub budget: Arc<Budget>,
    pub refusals: Refusals,
    /// [`PortState`] of each port.
    ports: Vec<AtomicU32>,
}

impl DeviceState {
    pub fn new(memory: Region, refusals: Refusals, budget: Budget, ports: u32) -> Self {
        Self {
            memory,
            budget: Arc::new(budget),
            refusals,
            ports: (0..ports).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// State of the call on a port.
    pub fn port(&self, port: PortIndex) -> PortState {
        let bits = self.ports[port.slot()].load(Ordering::Relaxed);
        PortState {
            outbox: bits & 1,
            owns: bits & 2 != 0,
        }
    }

    /// Sets the state of the call on a port.
    pub fn set_port(&self, handshake: &Handshake) {
        let bits = handshake.outbox() & 1 | u32::from(handshake.owns()) << 1;
        self.ports[handshake.port().slot()].store(bits, Ordering::Relaxed);
    }
}

/// State of a call, for the device that polls it.
pub(crate) struct PortState {
    /// Value that the server has written last.
    pub outbox: u32,
    /// Whether the server owns the packets.
    pub owns: bool,
}
