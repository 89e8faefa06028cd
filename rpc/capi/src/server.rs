//! `gpurpc_server_t`: devices by handle, and callbacks by opcode.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use gpurpc::memory::{Memory, Region, SharedMemory};
use gpurpc::server::{self, Device, DeviceId, Doorbell, Fault, Handlers, IdlePolicy};
use gpurpc::{Layout, PortIndex};

use crate::blocking::BlockingCallback;
use crate::callback::{CDevice, CFault, Callback, FaultCallback, Free, WarpCallback};
use crate::libc::Libc;
use crate::nesting::{self, Nested};
use crate::options::{DeviceOptions, Hooks, saturating_usize};
use crate::status::Status;

/// A server.
pub struct Server {
    server: Arc<server::Server>,
    /// Started by this library.
    threads: Mutex<Vec<JoinHandle<()>>>,
    registrations: Mutex<Registrations>,
    devices: Mutex<Devices>,
    /// Number of threads inside `poll` or `serve`.
    users: AtomicUsize,
    /// Shared by all handlers with blocking callbacks, also by those that wait.
    blocking: Arc<()>,
}

/// Callbacks of the program. Each device has its own handlers, which pass its handle.
#[derive(Clone, Default)]
struct Registrations {
    handlers: BTreeMap<u32, Handler>,
    fault: Option<Callback<FaultCallback>>,
    libc: Option<Arc<Libc>>,
    /// Number of opcodes that were assigned by `reserve_opcodes`.
    reserved: u32,
    /// Number of devices added or being added. Callbacks cannot be registrations after the first one.
    devices: usize,
}

/// Callback of an opcode.
#[derive(Clone, Copy)]
pub enum Handler {
    Warp(usize, Callback<WarpCallback>),
    Blocking(Callback<BlockingCallback>),
}

#[derive(Default)]
struct Devices {
    last: u64,
    by_handle: BTreeMap<u64, Entry>,
}

struct Entry {
    id: DeviceId,
    memory: Region,
    size: usize,
}

/// Class of the opcodes that are assigned at run time. The last one is LLVM's `LAST`.
const RESERVED_BASE: u32 = 0xff00_0000;
const MAX_RESERVED: u32 = 0x00ff_ffff;

impl Server {
    /// A server without devices and callbacks.
    pub fn new(idle: IdlePolicy, hooks: Option<Hooks>) -> Self {
        let server = server::Server::new(idle);
        let server = match hooks {
            Some(hooks) => server.with_wait_hooks(hooks),
            None => server,
        };
        Self {
            server: Arc::new(server),
            threads: Mutex::default(),
            registrations: Mutex::default(),
            devices: Mutex::default(),
            users: AtomicUsize::new(0),
            blocking: Arc::default(),
        }
    }

    /// Registers the callback of an opcode.
    pub fn register(&self, opcode: u32, handler: Handler) -> Result<(), Status> {
        let mut registrations = self.modifiable_registrations()?;
        if registrations.handlers.contains_key(&opcode) {
            return Err(Status::DUPLICATE_OPCODE);
        }
        registrations.handlers.insert(opcode, handler);
        Ok(())
    }

    /// Assigns consecutive opcodes that no other part of the program has. Returns the first.
    pub fn reserve_opcodes(&self, count: u32) -> Result<u32, Status> {
        let mut registrations = lock(&self.registrations);
        let first = registrations.reserved;
        let end = first.checked_add(count).filter(|end| *end <= MAX_RESERVED);
        registrations.reserved = end.filter(|_| count > 0).ok_or(Status::INVALID_ARGUMENT)?;
        Ok(RESERVED_BASE | first)
    }

    /// Registers the services of LLVM's libc, for opcodes without a callback.
    pub fn register_libc(&self, libc: Libc) -> Result<(), Status> {
        let mut registrations = self.modifiable_registrations()?;
        if registrations.libc.is_some() {
            return Err(Status::DUPLICATE_OPCODE);
        }
        registrations.libc = Some(Arc::new(libc));
        Ok(())
    }

    /// Registers the callback for dropped and refused calls.
    pub fn register_fault_callback(&self, callback: Callback<FaultCallback>) -> Result<(), Status> {
        self.modifiable_registrations()?.fault = Some(callback);
        Ok(())
    }

