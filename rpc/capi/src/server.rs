//! `gpurpc_server_t`: devices by their numbers, and callbacks by their opcodes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpurpc::Layout;
use gpurpc::memory::{Region, Shared};
use gpurpc::server::{Device, DeviceId, Dropped, Handlers, Idle, Opcodes, Server as Serving};

use crate::call;
use crate::callback::{
    CDevice, CFault, Callback, FaultCallback, Free, OpcodeCallback, PortCallback,
};
use crate::libc::{self, Libc};
use crate::options::DeviceOptions;
use crate::status::Status;

/// A server.
pub struct Server {
    serving: Serving,
    registered: Mutex<Registered>,
    devices: Mutex<Devices>,
    /// How many threads poll or serve.
    users: AtomicUsize,
}

/// What the program has registered. Each device gets handlers of its own, which know it.
#[derive(Clone, Default)]
struct Registered {
    handlers: BTreeMap<u32, Handler>,
    fault: Option<Callback<FaultCallback>>,
    libc: Option<Arc<Libc>>,
    /// How many were added, or are being added: with one it is too late for more.
    devices: usize,
}

/// What serves an opcode.
#[derive(Clone, Copy)]
pub enum Handler {
    Call(Callback<OpcodeCallback>),
    Reply(Callback<PortCallback>),
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

impl Server {
    /// Without devices and callbacks.
    pub fn new(idle: Idle) -> Self {
        Self {
            serving: Serving::new(idle),
            registered: Mutex::default(),
            devices: Mutex::default(),
            users: AtomicUsize::new(0),
        }
    }

    /// Serves an opcode.
    pub fn register(&self, opcode: u32, handler: Handler) -> Result<(), Status> {
        let mut registered = self.open_registered()?;
        let is_of_libc = registered.libc.is_some() && libc::OPCODES.contains(&opcode);
        if is_of_libc || registered.handlers.contains_key(&opcode) {
            return Err(Status::HANDLED_OPCODE);
        }
        registered.handlers.insert(opcode, handler);
        Ok(())
    }

    /// Serves the opcodes of LLVM's libc.
    pub fn register_libc(&self, libc: Libc) -> Result<(), Status> {
        let mut registered = self.open_registered()?;
        let mut handled = registered.handlers.range(libc::OPCODES);
        if registered.libc.is_some() || handled.next().is_some() {
            return Err(Status::HANDLED_OPCODE);
        }
        registered.libc = Some(Arc::new(libc));
        Ok(())
    }

    /// Tells of calls that are dropped.
    pub fn register_fault(&self, callback: Callback<FaultCallback>) -> Result<(), Status> {
        self.open_registered()?.fault = Some(callback);
        Ok(())
    }

    fn open_registered(&self) -> Result<MutexGuard<'_, Registered>, Status> {
        let registered = lock(&self.registered);
        match registered.devices {
            0 => Ok(registered),
            _ => Err(Status::TOO_LATE),
        }
    }

    /// Serves a device.
    pub fn add(&self, options: &DeviceOptions) -> Result<CDevice, Status> {
        let layout = Layout::new(options.ports, options.lanes)?;
        let opcodes = options.opcodes()?;
        let registered = {
            let mut registered = lock(&self.registered);
            registered.devices += 1;
            registered.clone()
        };
        let added = self.add_with(registered, options, layout, opcodes);
        if added.is_err() {
            lock(&self.registered).devices -= 1;
        }
        added
    }

    fn add_with(
        &self,
        registered: Registered,
        options: &DeviceOptions,
        layout: Layout,
        opcodes: Opcodes,
    ) -> Result<CDevice, Status> {
        let device = {
            let mut devices = lock(&self.devices);
            devices.last += 1;
            CDevice {
                handle: devices.last,
            }
        };
        // What can fail and takes nothing of the program's comes first.
        let is_added = Arc::new(AtomicBool::new(false));
        let handlers = Arc::new(registered.handlers(device, &is_added)?);
        let memory = region(options, layout)?;
        is_added.store(true, Ordering::Release);
        let served = Device::new(memory.clone(), handlers, options.limits(), opcodes);
        // Under one lock: a callback may remove its device at once.
        let mut devices = lock(&self.devices);
        let id = self.serving.add(served);
        let size = layout.size();
        let entry = Entry { id, memory, size };
        devices.by_handle.insert(device.handle, entry);
        Ok(device)
    }

