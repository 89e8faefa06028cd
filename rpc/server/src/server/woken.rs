//! Calls that wait for something of the host, and can go on.

use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Waker;

use crate::packets::Lanes;

/// A bit for each port that can go on.
#[derive(Debug)]
pub(crate) struct Woken {
    any: AtomicBool,
    ports: Vec<AtomicU64>,
}

impl Woken {
    pub fn new(ports: u32) -> Self {
        Self {
            any: AtomicBool::new(false),
            ports: (0..ports.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Takes those that there are.
    pub fn take(&self) -> Vec<u32> {
        // The flag first: who wakes sets it last.
        if !self.any.load(Ordering::Relaxed) || !self.any.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        let taken = self.ports.iter().zip(0_u32..).flat_map(|(word, at)| {
            let bits = word.swap(0, Ordering::Acquire);
            Lanes::of(bits).map(move |bit| at * 64 + bit)
        });
        taken.collect()
    }
}

struct Bell {
    woken: Arc<Woken>,
    port: u32,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let word = &self.woken.ports[self.port as usize / 64];
        word.fetch_or(1 << (self.port % 64), Ordering::Release);
        self.woken.any.store(true, Ordering::Release);
    }
}

/// What wakes a port.
pub(crate) fn waker(woken: &Arc<Woken>, port: u32) -> Waker {
    Waker::from(Arc::new(Bell {
        woken: Arc::clone(woken),
        port,
    }))
}
