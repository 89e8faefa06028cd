//! Threads that serve devices.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use super::device::Device;
#[cfg(feature = "blocking")]
use super::serving_thread::end_abandoned;
use crate::error::Error;
use crate::layout::PortIndex;
use crate::memory::Region;

/// Policy of a serving thread while all devices are idle.
///
/// The thread spins for a while, as the next call usually follows soon; then it yields the processor between
/// polls; then it sleeps, each time for an eighth of the time since its first sleep.
///
/// ```
/// use std::time::Duration;
///
/// use gpurpc::server::IdlePolicy;
///
/// // Saves energy: a call after a pause waits for up to 5 ms.
/// let idle = IdlePolicy { spin_count: 0, max_sleep: Duration::from_millis(5), ..IdlePolicy::default() };
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdlePolicy {
    /// Number of polls while spinning.
    pub spin_count: u32,
    /// Number of polls while yielding.
    pub yield_count: u32,
    /// Longest sleep between two polls, which bounds the added latency of the first call after a pause.
    pub max_sleep: Duration,
}

impl Default for IdlePolicy {
    fn default() -> Self {
        Self {
            spin_count: 2000,
            yield_count: 200,
            max_sleep: Duration::from_micros(250),
        }
    }
}

/// Identifies a device of a server. Returned by [`Server::add_device`] and never reused.
///
/// ```
/// use std::sync::Arc;
///
/// use gpurpc::memory::Region;
/// use gpurpc::server::{Device, Handlers, IdlePolicy, Limits, Opcodes, Server};
/// use gpurpc::{Error, Layout};
///
/// let memory = Region::zeroed(Layout::new(8, 32)?)?;
/// let device = Device::new(memory, Arc::new(Handlers::new()), Limits::default(), Opcodes::Wide);
/// let server = Server::new(IdlePolicy::default());
/// let id = server.add_device(device);
/// server.remove_device(id)?;
/// assert_eq!(server.remove_device(id), Err(Error::NoDevice));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeviceId(usize);

struct Served {
    id: DeviceId,
    is_removed: AtomicBool,
    device: Mutex<Device>,
    /// Number of threads that wait for the device. Polls leave it to them: its calls could keep it busy indefinitely.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct Devices {
    next: usize,
    /// In the order in which they were added. Replaced as a whole, so that a poll shares the list.
    list: Arc<[Arc<Served>]>,
    /// Memory of this library, also that of removed devices: a device that hangs may write at any time.
    memory: Vec<Region>,
}

impl Served {
    /// The device, unless another thread uses it or waits for it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Device>> {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            return None;
        }
        match self.device.try_lock() {
            Ok(device) => Some(device),
            Err(TryLockError::Poisoned(device)) => Some(device.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The device, once no other thread uses it.
    fn lock(&self) -> MutexGuard<'_, Device> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let device = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        device
    }
}

/// Any number of devices, served by any number of threads.
///
/// ```
/// use std::sync::Arc;
///
/// use gpurpc::memory::Region;
/// use gpurpc::server::{Device, Handlers, IdlePolicy, Limits, Opcodes, Server};
/// use gpurpc::{Error, Layout};
///
/// let memory = Region::zeroed(Layout::new(8, 32)?)?;
/// let device = Device::new(memory, Arc::new(Handlers::new()), Limits::default(), Opcodes::Wide);
/// let server = Arc::new(Server::new(IdlePolicy::default()));
/// server.add_device(device);
/// let serving = std::thread::spawn({
///     let server = Arc::clone(&server);
///     move || server.serve()
/// });
/// // Launch kernels here, and wait for them.
/// server.drain();
/// serving.join().unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct Server {
    devices: RwLock<Devices>,
    draining: AtomicBool,
    stopping: AtomicBool,
    idle: IdlePolicy,
}

impl Server {
    /// A server without devices.
    pub fn new(idle: IdlePolicy) -> Self {
        Self {
            idle,
            ..Self::default()
        }
    }

