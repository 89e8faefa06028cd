//! Threads that serve devices.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::task::Waker;

use super::device::Device;
use super::idle::{Backoff, IdlePolicy};
#[cfg(feature = "blocking")]
use super::serving_thread::end_abandoned;
use super::sleepers::{Awake, Epoch, Sleepers, WaitHooks};
use crate::error::Error;
use crate::layout::PortIndex;
use crate::memory::Region;

/// Identifies a device of a server. Returned by [`Server::add_device`] and never reused.
///
/// ```
/// use std::sync::Arc;
///
/// use gpurpc::memory::Region;
/// use gpurpc::server::{Device, Handlers, IdlePolicy, Limits, Server};
/// use gpurpc::{Error, Layout};
///
/// let memory = Region::zeroed(Layout::new(8, 32)?)?;
/// let device = Device::new(memory, Arc::new(Handlers::new()), Limits::default());
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
    /// Number of kernels that run, if the program announces them.
    kernels: Option<AtomicUsize>,
    has_doorbell: bool,
}

/// Event that a thread waits for after a poll without calls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Idleness {
    /// A change of the server, by [`Sleepers::wake`]: no kernel runs.
    NoKernel,
    /// A ring of a doorbell, which each device with a kernel has.
    Doorbells,
    /// A new call, of which only a poll informs.
    NoCall,
    /// The client of an open call.
    OpenCalls,
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
    #[inline]
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

    /// Whether the device has no kernel that could call.
    fn has_no_kernel(&self) -> bool {
        self.kernels
            .as_ref()
            .is_some_and(|kernels| kernels.load(Ordering::Acquire) == 0)
    }

    fn idleness(&self) -> Idleness {
        match self.try_lock() {
            // Open calls are those of warps that have ended.
            Some(_) if self.has_no_kernel() => Idleness::NoKernel,
            Some(device) if device.open_calls() > 0 => Idleness::OpenCalls,
            Some(_) if self.has_doorbell => Idleness::Doorbells,
            Some(_) => Idleness::NoCall,
            None => Idleness::OpenCalls,
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
/// use gpurpc::server::{Device, Handlers, IdlePolicy, Limits, Server};
/// use gpurpc::{Error, Layout};
///
/// let memory = Region::zeroed(Layout::new(8, 32)?)?;
/// let device = Device::new(memory, Arc::new(Handlers::new()), Limits::default());
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
    sleepers: Arc<Sleepers>,
}

impl Server {
    /// A server without devices.
    pub fn new(idle: IdlePolicy) -> Self {
        Self {
            idle,
            ..Self::default()
        }
    }

    /// Makes serving threads wait with functions of the program, before the server is used.
    #[must_use]
    pub fn with_wait_hooks(mut self, hooks: impl WaitHooks + 'static) -> Self {
        self.sleepers = Arc::new(Sleepers::with_hooks(hooks));
        self
    }

    /// Serves a device from now on.
    pub fn add_device(&self, mut device: Device) -> DeviceId {
        device.set_waker(Waker::from(Arc::clone(&self.sleepers)));
        let mut devices = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        let id = DeviceId(devices.next);
        devices.next += 1;
        if device.memory().is_own() {
            devices.memory.push(device.memory().clone());
        }
        let added = Arc::new(Served {
            id,
            is_removed: AtomicBool::new(false),
            kernels: device.announces_kernels().then(AtomicUsize::default),
            has_doorbell: device.has_doorbell(),
            device: Mutex::new(device),
            waiting: AtomicUsize::new(0),
        });
        devices.list = devices.list.iter().cloned().chain([added]).collect();
        drop(devices);
        self.wake();
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
        let index = list.iter().position(|served| served.id == id);
        let removed = list.remove(index.ok_or(Error::NoDevice)?);
        removed.is_removed.store(true, Ordering::Release);
        let before = std::mem::replace(&mut devices.list, list.into());
        // The function that releases the memory may use the server.
        drop(devices);
        drop((before, removed));
        self.wake();
        Ok(())
    }

    /// Announces a kernel of a device, before it is launched: the device may call from now on. Kernels are counted.
    /// Without effect on a device that does not [announce kernels](Device::with_announced_kernels).
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if the device was removed.
    pub fn begin_kernel(&self, id: DeviceId) -> Result<(), Error> {
        if let Some(kernels) = &self.device(id)?.kernels {
            kernels.fetch_add(1, Ordering::SeqCst);
            self.wake();
        }
        Ok(())
    }

    /// Announces that a kernel of a device has ended. Calls that it has made are still served.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if the device was removed, [`Error::NoKernel`] if all announced kernels have ended.
    pub fn end_kernel(&self, id: DeviceId) -> Result<(), Error> {
        if let Some(kernels) = &self.device(id)?.kernels {
            kernels
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| {
                    count.checked_sub(1)
                })
                .map_err(|_| Error::NoKernel)?;
            // A thread that sleeps without a limit has polled after the last kernel has ended.
            self.wake();
        }
        Ok(())
    }

    /// Makes all serving threads that sleep poll now, for example for a thread of the host that calls like a device.
    pub fn wake(&self) {
        self.sleepers.wake();
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
        let result = work(&mut self.device(id)?.lock());
        // `drain` may wait for a call that was reset.
        self.wake();
        Ok(result)
    }

    fn device(&self, id: DeviceId) -> Result<Arc<Served>, Error> {
        self.devices()
            .iter()
            .find(|served| served.id == id)
            .cloned()
            .ok_or(Error::NoDevice)
    }

    /// Polls once all devices that no other thread is serving. Returns whether any call was served.
    #[inline]
    pub fn poll(&self) -> bool {
        self.poll_devices().0
    }

    /// As [`Self::poll`]. Also returns whether another thread was using a device, which was not polled.
    #[inline]
    fn poll_devices(&self) -> (bool, bool) {
        #[cfg(feature = "blocking")]
        end_abandoned();
        let (mut any, mut skipped) = (false, false);
        for served in &*self.devices() {
            match served.try_lock() {
                Some(mut device) => {
                    any |= !served.is_removed.load(Ordering::Acquire) && device.poll_ports();
                }
                None => skipped = true,
            }
        }
        (any, skipped)
    }

    /// Serves on the calling thread until [`Self::drain`] or [`Self::stop`]. After `drain`, all calls that
    /// clients had made before it are answered first.
    pub fn serve(&self) {
        let mut backoff = Backoff::new(self.idle);
        loop {
            // Read first: every change that this iteration does not see has a later epoch, and ends the pause.
            let epoch = self.sleepers.epoch();
            if self.stopping.load(Ordering::Acquire) {
                return;
            }
            // Read before the poll, which therefore sees all calls made before `drain`.
            let draining = self.draining.load(Ordering::Acquire);
            let (any, skipped) = self.poll_devices();
            if any {
                backoff = Backoff::new(self.idle);
            } else if draining && self.poll_idle() {
                // Other threads may wait for the calls that this one has served.
                return self.wake();
            } else {
                self.pause(&mut backoff, epoch, skipped);
            }
        }
    }

    /// Pauses a thread whose last poll, after it has read `epoch`, has found no call.
    fn pause(&self, backoff: &mut Backoff, epoch: Epoch, skipped: bool) {
        let Some(sleep) = backoff.pause() else {
            return;
        };
        // A device that another thread used then may have a call from before its last kernel has ended.
        let idleness = if skipped {
            Idleness::OpenCalls
        } else {
            self.idleness()
        };
        let awake = match idleness {
            Idleness::NoKernel => self.sleepers.sleep(epoch, None),
            Idleness::Doorbells | Idleness::NoCall
                if self.sleepers.has_hooks() && backoff.waits_for_doorbell() =>
            {
                let is_announced = idleness == Idleness::Doorbells;
                let wait = if is_announced {
                    self.idle.max_wait
                } else {
                    sleep
                };
                let awake = self.sleepers.wait(epoch, wait);
                backoff.doorbell_rang(awake == Awake::Rang);
                awake
            }
            _ => self.sleepers.sleep(epoch, Some(sleep)),
        };
        if awake == Awake::Woken {
            *backoff = Backoff::new(self.idle);
        }
    }

    /// Event that a thread waits for after a poll without calls.
    fn idleness(&self) -> Idleness {
        self.devices()
            .iter()
            .map(|served| served.idleness())
            .max()
            .unwrap_or(Idleness::NoKernel)
    }

    /// Makes [`Self::serve`] return, now and later, once no call is left to answer.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        self.wake();
    }

    /// Makes [`Self::serve`] return at once, now and later. Open calls stay open.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake();
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

#[cfg(test)]
mod tests;