    /// Serves a device no longer.
    pub fn remove(&self, device: CDevice) -> Result<(), Status> {
        let entry = lock(&self.devices).by_handle.remove(&device.handle);
        let entry = entry.ok_or(Status::NO_DEVICE)?;
        Ok(self.serving.remove(entry.id)?)
    }

    /// The memory of a device, and its bytes.
    pub fn buffer(&self, device: CDevice) -> Result<(NonNull<u8>, usize), Status> {
        let devices = lock(&self.devices);
        let entry = devices.by_handle.get(&device.handle);
        let entry = entry.ok_or(Status::NO_DEVICE)?;
        Ok((entry.memory.start(), entry.size))
    }

    /// Once around. Gives whether there was anything.
    pub fn poll(&self) -> bool {
        let _use = Use::new(&self.users);
        self.serving.poll()
    }

    /// Until the end; not in a callback, whose own call would never end.
    pub fn serve(&self) -> Result<(), Status> {
        if DEPTH.get() > 0 {
            return Err(Status::BUSY);
        }
        let _use = Use::new(&self.users);
        self.serving.serve();
        Ok(())
    }

    /// Lets [`Self::serve`] come to its end.
    pub fn end(&self) {
        self.serving.end();
    }

    /// Lets [`Self::serve`] return at once.
    pub fn stop(&self) {
        self.serving.stop();
    }

    /// Whether a thread polls or serves.
    pub fn is_used(&self) -> bool {
        self.users.load(Ordering::Acquire) > 0
    }
}

impl Registered {
    fn handlers(self, device: CDevice, is_added: &Arc<AtomicBool>) -> Result<Handlers, Status> {
        let mut handlers = Handlers::new();
        if let Some(libc) = self.libc {
            libc.services(device, is_added)?.register(&mut handlers)?;
        }
        for (opcode, handler) in self.handlers {
            match handler {
                Handler::Call(callback) => {
                    handlers.talk(opcode, move |port| call::serve(port, device, callback))?;
                }
                Handler::Reply(callback) => {
                    handlers.reply(opcode, move |packets| callback.each(packets))?;
                }
            }
        }
        if let Some(callback) = self.fault {
            handlers.on_fault(move |dropped| report(dropped, device, callback));
        }
        Ok(handlers)
    }
}

/// Tells the program of a call that was dropped.
fn report(dropped: &Dropped, device: CDevice, callback: Callback<FaultCallback>) {
    // No fault has a zero byte in its sentence.
    let text = CString::new(dropped.fault.to_string()).unwrap_or_default();
    callback.dropped(&CFault {
        device,
        port: dropped.port,
        opcode: dropped.opcode,
        status: Status::of_fault(&dropped.fault).0,
        reserved: 0,
        text: text.as_ptr(),
    });
}

/// The memory of a device: that of the program, or what its function allocates, or memory of the process.
fn region(options: &DeviceOptions, layout: Layout) -> Result<Region, Status> {
    let size = layout.size();
    let alloc = options
        .alloc
        .map(|alloc| Callback::new(alloc, options.data));
    let free = options.free.map(|free| Callback::new(free, options.data));
    match (NonNull::new(options.memory), alloc) {
        (Some(memory), _) => {
            let given = usize::try_from(options.memory_size).unwrap_or(usize::MAX);
            // SAFETY: the header says what the memory is, and for how long.
            let memory = unsafe { Shared::new(memory.cast(), given, layout) }?;
            Ok(Region::new(memory, move |start| release(start, free)))
        }
        (None, Some(alloc)) => {
            let start = alloc.alloc(size as u64);
            let start = NonNull::new(start).ok_or(Status::OUT_OF_MEMORY)?;
            // SAFETY: as the header says of what the function gives.
            let memory = unsafe { Shared::new(start.cast(), size, layout) };
            let memory = memory.inspect_err(|_| {
                if let Some(free) = free {
                    free.free(start.as_ptr());
                }
            })?;
            // SAFETY: as many bytes were asked for, and nothing else knows of them yet.
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

thread_local! {
    /// How often this thread polls or serves: above 0 in callbacks.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A thread that polls or serves.
struct Use<'s>(&'s AtomicUsize);

impl<'s> Use<'s> {
    fn new(users: &'s AtomicUsize) -> Self {
        users.fetch_add(1, Ordering::AcqRel);
        DEPTH.set(DEPTH.get() + 1);
        Self(users)
    }
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Nothing that is locked here is left half-done by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
