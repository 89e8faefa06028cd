//! Threads that serve devices.

use std::collections::BTreeMap;
use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use super::Device;
use crate::Error;

/// How a thread waits that finds nothing to do.
///
/// It looks on for a while, as the next call is most often near; then it gives the processor away to
/// others that can run; then it sleeps, each time for an eighth of the time since its first sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// How often it looks around in a row.
    pub spins: u32,
    /// How often it looks around while it lets others run.
    pub yields: u32,
    /// The longest sleep between two looks: what the first call after a pause may take longer.
    pub longest: Duration,
}

impl Default for Idle {
    fn default() -> Self {
        Self {
            spins: 2000,
            yields: 200,
            longest: Duration::from_micros(250),
        }
    }
}

/// Which device: given by [`Server::add`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeviceId(usize);

#[derive(Default)]
struct Devices {
    /// No number is given out twice.
    next: usize,
    by_number: BTreeMap<usize, Arc<Mutex<Device>>>,
}

/// Any number of devices, served by any number of threads.
#[derive(Default)]
pub struct Server {
    devices: RwLock<Devices>,
    ending: AtomicBool,
    stopping: AtomicBool,
    idle: Idle,
}

impl Server {
    /// Without devices.
    pub fn new(idle: Idle) -> Self {
        Self {
            idle,
            ..Self::default()
        }
    }

    /// Serves a device from now on.
    pub fn add(&self, device: Device) -> DeviceId {
        let mut devices = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        let number = devices.next;
        devices.next += 1;
        let device = Arc::new(Mutex::new(device));
        devices.by_number.insert(number, device);
        DeviceId(number)
    }

    /// Serves a device no longer. Calls that are under way are dropped; the memory is given back when
    /// none of them is left.
    ///
    /// # Errors
    ///
    /// If it was removed before.
    pub fn remove(&self, id: DeviceId) -> Result<(), Error> {
        let mut devices = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        let device = devices.by_number.remove(&id.0).ok_or(Error::NoDevice)?;
        // What gives its memory back may use the server.
        drop(devices);
        drop(device);
        Ok(())
    }

    /// Serves what there is on all devices that no other thread serves now. Gives whether there was
    /// anything.
    pub fn poll(&self) -> bool {
        let mut any = false;
        for device in self.devices() {
            match device.try_lock() {
                Ok(mut device) => any |= device.poll(),
                Err(TryLockError::Poisoned(device)) => any |= device.into_inner().poll(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        any
    }

    /// Serves until [`Self::end`], with the thread that calls this, or until [`Self::stop`]. All that
    /// clients had asked for by the end is answered before.
    pub fn serve(&self) {
        let mut waiting = Waiting::new(self.idle);
        while !self.stopping.load(Ordering::Acquire) {
            // Before the look around: what was asked before the end came is seen by it.
            let ending = self.ending.load(Ordering::Acquire);
            if self.poll() {
                waiting = Waiting::new(self.idle);
            } else if ending && self.settle() {
                return;
            } else {
                waiting.wait();
            }
        }
    }

    /// Lets [`Self::serve`] come to its end once nothing is left to answer.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Release);
    }

    /// Lets [`Self::serve`] return at once, now and whenever it is called. Calls that are under way stay
    /// where they are.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// How many calls are under way on all devices: begun, and neither ended nor dropped. Waits for threads
    /// that serve to look around once.
    pub fn open(&self) -> usize {
        self.each(|device| device.open()).sum()
    }

    /// Serves what there is, as [`Self::poll`] does, and waits for other threads that serve to look around
    /// once. Gives whether all that clients had asked for before this is answered.
    pub fn settle(&self) -> bool {
        // All of them, also if the first one has something to do.
        let settled = self.each(|device| !device.poll() && device.open() == 0);
        settled.fold(true, |all, settled| all & settled)
    }

    /// Does something with each device, once no other thread serves it.
    fn each<T>(&self, mut work: impl FnMut(&mut Device) -> T) -> impl Iterator<Item = T> {
        self.devices().map(move |device| {
            let mut device = device.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut device)
        })
    }

    /// All devices. They are not kept locked while handlers run, which may add some.
    fn devices(&self) -> impl Iterator<Item = Arc<Mutex<Device>>> {
        let mut from = 0;
        iter::from_fn(move || {
            let devices = self.devices.read().unwrap_or_else(PoisonError::into_inner);
            let (number, device) = devices.by_number.range(from..).next()?;
            from = number + 1;
            Some(Arc::clone(device))
        })
    }
}

/// The first sleep. Hosts round up to about 50 µs.
const SHORTEST: Duration = Duration::from_micros(1);

/// A thread that waits, longer each time.
struct Waiting {
    idle: Idle,
    looks: u32,
    /// When it slept for the first time.
    since: Option<Instant>,
}

impl Waiting {
    fn new(idle: Idle) -> Self {
        Self {
            idle,
            looks: 0,
            since: None,
        }
    }

