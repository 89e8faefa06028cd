//! Ports whose handlers another thread has to continue.

use std::sync::Arc;
use std::vec::Vec;

use super::serving_thread::ServingThread;
use crate::layout::PortIndex;

/// Ports of a device whose clients have answered, found by a thread that must not continue their handlers.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    ports: Vec<(PortIndex, Arc<ServingThread>)>,
    /// One bit for each port that is in the list.
    is_parked: Vec<u64>,
}

impl Parked {
    /// Leaves a port to a thread.
    pub fn add(&mut self, port: PortIndex, thread: Arc<ServingThread>) {
        let (word, bit) = (port.slot() / 64, 1 << (port.slot() % 64));
        if self.is_parked.len() <= word {
            self.is_parked.resize(word + 1, 0);
        }
        // A device can change a mailbox any number of times.
        if self.is_parked[word] & bit == 0 {
            self.is_parked[word] |= bit;
            self.ports.push((port, thread));
        }
    }

    /// Removes a port that this thread may continue, or whose thread has ended.
    #[inline]
    pub fn next(&mut self) -> Option<PortIndex> {
        if self.ports.is_empty() {
            return None;
        }
        self.next_here()
    }

    #[cold]
    fn next_here(&mut self) -> Option<PortIndex> {
        let index = self
            .ports
            .iter()
            .position(|(_, thread)| thread.is_current() || thread.has_ended())?;
        let (port, _) = self.ports.swap_remove(index);
        self.is_parked[port.slot() / 64] &= !(1 << (port.slot() % 64));
        Some(port)
    }
}
