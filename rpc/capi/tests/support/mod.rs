//! A server for the tests, and clients that share its thread.

#![allow(dead_code, unused_macros, reason = "not every test uses all of it")]

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null, null_mut};

use gpurpc::PortIndex;
use gpurpc::client::{Client, HostLocks, Locks};
use gpurpc::memory::SharedMemory;
use gpurpc_capi::*;

pub const SUCCESS: c_int = 0;
pub const INVALID_LANE_SIZE: c_int = 0x1002;
pub const INVALID_ARGUMENT: c_int = 0x1003;
pub const INVALID_PORT_COUNT: c_int = 0x1004;
pub const INVALID_MEMORY: c_int = 0x1005;
pub const OUT_OF_MEMORY: c_int = 0x1006;
pub const DUPLICATE_OPCODE: c_int = 0x1007;
pub const ALREADY_STARTED: c_int = 0x1008;
pub const NO_DEVICE: c_int = 0x1009;
pub const BUSY: c_int = 0x100a;
pub const INVALID_STRUCT_SIZE: c_int = 0x100e;
pub const REFUSED: c_int = 0x100f;
pub const INVALID_GENERATION: c_int = 0x1010;
pub const ABANDONED: c_int = 0x1011;

pub const CALL: u32 = 0x7900_0001;

/// A server, which is destroyed on drop; and whether clients also wait for other threads.
pub struct Server(pub *mut gpurpc_capi::Server, pub Cell<bool>);

impl Server {
    pub fn new() -> Self {
        let mut server = null_mut();
        // SAFETY: a place for it.
        let status = unsafe { gpurpc_server_create(null(), &mut server) };
        assert_eq!(status, SUCCESS);
        Self(server, Cell::new(false))
    }

    pub fn register<T>(&self, opcode: u32, callback: BlockingCallback, data: &T) -> c_int {
        let data = std::ptr::from_ref(data).cast_mut().cast();
        // SAFETY: the server is valid.
        unsafe { gpurpc_register_blocking(self.0, opcode, Some(callback), data) }
    }

    /// Registers a callback for warps that reads one word.
    pub fn register_warp<T>(&self, opcode: u32, callback: WarpCallback, data: &T) -> c_int {
        let data = std::ptr::from_ref(data).cast_mut().cast();
        // SAFETY: the server is valid.
        unsafe { gpurpc_register_warp(self.0, opcode, 1, Some(callback), data) }
    }

    pub fn add(&self, options: &DeviceOptions) -> Result<CDevice, c_int> {
        let mut device = CDevice::default();
        // SAFETY: the server is valid, and a place for the device.
        match unsafe { gpurpc_device_add(self.0, options, &mut device) } {
            SUCCESS => Ok(device),
            status => Err(status),
        }
    }

    pub fn remove(&self, device: CDevice) -> c_int {
        // SAFETY: the server is valid.
        unsafe { gpurpc_device_remove(self.0, device) }
    }

    pub fn buffer(&self, device: CDevice) -> Result<(*mut c_void, u64), c_int> {
        let (mut buffer, mut size) = (null_mut(), 0);
        // SAFETY: the server is valid, and places for both.
        match unsafe { gpurpc_device_buffer(self.0, device, &mut buffer, &mut size) } {
            SUCCESS => Ok((buffer, size)),
            status => Err(status),
        }
    }

    /// The mailbox of a port that the client reads.
    pub fn answered(&self, device: CDevice, options: &DeviceOptions, port: u32) -> u32 {
        let (buffer, _) = self.buffer(device).expect("the device is there");
        let layout = options.layout().expect("it was added");
        let mailbox = layout.primary() + 4 * port as usize;
        // SAFETY: a mailbox of the device's memory, and only this thread writes to it.
        unsafe { buffer.byte_add(mailbox).cast::<u32>().read() }
    }

    pub fn poll(&self) -> bool {
        let mut any = -1;
        // SAFETY: the server is valid.
        assert_eq!(unsafe { gpurpc_poll(self.0, &mut any) }, SUCCESS);
        assert!(any == 0 || any == 1);
        any == 1
    }