    fn wait(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.looks <= self.idle.spins {
            core::hint::spin_loop();
        } else if self.looks <= self.idle.spins.saturating_add(self.idle.yields) {
            thread::yield_now();
        } else {
            // Nothing can be waited for: a device writes memory, and has no means to wake a thread of the
            // host. LLVM's offload runtime sleeps here, too, for 250 µs a turn (`RPC.cpp`).
            // A part of the pause: after a short one the first call comes soon, and a long one costs as little
            // as the longest sleep allows.
            let since = *self.since.get_or_insert_with(Instant::now);
            let sleep = since.elapsed() / 8;
            thread::sleep(sleep.clamp(SHORTEST.min(self.idle.longest), self.idle.longest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;
    use crate::client::{Client, HostLocks};
    use crate::memory::{Memory, Region, Side};
    use crate::server::{Handlers, Limits, Opcodes};

    /// Without a thread that serves: whoever asks whether all is answered answers it.
    #[test]
    fn what_is_asked_is_settled_or_open() -> Result<(), Error> {
        let mut handlers = Handlers::new();
        handlers.reply(1, |_| {})?;
        handlers.talk(2, |mut port| async move {
            port.recv(|_| {}).await;
            port.recv(|_| {}).await;
            Ok(port)
        })?;
        let handlers = Arc::new(handlers);
        let server = Server::new(Idle::default());
        assert!(server.settle());
        let mut clients = Vec::new();
        for _ in 0..2 {
            let memory = Region::zeroed(Layout::new(2, 1)?)?;
            clients.push(Client::new(memory.clone(), HostLocks::new()));
            let device = Device::new(
                memory,
                Arc::clone(&handlers),
                Limits::default(),
                Opcodes::Wide,
            );
            server.add(device);
        }
        assert!(server.settle());
        for client in &clients {
            let mut call = client.open(1, 1);
            call.send(|_| {});
            // There was something; then there is nothing.
            assert_eq!((server.settle(), server.settle()), (false, true));
            assert!(call.recv(|_| {}).is_some());
        }
        let mut calls: Vec<_> = clients.iter().map(|client| client.open(2, 1)).collect();
        for (before, call) in calls.iter_mut().enumerate() {
            call.send(|_| {});
            assert_eq!((server.open(), server.settle()), (before, false));
        }
        assert_eq!((server.open(), server.settle()), (2, false));
        for call in &mut calls {
            call.send(|_| {});
        }
        assert_eq!(
            (server.settle(), server.settle(), server.open()),
            (false, true, 0)
        );
        Ok(())
    }

    /// Of two calls, the second one gives back the port of the first one.
    #[test]
    fn a_handler_gives_back_its_own_port() -> Result<(), Error> {
        let mut handlers = Handlers::new();
        let first = Mutex::new(None);
        handlers.talk(1, move |port| {
            let other = first.lock().expect("nobody panics").replace(port);
            async move {
                match other {
                    Some(other) => Ok(other),
                    None => std::future::pending().await,
                }
            }
        })?;
        let memory = Region::zeroed(Layout::new(2, 1)?)?;
        let client = Client::new(memory.clone(), HostLocks::new());
        let (limits, opcodes) = (Limits::default(), Opcodes::Wide);
        let mut device = Device::new(memory, Arc::new(handlers), limits, opcodes);
        let mut calls = [client.open(1, 1), client.open(1, 1)];
        for call in &mut calls {
            call.send(|_| {});
        }
        device.poll();
        // The first one is still under way, and was not answered.
        assert_eq!((device.open(), device.dropped()), (1, 1));
        let answered = |port| client.memory().inbox(Side::Client, port);
        assert_eq!([0, 1].map(answered), [0, 0]);
        Ok(())
    }
}
