//! Callbacks of the program, and their arguments.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::time::Duration;

use gpurpc::memory::SharedMemory;
use gpurpc::server::{Buffer, Warp};
use gpurpc::{PACKET_WORDS, PacketCopies, Packets};

/// `gpurpc_alloc_ty`.
pub type Alloc = unsafe extern "C" fn(size: u64, data: *mut c_void) -> *mut c_void;
/// `gpurpc_free_ty`.
pub type Free = unsafe extern "C" fn(memory: *mut c_void, data: *mut c_void);
/// `gpurpc_wait_ty`.
pub type WaitCallback = unsafe extern "C" fn(timeout_ns: u64, data: *mut c_void) -> c_int;
/// `gpurpc_port_callback_ty`.
pub type PortCallback = unsafe extern "C" fn(buffer: *mut CBuffer, lane: u32, data: *mut c_void);
/// `gpurpc_warp_callback_ty`.
pub type WarpCallback = unsafe extern "C" fn(
    input: *const CBuffer,
    output: *mut CBuffer,
    mask: u64,
    lanes: u32,
    data: *mut c_void,
);
/// `gpurpc_callback_ty`.
pub type PlainCallback = unsafe extern "C" fn(data: *mut c_void);
/// `gpurpc_fault_callback_ty`.
pub type FaultCallback = unsafe extern "C" fn(fault: *const CFault, data: *mut c_void);
/// `gpurpc_read_ty`.
pub type ReadCallback =
    unsafe extern "C" fn(device: CDevice, bytes: *mut c_void, size: u64, data: *mut c_void) -> i64;
/// `gpurpc_write_ty`.
pub type WriteCallback = unsafe extern "C" fn(
    device: CDevice,
    stream: c_int,
    bytes: *const c_void,
    size: u64,
    data: *mut c_void,
) -> i64;
/// `gpurpc_exit_ty`.
pub type ExitCallback = unsafe extern "C" fn(device: CDevice, status: c_int, data: *mut c_void);
/// `gpurpc_device_callback_ty`.
pub type DeviceCallback = unsafe extern "C" fn(device: CDevice, data: *mut c_void);
/// `gpurpc_malloc_ty`.
pub type DeviceMalloc = unsafe extern "C" fn(device: CDevice, size: u64, data: *mut c_void) -> u64;
/// `gpurpc_malloc_free_ty`.
pub type DeviceFree = unsafe extern "C" fn(device: CDevice, address: u64, data: *mut c_void);
/// `gpurpc_system_ty`.
pub type SystemCallback =
    unsafe extern "C" fn(device: CDevice, command: *const c_char, data: *mut c_void) -> c_int;
/// `gpurpc_host_call_ty`.
pub type HostCallCallback = unsafe extern "C" fn(
    device: CDevice,
    function: u64,
    arguments: *mut c_void,
    size: u64,
    data: *mut c_void,
) -> u64;

/// `gpurpc_device_t`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct CDevice {
    /// 0: no device.
    pub handle: u64,
}

/// `gpurpc_buffer_t`.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct CBuffer {
    /// Words of the packet.
    pub data: [u64; PACKET_WORDS],
}

/// `gpurpc_fault_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CFault {
    /// Device of the call.
    pub device: CDevice,
    /// Index of the port.
    pub port: u32,
    /// Opcode of the call.
    pub opcode: u32,
    /// Reason for the drop, or `GPURPC_STATUS_REFUSED`.
    pub status: c_int,
    /// 0.
    pub reserved: u32,
    /// Message with the numbers.
    pub text: *const c_char,
}

/// A function of the program with its data.
#[derive(Clone, Copy, Debug)]
pub struct Callback<F> {
    function: F,
    data: *mut c_void,
}

// SAFETY: the header states that any thread may call the functions and use the data.
unsafe impl<F> Send for Callback<F> {}
// SAFETY: as above.
unsafe impl<F> Sync for Callback<F> {}

impl<F> Callback<F> {
    pub fn new(function: F, data: *mut c_void) -> Self {
        Self { function, data }
    }

    /// The function and its data.
    pub fn parts(self) -> (F, *mut c_void) {
        (self.function, self.data)
    }
}

impl Callback<PortCallback> {
    /// Calls the function with a copy of each lane's packet.
    #[inline]
    pub fn each(&self, packets: &mut PacketCopies) {
        for lane in packets.lanes() {
            let buffer = std::ptr::from_mut(packets.get_mut(lane)).cast();
            // SAFETY: the function is as the header requires.
            unsafe { (self.function)(buffer, lane, self.data) }
        }
    }

    /// Calls the function with each lane's packet itself.
    #[inline]
    pub fn each_in_place(&self, packets: &mut Packets<'_, SharedMemory>) {
        for lane in packets.lanes() {
            let buffer = packets.address(lane).as_ptr().cast();
            // SAFETY: the function is as the header requires; the program trusts the device.
            unsafe { (self.function)(buffer, lane, self.data) }
        }
    }
}

impl Callback<WarpCallback> {
    /// Calls the function with copies of the packets of all lanes, and the packets themselves for the answer.
    #[inline]
    pub fn answer(&self, warp: &mut Warp<'_>) {
        let (input, output) = (warp.input(), warp.output());
        let (mask, lanes) = (input.mask(), output.width());
        let (from, to) = (input.as_ptr().cast(), output.address(0).as_ptr().cast());
        // SAFETY: the function is as the header requires: it writes only to `to`.
        unsafe { (self.function)(from, to, mask, lanes, self.data) }
    }