    /// Serves a device from now on.
    pub fn add_device(&self, device: Device) -> DeviceId {
        let mut devices = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        let id = DeviceId(devices.next);
        devices.next += 1;
        if device.memory().is_own() {
            devices.memory.push(device.memory().clone());
        }
        let added = Arc::new(Served {
            id,
            is_removed: AtomicBool::new(false),
            device: Mutex::new(device),
            waiting: AtomicUsize::new(0),
        });
        devices.list = devices.list.iter().cloned().chain([added]).collect();
        id
    }

    /// Stops serving a device and drops its open calls. The memory is released after the last of them, that of
    /// [`Region::zeroed`] when the server is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if the device was removed before.
    pub fn remove_device(&self, id: DeviceId) -> Result<(), Error> {
        let mut devices = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        let mut list = devices.list.to_vec();
        let place = list.iter().position(|served| served.id == id);
        let removed = list.remove(place.ok_or(Error::NoDevice)?);
        removed.is_removed.store(true, Ordering::Release);
        let before = std::mem::replace(&mut devices.list, list.into());
        // The function that releases the memory may use the server.
        drop(devices);
        drop((before, removed));
        Ok(())
    }

    /// Resets a port of a device as [`Device::reset_port`] does, after the poll of other serving threads has finished.
    /// Handlers of the device must not call it, because it would wait for them.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if the device was removed.
    pub fn reset_port(&self, id: DeviceId, port: PortIndex) -> Result<bool, Error> {
        self.with_device(id, |device| device.reset_port(port))
    }

    /// Resets all ports of a device as [`Device::reset_ports`] does. As for [`Self::reset_port`], handlers of the
    /// device must not call it.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if the device was removed.
    pub fn reset_ports(&self, id: DeviceId) -> Result<usize, Error> {
        self.with_device(id, Device::reset_ports)
    }

    fn with_device<T>(
        &self,
        id: DeviceId,
        work: impl FnOnce(&mut Device) -> T,
    ) -> Result<T, Error> {
        let devices = self.devices();
        let served = devices.iter().find(|served| served.id == id);
        Ok(work(&mut served.ok_or(Error::NoDevice)?.lock()))
    }

    /// Polls once all devices that no other thread is serving. Returns whether any call was served.
    #[inline]
    pub fn poll(&self) -> bool {
        #[cfg(feature = "blocking")]
        end_abandoned();
        let mut any = false;
        for served in &*self.devices() {
            if let Some(mut device) = served.try_lock() {
                any |= !served.is_removed.load(Ordering::Acquire) && device.poll();
            }
        }
        any
    }

    /// Serves on the calling thread until [`Self::drain`] or [`Self::stop`]. After `drain`, all calls that
    /// clients had made before it are answered first.
    pub fn serve(&self) {
        let mut backoff = Backoff::new(self.idle);
        while !self.stopping.load(Ordering::Acquire) {
            // Read before the poll, which therefore sees all calls made before `drain`.
            let draining = self.draining.load(Ordering::Acquire);
            if self.poll() {
                backoff = Backoff::new(self.idle);
            } else if draining && self.poll_idle() {
                return;
            } else {
                backoff.wait();
            }
        }
    }

    /// Makes [`Self::serve`] return, now and later, once no call is left to answer.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Makes [`Self::serve`] return at once, now and later. Open calls stay open.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Number of calls on all devices that have begun and have neither ended nor been dropped. Waits until
    /// other serving threads have finished their current poll.
    pub fn open_calls(&self) -> usize {
        let mut calls = 0;
        self.for_each_device(|device| calls += device.open_calls());
        calls
    }

    /// Number of open calls on all devices that wait for a thread of the host, not for their clients. Waits as
    /// [`Self::open_calls`] does.
    pub fn working_calls(&self) -> usize {
        let mut calls = 0;
        self.for_each_device(|device| calls += device.working_calls());
        calls
    }

    /// Polls once, like [`Self::poll`], but also waits until other serving threads have finished their current
    /// poll. Returns whether all calls that clients had made before are answered.
    pub fn poll_idle(&self) -> bool {
        let mut idle = true;
        // Polls every device, even if an earlier one is not idle.
        self.for_each_device(|device| idle &= !device.poll() && device.open_calls() == 0);
        idle
    }

