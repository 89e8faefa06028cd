//! A device, with its server, callbacks and client.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use gpurpc::memory::{Region, SharedMemory};
use gpurpc::server::{self, BlockingCall, DeviceId, Fault, Handlers, IdlePolicy, Limits, Server};
use gpurpc::{ClientBytes, Error, Generation, Layout, opcode};

use crate::port::{Callback, OpcodeCallback};
use crate::streams;
use crate::types::{ERROR, INVALID_LANE_SIZE, SUCCESS, UNHANDLED_OPCODE};

/// LLVM's server has no limits. Its callbacks run on the program's stacks.
const LIMITS: Limits = Limits {
    message: 256 << 20,
    // As many stacks as there are ports, and messages.
    memory: 8 << 30,
    stack: 1 << 20,
};

/// Libc's opcodes that only callbacks of the program serve: LLVM 19's server has no memory, and would call any function
/// of the host that the device names; 19 does not have the last two.
const NOT_SERVED: [u32; 5] = [
    opcode::MALLOC,
    opcode::FREE,
    opcode::HOST_CALL,
    opcode::RENAME,
    opcode::SYSTEM,
];

/// Callbacks of the program by opcode.
type Callbacks = Arc<Mutex<BTreeMap<u16, Callback<OpcodeCallback>>>>;

/// A device.
pub struct Device {
    server: Server,
    layout: Layout,
    /// Address of the memory, which the program has allocated.
    memory: NonNull<u8>,
    client: ClientBytes,
    callbacks: Callbacks,
    /// Added by the first `serve`, so that callbacks registered before win over libc's services.
    id: OnceLock<DeviceId>,
    /// Whether a thread serves, or has closed the device.
    is_busy: AtomicBool,
    /// Status of the first dropped call.
    status: Arc<AtomicI32>,
}

// SAFETY: the address is that of shared memory, which any thread may use.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// A device whose memory `alloc` returns.
    pub fn new(
        ports: u64,
        lanes: u32,
        alloc: impl FnOnce(u64) -> *mut c_void,
    ) -> Result<Self, c_int> {
        let ports = u32::try_from(ports).map_err(|_| ERROR)?;
        let layout = Layout::with_generation(Generation::LLVM_19, ports, lanes).map_err(
            |error| match error {
                Error::InvalidLaneSize(_) => INVALID_LANE_SIZE,
                _ => ERROR,
            },
        )?;
        let memory: NonNull<u8> = NonNull::new(alloc(layout.size() as u64).cast()).ok_or(ERROR)?;
        if memory.addr().get() % Generation::LLVM_19.alignment != 0 {
            return Err(ERROR);
        }
        // SAFETY: the program has allocated as many bytes, and no other code uses them yet.
        unsafe { memory.write_bytes(0, layout.size()) };
        Ok(Self {
            server: Server::new(IdlePolicy::default()),
            layout,
            memory,
            client: layout.client(memory.as_ptr().expose_provenance() as u64),
            callbacks: Callbacks::default(),
            id: OnceLock::new(),
            is_busy: AtomicBool::new(false),
            status: Arc::new(AtomicI32::new(SUCCESS)),
        })
    }

    /// Address of the initial client.
    pub fn client(&self) -> *const u8 {
        self.client.as_ptr()
    }

    /// Sets the callback of an opcode.
    pub fn register(&self, opcode: u16, callback: Callback<OpcodeCallback>) {
        lock(&self.callbacks).insert(opcode, callback);
    }

    /// Serves until no call can continue but those that wait for their clients.
    pub fn serve(&self) -> Result<(), c_int> {
        // A callback, or another thread, is in this function.
        if self.is_busy.swap(true, Ordering::Acquire) {
            return Ok(());
        }
        let result = self.serve_alone();
        self.is_busy.store(false, Ordering::Release);
        result
    }

    fn serve_alone(&self) -> Result<(), c_int> {
        if self.id.get().is_none() {
            let id = self.server.add_device(self.device()?);
            self.id.get_or_init(|| id);
        }
        // LLVM's server prints and reads in this function: output of device and program stays in order.
        while self.server.poll() || self.server.working_calls() > 0 {
            thread::yield_now();
        }
        match self.status.load(Ordering::Relaxed) {
            SUCCESS => Ok(()),
            status => Err(status),
        }
    }

    /// Ends all calls. Returns the memory, which nothing uses any more.
    pub fn close(&self) -> Result<NonNull<u8>, c_int> {
        if self.is_busy.swap(true, Ordering::Acquire) {
            return Err(ERROR);
        }
        if let Some(id) = self.id.get() {
            self.server.remove_device(*id).map_err(|_| ERROR)?;
        }
        Ok(self.memory)
    }

    /// The device for the server, with the handlers of all opcodes.
    fn device(&self) -> Result<server::Device, c_int> {
        let mut handlers = self.handlers().map_err(|_| ERROR)?;
        let status = Arc::clone(&self.status);
        handlers.on_fault(move |call| {
            let reason = match call.fault {
                Fault::UnknownOpcode => UNHANDLED_OPCODE,
                _ => ERROR,
            };
            let _ = status.compare_exchange(SUCCESS, reason, Ordering::Relaxed, Ordering::Relaxed);
        });
        // SAFETY: the header requires the size and lifetime of the memory.
        let memory = unsafe { SharedMemory::new(self.memory, self.layout.size(), self.layout) };
        // The program releases it after the server.
        let memory = Region::new(memory.map_err(|_| ERROR)?, |_| {});
        let handlers = Arc::new(handlers);
        Ok(server::Device::new(memory, handlers, LIMITS))
    }

    fn handlers(&self) -> Result<Handlers, Error> {
        let mut handlers = Handlers::new();
        handlers.on_other(self.callbacks());
        let registered: Vec<u16> = lock(&self.callbacks).keys().copied().collect();
        for number in registered {
            let opcode = opcode::LIBC_BASE | u32::from(number);
            if number < 0x8000 && !NOT_SERVED.contains(&opcode) {
                handlers.on_blocking(opcode, self.callbacks())?;
            }
        }
        for opcode in NOT_SERVED {
            handlers.on_blocking(opcode, self.callbacks())?;
        }
        streams::services()
            .on_exit(|status| std::process::exit(status))
            .on_abort(|| std::process::abort())
            .register_missing(&mut handlers);
        Ok(handlers)
    }

    /// A handler that calls the program's callback of the opcode.
    fn callbacks(
        &self,
    ) -> impl Fn(&mut BlockingCall<'_>) -> Result<(), Fault> + Send + Sync + 'static {
        let (callbacks, lanes) = (Arc::clone(&self.callbacks), self.layout.lanes());
        move |call| {
            // The narrow opcode is the lower half.
            let callback = lock(&callbacks).get(&(call.opcode() as u16)).copied();
            callback.ok_or(Fault::UnknownOpcode)?.call(call, lanes);
            Ok(())
        }
    }
}

/// Locks `mutex`, ignoring poison: no panic leaves the contents inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