    /// Calls the function with the packets themselves.
    #[inline]
    pub fn answer_in_place(&self, warp: &mut Warp<'_>) {
        let packets = warp.output();
        let start = packets.address(0).as_ptr().cast();
        let (mask, lanes) = (packets.mask(), packets.width());
        // SAFETY: the function is as the header requires; the program trusts the device.
        unsafe { (self.function)(start, start, mask, lanes, self.data) }
    }
}

impl Callback<PlainCallback> {
    /// Calls the function.
    pub fn call(&self) {
        // SAFETY: the function is as the header requires.
        unsafe { (self.function)(self.data) }
    }
}

impl Callback<FaultCallback> {
    /// Reports a dropped or refused call.
    pub fn report(&self, fault: &CFault) {
        // SAFETY: the function is as the header requires.
        unsafe { (self.function)(fault, self.data) }
    }
}

impl Callback<Alloc> {
    /// Allocates memory.
    pub fn alloc(&self, size: u64) -> *mut c_void {
        // SAFETY: the function is as the header requires.
        unsafe { (self.function)(size, self.data) }
    }
}

impl Callback<Free> {
    /// Frees memory.
    pub fn free(&self, memory: *mut c_void) {
        // SAFETY: the function is as the header requires; nothing uses the memory any more.
        unsafe { (self.function)(memory, self.data) }
    }
}

impl Callback<WaitCallback> {
    /// Waits for a doorbell. Returns whether the wait has ended before its time.
    pub fn wait(&self, timeout: Duration) -> bool {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the function is as the header requires.
        unsafe { (self.function)(timeout, self.data) != 0 }
    }
}

impl Callback<ReadCallback> {
    /// Reads standard input. Returns the number of bytes; negative: an error.
    pub fn read(&self, device: CDevice, into: &mut [u8]) -> i64 {
        let (to, size) = (into.as_mut_ptr().cast(), into.len() as u64);
        // SAFETY: the function is as the header requires: it writes no more than there is room for.
        unsafe { (self.function)(device, to, size, self.data) }
    }
}

impl Callback<WriteCallback> {
    /// Writes to a standard stream. Returns the number of bytes; negative: an error.
    pub fn write(&self, device: CDevice, stream: c_int, bytes: &[u8]) -> i64 {
        let (from, size) = (bytes.as_ptr().cast(), bytes.len() as u64);
        // SAFETY: the function is as the header requires.
        unsafe { (self.function)(device, stream, from, size, self.data) }
    }
}

impl Callback<ExitCallback> {
    /// Reports an exit of the program.
    pub fn exit(&self, device: CDevice, status: c_int) {
        // SAFETY: the function is as the header requires.
        unsafe { (self.function)(device, status, self.data) }
    }
}

impl Callback<DeviceCallback> {
    /// Calls the function for a device.
    pub fn call(&self, device: CDevice) {
        // SAFETY: the function is as the header requires.
        unsafe { (self.function)(device, self.data) }
    }
}

impl Callback<DeviceMalloc> {
    /// Allocates memory of the device. Returns its address, or 0.
    pub fn malloc(&self, device: CDevice, size: u64) -> u64 {
        // SAFETY: the function is as the header requires.
        unsafe { (self.function)(device, size, self.data) }
    }
}

impl Callback<DeviceFree> {
    /// Frees memory of the device.
    pub fn free(&self, device: CDevice, address: u64) {
        // SAFETY: the function is as the header requires; the address is one that the program has returned.
        unsafe { (self.function)(device, address, self.data) }
    }
}

impl Callback<SystemCallback> {
    /// Runs a command.
    pub fn run(&self, device: CDevice, command: &CStr) -> c_int {
        // SAFETY: the function is as the header requires.
        unsafe { (self.function)(device, command.as_ptr(), self.data) }
    }
}

impl Callback<HostCallCallback> {
    /// Calls a function of the host. Its arguments are copied to an address aligned for any struct.
    pub fn call(&self, device: CDevice, function: u64, arguments: &mut [u8]) -> u64 {
        let mut aligned =
            vec![AlignedBytes([0; Buffer::ALIGN]); arguments.len().div_ceil(Buffer::ALIGN).max(1)];
        for (word, bytes) in aligned.iter_mut().zip(arguments.chunks(Buffer::ALIGN)) {
            word.0[..bytes.len()].copy_from_slice(bytes);
        }
        let (start, size) = (aligned.as_mut_ptr().cast(), arguments.len() as u64);
        // SAFETY: the function is as the header requires; there are as many bytes.
        unsafe { (self.function)(device, function, start, size, self.data) }
    }
}

#[derive(Clone, Copy)]
#[repr(align(16))]
struct AlignedBytes([u8; Buffer::ALIGN]);

/// Bytes of the program, which stay unchanged while they are sent.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    start: *const u8,
    size: usize,
}

// SAFETY: the header forbids changes while they are sent.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Bytes at an address. Null is an empty message, regardless of the size.
    pub fn new(start: *const c_void, size: u64) -> Self {
        // No object is larger than `isize::MAX`.
        let size = usize::try_from(size).map_or(0, |size| size.min(isize::MAX as usize));
        Self {
            start: start.cast(),
            size: if start.is_null() { 0 } else { size },
        }
    }

    pub const EMPTY: Self = Self {
        start: std::ptr::null(),
        size: 0,
    };

    pub fn get(&self) -> &[u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: the header requires this size and lifetime.
        unsafe { std::slice::from_raw_parts(self.start, self.size) }
    }
}