    /// The registrations, if no device was added yet.
    fn modifiable_registrations(&self) -> Result<MutexGuard<'_, Registrations>, Status> {
        let registrations = lock(&self.registrations);
        match registrations.devices {
            0 => Ok(registrations),
            _ => Err(Status::ALREADY_STARTED),
        }
    }

    /// Adds a device.
    pub fn add_device(&self, options: &DeviceOptions) -> Result<CDevice, Status> {
        let (layout, doorbell) = (options.layout()?, options.doorbell()?);
        let registrations = {
            let mut registrations = lock(&self.registrations);
            registrations.devices += 1;
            registrations.clone()
        };
        let added = self.add_device_with(registrations, options, layout, doorbell);
        if added.is_err() {
            lock(&self.registrations).devices -= 1;
        }
        added
    }

    fn add_device_with(
        &self,
        registrations: Registrations,
        options: &DeviceOptions,
        layout: Layout,
        doorbell: Option<Doorbell>,
    ) -> Result<CDevice, Status> {
        let device = {
            let mut devices = lock(&self.devices);
            devices.last += 1;
            CDevice {
                handle: devices.last,
            }
        };
        // Fallible steps that take no resources of the program come first.
        let announced_kernels = options.announced_kernels()?;
        let is_added = Arc::new(AtomicBool::new(false));
        let handlers = Arc::new(registrations.handlers(
            device,
            &is_added,
            options.in_place()?,
            &self.blocking,
        )?);
        let memory = region(options, layout)?;
        is_added.store(true, Ordering::Release);
        let mut served = Device::new(memory.clone(), handlers, options.limits());
        if let Some(doorbell) = doorbell {
            served = served.with_doorbell(doorbell)?;
        }
        if announced_kernels {
            served = served.with_announced_kernels();
        }
        // Both under one lock, because a callback may remove its device at once.
        let mut devices = lock(&self.devices);
        let id = self.server.add_device(served);
        let size = layout.size();
        let entry = Entry { id, memory, size };
        devices.by_handle.insert(device.handle, entry);
        Ok(device)
    }

    /// Removes a device.
    pub fn remove_device(&self, device: CDevice) -> Result<(), Status> {
        let entry = lock(&self.devices).by_handle.remove(&device.handle);
        let entry = entry.ok_or(Status::NO_DEVICE)?;
        Ok(self.server.remove_device(entry.id)?)
    }

    /// Removes all devices, before the server is destroyed. Fails while blocking callbacks wait on other threads, which
    /// have yet to run to their ends.
    fn remove_all(&self) -> Result<(), Status> {
        let devices = std::mem::take(&mut lock(&self.devices).by_handle);
        for entry in devices.into_values() {
            self.server.remove_device(entry.id)?;
        }
        match Arc::strong_count(&self.blocking) {
            1 => Ok(()),
            _ => Err(Status::BUSY),
        }
    }

    /// Resets a port of a device, or all. Fails in a callback, whose own device is in use.
    pub fn reset(&self, device: CDevice, port: Option<u32>) -> Result<usize, Status> {
        let (id, ports) = {
            let devices = lock(&self.devices);
            let entry = devices.by_handle.get(&device.handle);
            let entry = entry.ok_or(Status::NO_DEVICE)?;
            (entry.id, entry.memory.layout().ports())
        };
        if port.is_some_and(|port| port >= ports) {
            return Err(Status::INVALID_ARGUMENT);
        }
        if nesting::depth() > 0 {
            return Err(Status::BUSY);
        }
        // Calls that are abandoned end in callbacks.
        let _guard = ServingGuard::new(&self.users);
        Ok(match port {
            Some(port) => self.server.reset_port(id, PortIndex::new(port))?.into(),
            None => self.server.reset_ports(id)?,
        })
    }

    /// Announces a kernel of a device.
    pub fn begin_kernel(&self, device: CDevice) -> Result<(), Status> {
        Ok(self.server.begin_kernel(self.id(device)?)?)
    }

    /// Announces that a kernel of a device has ended.
    pub fn end_kernel(&self, device: CDevice) -> Result<(), Status> {
        Ok(self.server.end_kernel(self.id(device)?)?)
    }

    fn id(&self, device: CDevice) -> Result<DeviceId, Status> {
        let devices = lock(&self.devices);
        let entry = devices.by_handle.get(&device.handle);
        Ok(entry.ok_or(Status::NO_DEVICE)?.id)
    }

    /// Address and size of the memory of a device.
    pub fn buffer(&self, device: CDevice) -> Result<(NonNull<u8>, usize), Status> {
        let devices = lock(&self.devices);
        let entry = devices.by_handle.get(&device.handle);
        let entry = entry.ok_or(Status::NO_DEVICE)?;
        Ok((entry.memory.start(), entry.size))
    }

    /// Polls all devices once. Returns whether any call was served.
    #[inline]
    pub fn poll(&self) -> bool {
        let _guard = ServingGuard::new(&self.users);
        self.server.poll()
    }

    /// Serves until drained or stopped. Fails in a callback, whose own call would never end.
    pub fn serve(&self) -> Result<(), Status> {
        if nesting::depth() > 0 {
            return Err(Status::BUSY);
        }
        let _guard = ServingGuard::new(&self.users);
        self.server.serve();
        Ok(())
    }

    /// Serves on another thread, until drained or stopped.
    pub fn start(&self) -> Result<(), Status> {
        let server = Arc::clone(&self.server);
        // An unnamed thread would inherit the name of the caller's.
        let thread = thread::Builder::new()
            .name("gpurpc".into())
            .spawn(move || {
                // Until the thread ends, as its blocking callbacks may end after it has served.
                std::mem::forget(Nested::new());
                server.serve();
            })
            .map_err(|_| Status::OUT_OF_MEMORY)?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    /// Waits until the threads of [`Self::start`] have returned. Fails in a callback, whose own thread may be one.
    pub fn join(&self) -> Result<(), Status> {
        if nesting::depth() > 0 {
            return Err(Status::BUSY);
        }
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // No panic leaves a callback of C.
            let _ = thread.join();
        }
        Ok(())
    }

    /// Makes all threads that sleep poll now.
    pub fn wake(&self) {
        self.server.wake();
    }

    /// Makes [`Self::serve`] return once all calls are answered.
    pub fn drain(&self) {
        self.server.drain();
    }

    /// Makes [`Self::serve`] return at once.
    pub fn stop(&self) {
        self.server.stop();
    }

    /// Ends the threads of [`Self::start`], and removes all devices. Fails if a thread of the program polls or serves, or has
    /// blocking callbacks that wait.
    pub fn close(&self) -> Result<(), Status> {
        if nesting::depth() > 0 || self.users.load(Ordering::Acquire) > 0 {
            return Err(Status::BUSY);
        }
        self.stop();
        self.join()?;
        self.remove_all()
    }
}