    /// A client of a device.
    pub fn client(
        &self,
        device: CDevice,
        options: &DeviceOptions,
    ) -> Client<SharedMemory, Polling<'_>> {
        let (buffer, size) = self.buffer(device).expect("the device is there");
        let layout = options.layout().expect("it was added");
        let start = NonNull::new(buffer.cast()).expect("there is memory");
        // SAFETY: the memory is there as long as the device, which is longer than the client.
        let memory = unsafe { SharedMemory::new(start, size as usize, layout) };
        let locks = Polling(self, HostLocks::new());
        Client::new(memory.expect("it was checked"), locks)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: no code uses the server any more.
        assert_eq!(unsafe { gpurpc_server_destroy(self.0) }, SUCCESS);
    }
}

/// Polls the server while waiting.
pub struct Polling<'s>(&'s Server, HostLocks);

impl Locks for Polling<'_> {
    fn try_lock(&self, port: PortIndex) -> bool {
        self.1.try_lock(port)
    }

    fn unlock(&self, port: PortIndex) {
        self.1.unlock(port);
    }

    fn relax(&self) {
        assert!(self.0.poll() || self.0.1.get(), "no answer");
    }
}

/// Makes the options of a device by its number of ports and of lanes.
pub type NewOptions = fn(u32, u32) -> DeviceOptions;

/// Runs each test with clients of LLVM 20 to 22 and of LLVM 23.
macro_rules! for_each_generation {
    ($($test:ident),* $(,)?) => {
        mod llvm_20 {
            $(#[test] fn $test() { super::$test(crate::support::options) })*
        }
        mod llvm_23 {
            $(#[test] fn $test() { super::$test(crate::support::options_of_llvm_23) })*
        }
    };
}

/// Memory of the process, for a client of LLVM 23.
pub fn options_of_llvm_23(ports: u32, lanes: u32) -> DeviceOptions {
    DeviceOptions {
        generation: 23,
        ..options(ports, lanes)
    }
}

/// Memory of the process.
pub fn options(ports: u32, lanes: u32) -> DeviceOptions {
    DeviceOptions {
        struct_size: size_of::<DeviceOptions>() as u64,
        ports,
        lanes,
        memory: null_mut(),
        memory_size: 0,
        alloc: None,
        free: None,
        data: null_mut(),
        opcodes: 0,
        generation: 0,
        message_limit: 0,
        memory_limit: 0,
        doorbell_value: null_mut(),
        doorbell_mailbox: null_mut(),
        doorbell_event: 0,
        flags: 0,
        stack_size: 0,
    }
}

/// Services of libc without functions.
pub fn none() -> LibcOptions {
    LibcOptions {
        struct_size: size_of::<LibcOptions>() as u64,
        read: None,
        write: None,
        root: null(),
        exit: None,
        abort: None,
        malloc: None,
        free: None,
        system: None,
        host_call: None,
        release: None,
        data: null_mut(),
        file_limit: 0,
        read_limit: 0,
        print_limit: 0,
        allocation_limit: 0,
    }
}

/// Events seen by a call's callbacks.
#[derive(Default)]
pub struct Seen {
    pub began: u32,
    pub ended: u32,
    pub opcode: u32,
    pub mask: u64,
    pub lanes: Vec<u32>,
    pub texts: Vec<Vec<u8>>,
}

/// Data of a callback.
///
/// # Safety
///
/// `data` is the registered pointer: a `RefCell<Seen>`, which one thread uses.
pub unsafe fn with_seen(data: *mut c_void, change: impl FnOnce(&mut Seen)) {
    // SAFETY: as the caller promises.
    let cell = unsafe { &*data.cast::<RefCell<Seen>>() };
    change(&mut cell.borrow_mut());
}

/// Adds one to the first word of a packet, and records its lane.
pub unsafe extern "C" fn increment(buffer: *mut CBuffer, lane: u32, data: *mut c_void) {
    // SAFETY: the buffer is valid; the data is the registered pointer.
    unsafe {
        (*buffer).data[0] += 1;
        (*buffer).data[7] = u64::from(lane);
        with_seen(data, |seen| seen.lanes.push(lane));
    }
}

/// Adds one to the first word of each lane.
pub unsafe extern "C" fn add_one(
    input: *const CBuffer,
    output: *mut CBuffer,
    mask: u64,
    _: u32,
    _: *mut c_void,
) {
    for lane in gpurpc::Lanes::from_mask(mask) {
        let lane = lane as usize;
        // SAFETY: the lane participates.
        unsafe { (*output.add(lane)).data[0] = (*input.add(lane)).data[0] + 1 }
    }
}