    /// Calls `work` with each device, once no other thread is serving it.
    fn for_each_device(&self, mut work: impl FnMut(&mut Device)) {
        for served in &*self.devices() {
            let mut device = served.lock();
            if !served.is_removed.load(Ordering::Acquire) {
                work(&mut device);
            }
        }
    }

    /// All devices. The list is not locked while handlers run, because they may add devices.
    #[inline]
    fn devices(&self) -> Arc<[Arc<Served>]> {
        let devices = self.devices.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&devices.list)
    }
}

/// Duration of the first sleep. Hosts round up to about 50 µs.
const MIN_SLEEP: Duration = Duration::from_micros(1);

/// Increasing pauses of a thread between polls.
struct Backoff {
    idle: IdlePolicy,
    polls: u32,
    /// Time of the first sleep.
    since: Option<Instant>,
}

impl Backoff {
    fn new(idle: IdlePolicy) -> Self {
        Self {
            idle,
            polls: 0,
            since: None,
        }
    }

    fn wait(&mut self) {
        let IdlePolicy {
            spin_count,
            yield_count,
            max_sleep,
        } = self.idle;
        self.polls = self.polls.saturating_add(1);
        if self.polls <= spin_count {
            core::hint::spin_loop();
        } else if self.polls <= spin_count.saturating_add(yield_count) {
            thread::yield_now();
        } else {
            // No event can be waited for: a device writes memory, and has no means to wake a host thread.
            // LLVM's offload runtime also sleeps here, for 250 µs at a time (`RPC.cpp`).
            // The sleep is a fraction of the pause: after a short pause the first call is served soon, and a
            // long pause costs as little as `max_sleep` allows.
            let since = *self.since.get_or_insert_with(Instant::now);
            let sleep = since.elapsed() / 8;
            thread::sleep(sleep.clamp(MIN_SLEEP.min(max_sleep), max_sleep));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Client, HostLocks};
    use crate::layout::Layout;
    use crate::memory::{Memory, Region, Side};
    use crate::server::{Handlers, Limits, Opcodes};

    /// Without a serving thread, `poll_idle` itself answers the calls.
    #[test]
    fn requested_calls_are_answered_or_open() -> Result<(), Error> {
        let mut handlers = Handlers::new();
        handlers.on_request(1, |_| {})?;
        handlers.on_session(2, |mut port| async move {
            port.recv(|_| {}).await;
            port.recv(|_| {}).await;
            Ok(port)
        })?;
        let handlers = Arc::new(handlers);
        let server = Server::new(IdlePolicy::default());
        assert!(server.poll_idle());
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
            server.add_device(device);
        }
        assert!(server.poll_idle());
        for client in &clients {
            let mut call = client.open(1, 1);
            call.send(|_| {});
            // The first poll serves a port; the second finds none.
            assert_eq!((server.poll_idle(), server.poll_idle()), (false, true));
            assert!(call.recv(|_| {}).is_some());
        }
        let mut calls: Vec<_> = clients.iter().map(|client| client.open(2, 1)).collect();
        for (before, call) in calls.iter_mut().enumerate() {
            call.send(|_| {});
            assert_eq!((server.open_calls(), server.poll_idle()), (before, false));
        }
        assert_eq!((server.open_calls(), server.poll_idle()), (2, false));
        for call in &mut calls {
            call.send(|_| {});
        }
        assert_eq!(
            (server.poll_idle(), server.poll_idle(), server.open_calls()),
            (false, true, 0)
        );
        Ok(())
    }

    /// The second of two calls returns the port of the first one.
    #[test]
    fn a_handler_returns_its_own_port() -> Result<(), Error> {
        let mut handlers = Handlers::new();
        let first = Mutex::new(None);
        handlers.on_session(1, move |port| {
            let other = first.lock().expect("no holder panics").replace(port);
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
        // The first call is still in progress, and was not answered.
        assert_eq!((device.open_calls(), device.dropped_calls()), (1, 1));
        let answered = |port| client.memory().inbox(Side::Client, PortIndex::new(port));
        assert_eq!([0, 1].map(answered), [0, 0]);
        Ok(())
    }
}
