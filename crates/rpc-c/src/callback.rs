//! Functions of the program, and what is given to them.

use std::ffi::{c_char, c_int, c_void};

use gpustub_rpc::memory::Memory;
use gpustub_rpc::{PACKET_WORDS, Packets};

use crate::call::Call;

/// `gpurpc_alloc_ty`.
pub type Alloc = unsafe extern "C" fn(size: u64, data: *mut c_void) -> *mut c_void;
/// `gpurpc_free_ty`.
pub type Free = unsafe extern "C" fn(memory: *mut c_void, data: *mut c_void);
/// `gpurpc_opcode_callback_ty`.
pub type OpcodeCallback = unsafe extern "C" fn(port: *mut Call, data: *mut c_void);
/// `gpurpc_port_callback_ty`.
pub type PortCallback = unsafe extern "C" fn(buffer: *mut CBuffer, lane: u32, data: *mut c_void);
/// `gpurpc_recv_n_callback_ty`.
pub type RecvNCallback =
    unsafe extern "C" fn(messages: *const *mut c_void, sizes: *const u64, data: *mut c_void);
/// `gpurpc_send_n_callback_ty`.
pub type SendNCallback =
    unsafe extern "C" fn(lane: u32, size: *mut u64, data: *mut c_void) -> *const c_void;
/// `gpurpc_callback_ty`.
pub type PlainCallback = unsafe extern "C" fn(data: *mut c_void);
/// `gpurpc_fault_callback_ty`.
pub type FaultCallback = unsafe extern "C" fn(fault: *const CFault, data: *mut c_void);

/// `gpurpc_device_t`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct CDevice {
    /// 0 is none.
    pub handle: u64,
}

/// `gpurpc_buffer_t`.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct CBuffer {
    /// All of it.
    pub data: [u64; PACKET_WORDS],
}

/// `gpurpc_fault_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CFault {
    /// Of the call.
    pub device: CDevice,
    /// Of the device.
    pub port: u32,
    /// What the client asks for.
    pub opcode: u32,
    /// Why it was dropped.
    pub status: c_int,
    /// 0.
    pub reserved: u32,
    /// A sentence.
    pub text: *const c_char,
}

/// A function of the program, with its data.
#[derive(Clone, Copy, Debug)]
pub struct Callback<F> {
    function: F,
    data: *mut c_void,
}

// SAFETY: the header says that functions are called, and data used, by any thread.
unsafe impl<F> Send for Callback<F> {}
// SAFETY: as above.
unsafe impl<F> Sync for Callback<F> {}

impl<F> Callback<F> {
    pub fn new(function: F, data: *mut c_void) -> Self {
        Self { function, data }
    }
}

impl Callback<OpcodeCallback> {
    /// A call begins.
    pub fn begin(&self, call: &Call) {
        // SAFETY: the function is what the header says of it; the call is there until it returns.
        unsafe { (self.function)(std::ptr::from_ref(call).cast_mut(), self.data) }
    }
}

impl Callback<PortCallback> {
    /// Has the packet of each lane changed.
    pub fn each<M: Memory>(&self, packets: &mut Packets<'_, M>) {
        for lane in packets.lanes() {
            // A copy: the device may write to the packet at any time.
            let mut buffer = CBuffer {
                data: std::array::from_fn(|word| packets.word(lane, word)),
            };
            // SAFETY: the function is what the header says of it.
            unsafe { (self.function)(&mut buffer, lane, self.data) }
            for (word, value) in buffer.data.into_iter().enumerate() {
                packets.set_word(lane, word, value);
            }
        }
    }
}

impl Callback<RecvNCallback> {
    /// Hands over the messages of 64 lanes.
    pub fn done(&self, messages: &[*mut c_void; 64], sizes: &[u64; 64]) {
        // SAFETY: the function is what the header says of it; it gets 64 elements each.
        unsafe { (self.function)(messages.as_ptr(), sizes.as_ptr(), self.data) }
    }
}

impl Callback<SendNCallback> {
    /// The message of a lane.
    pub fn message(&self, lane: u32) -> Bytes {
        let mut size = 0;
        // SAFETY: the function is what the header says of it.
        let start = unsafe { (self.function)(lane, &mut size, self.data) };
        // No object is larger than that.
        let size = usize::try_from(size).map_or(0, |size| size.min(isize::MAX as usize));
        Bytes {
            start: start.cast(),
            size: if start.is_null() { 0 } else { size },
        }
    }
}

impl Callback<PlainCallback> {
    /// Has it done.
    pub fn call(&self) {
        // SAFETY: the function is what the header says of it.
        unsafe { (self.function)(self.data) }
    }
}

impl Callback<FaultCallback> {
    /// A call was dropped.
    pub fn dropped(&self, fault: &CFault) {
        // SAFETY: the function is what the header says of it.
        unsafe { (self.function)(fault, self.data) }
    }
}

impl Callback<Alloc> {
    /// New memory.
    pub fn alloc(&self, size: u64) -> *mut c_void {
        // SAFETY: the function is what the header says of it.
        unsafe { (self.function)(size, self.data) }
    }
}

impl Callback<Free> {
    /// Gives memory back.
    pub fn free(&self, memory: *mut c_void) {
        // SAFETY: the function is what the header says of it; nothing uses the memory any more.
        unsafe { (self.function)(memory, self.data) }
    }
}

/// Bytes of the program, which stay as they are while they are sent.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    start: *const u8,
    size: usize,
}

// SAFETY: nobody writes them: see the header.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Bytes {
    pub const NONE: Self = Self {
        start: std::ptr::null(),
        size: 0,
    };

    pub fn get(&self) -> &[u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: the header says that there are as many, and for how long.
        unsafe { std::slice::from_raw_parts(self.start, self.size) }
    }
}