impl Registrations {
    fn handlers(
        self,
        device: CDevice,
        is_added: &Arc<AtomicBool>,
        in_place: bool,
        blocking: &Arc<()>,
    ) -> Result<Handlers, Status> {
        let mut handlers = Handlers::new();
        for (opcode, handler) in self.handlers {
            match handler {
                Handler::Warp(_, callback) if in_place => {
                    handlers.on_warp(opcode, 0, move |warp| callback.answer_in_place(warp))?;
                }
                Handler::Warp(words, callback) => {
                    handlers.on_warp(opcode, words, move |warp| callback.answer(warp))?;
                }
                Handler::Blocking(callback) => {
                    let in_use = Arc::clone(blocking);
                    handlers.on_blocking(opcode, move |call| {
                        let _kept = &in_use;
                        callback.block(call, device, in_place)
                    })?;
                }
            }
        }
        let mut data_use = None;
        if let Some(libc) = self.libc {
            let (services, of_services) = libc.services(device, is_added)?;
            services.register_missing(&mut handlers);
            data_use = Some(of_services);
        }
        let fault = self.fault;
        handlers.on_fault(move |dropped| {
            let _kept = &data_use;
            if let Some(callback) = fault {
                let status = Status::from_fault(&dropped.fault);
                let (port, opcode) = (dropped.port.get(), dropped.opcode);
                report(callback, device, (port, opcode), status, &dropped.fault);
            }
        });
        if let Some(callback) = self.fault {
            handlers.on_refusal(move |refused| {
                let (port, opcode) = (refused.port.get(), refused.opcode);
                report(
                    callback,
                    device,
                    (port, opcode),
                    Status::REFUSED,
                    &refused.reason,
                );
            });
        }
        Ok(handlers)
    }
}

/// Reports a dropped or refused call to the program: its port and opcode, and the reason.
fn report(
    callback: Callback<FaultCallback>,
    device: CDevice,
    (port, opcode): (u32, u32),
    status: Status,
    reason: &Fault,
) {
    // No message of a fault contains a zero byte.
    let text = CString::new(reason.to_string()).unwrap_or_default();
    callback.report(&CFault {
        device,
        port,
        opcode,
        status: status.0,
        reserved: 0,
        text: text.as_ptr(),
    });
}

/// Memory of a device: given by the program, allocated by its function, or memory of this process.
fn region(options: &DeviceOptions, layout: Layout) -> Result<Region, Status> {
    let size = layout.size();
    let alloc = options
        .alloc
        .map(|alloc| Callback::new(alloc, options.data));
    let free = options.free.map(|free| Callback::new(free, options.data));
    match (NonNull::new(options.memory), alloc) {
        (Some(memory), _) => {
            let memory_size = saturating_usize(options.memory_size);
            // SAFETY: the header requires the size and lifetime of the memory.
            let memory = unsafe { SharedMemory::new(memory.cast(), memory_size, layout) }?;
            Ok(Region::new(memory, move |start| release(start, free)))
        }
        (None, Some(alloc)) => {
            let start = NonNull::new(alloc.alloc(size as u64)).ok_or(Status::OUT_OF_MEMORY)?;
            // SAFETY: the header requires the size and lifetime of what the function returns.
            let memory = unsafe { SharedMemory::new(start.cast(), size, layout) }
                .inspect_err(|_| release(start.cast(), free))?;
            // SAFETY: the function has allocated as many bytes, and no other code uses them yet.
            unsafe { start.cast::<u8>().write_bytes(0, size) };
            Ok(Region::new(memory, move |start| release(start, free)))
        }
        (None, None) => Ok(Region::zeroed(layout)?),
    }
}

fn release(start: NonNull<u8>, free: Option<Callback<Free>>) {
    if let Some(free) = free {
        free.free(start.as_ptr().cast::<c_void>());
    }
}

/// Counts a thread inside `poll` or `serve`.
struct ServingGuard<'s>(&'s AtomicUsize, Nested);

impl<'s> ServingGuard<'s> {
    fn new(users: &'s AtomicUsize) -> Self {
        users.fetch_add(1, Ordering::AcqRel);
        Self(users, Nested::new())
    }
}

impl Drop for ServingGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Locks `mutex`, ignoring poison: no panic leaves the contents inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
