//! Ready set: ports whose handler future was woken.

use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Waker;

use crate::lanes::Lanes;
use crate::layout::PortIndex;

/// One bit for each port whose handler can be polled again.
#[derive(Debug)]
pub(crate) struct ReadySet {
    any: AtomicBool,
    ports: Vec<AtomicU64>,
    /// Wakes the server.
    waker: Waker,
}

impl ReadySet {
    pub fn new(ports: u32, waker: Waker) -> Self {
        Self {
            any: AtomicBool::new(false),
            ports: (0..ports.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            waker,
        }
    }

    pub fn insert(&self, port: PortIndex) {
        let word = &self.ports[port.slot() / 64];
        word.fetch_or(1 << (port.get() % 64), Ordering::Release);
        self.any.store(true, Ordering::Release);
    }

    /// Makes threads that sleep poll.
    #[cfg(feature = "blocking")]
    pub fn wake_server(&self) {
        self.waker.wake_by_ref();
    }

    /// Whether any port is ready.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Removes and returns all ready ports.
    pub fn drain(&self) -> Vec<PortIndex> {
        // The flag is read first, because wakers set it last.
        if !self.any.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        let ready = self.ports.iter().zip(0_u32..).flat_map(|(word, block)| {
            let bits = word.swap(0, Ordering::Acquire);
            Lanes::from_mask(bits).map(move |bit| PortIndex::new(block * 64 + bit))
        });
        ready.collect()
    }
}

/// Waker of the handler future of a port.
struct PortWaker {
    ready: Arc<ReadySet>,
    port: PortIndex,
}

impl Wake for PortWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.insert(self.port);
        self.ready.waker.wake_by_ref();
    }
}

/// Creates a waker that adds a port to the ready set.
pub(crate) fn port_waker(ready: &Arc<ReadySet>, port: PortIndex) -> Waker {
    Waker::from(Arc::new(PortWaker {
        ready: Arc::clone(ready),
        port,
    }))
}
