//! Operations of a callback.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;

use gpurpc::PACKET_WORDS;
use gpurpc::server::{BlockingCall, Fault};

use crate::types::Alloc;

/// `rpc_port_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RpcPort {
    /// Address of the call.
    pub handle: u64,
    /// Number of lanes of the device.
    pub lane_size: u32,
}

/// `rpc_buffer_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RpcBuffer {
    /// Words of the packet.
    pub data: [u64; PACKET_WORDS],
}

/// `rpc_opcode_callback_ty`.
pub type OpcodeCallback = unsafe extern "C" fn(port: RpcPort, data: *mut c_void);
/// `rpc_port_callback_ty`.
pub type PortCallback = unsafe extern "C" fn(buffer: *mut RpcBuffer, data: *mut c_void);

/// A function of the program with its data.
#[derive(Clone, Copy)]
pub(crate) struct Callback<F> {
    function: F,
    data: *mut c_void,
}

// SAFETY: the program calls `rpc_handle_server` on the threads that may use its data.
unsafe impl<F> Send for Callback<F> {}
// SAFETY: as above.
unsafe impl<F> Sync for Callback<F> {}

impl<F> Callback<F> {
    pub fn new(function: F, data: *mut c_void) -> Self {
        Self { function, data }
    }
}

impl Callback<OpcodeCallback> {
    /// Calls the function with a call.
    pub fn call(&self, call: &mut BlockingCall<'_>, lane_size: u32) {
        let port = RpcPort {
            handle: NonNull::from(call).as_ptr().expose_provenance() as u64,
            lane_size,
        };
        // SAFETY: the function is as the header requires; the call exists until it returns.
        unsafe { (self.function)(port, self.data) }
    }
}

/// The call of a port.
struct Port<'c>(NonNull<BlockingCall<'c>>, PhantomData<&'c ()>);

impl Port<'_> {
    /// # Safety
    ///
    /// [Rules for all pointers](crate#pointers).
    unsafe fn new(port: RpcPort) -> Self {
        let call = std::ptr::with_exposed_provenance_mut(port.handle as usize);
        // SAFETY: guaranteed by the caller.
        Self(unsafe { NonNull::new_unchecked(call) }, PhantomData)
    }

    /// Runs an operation. LLVM's functions have no result: if the operation cannot happen, the callback ends here, and
    /// its stack stays until the device is destroyed.
    fn operate<T>(&self, operation: impl FnOnce(&mut BlockingCall<'_>) -> Result<T, Fault>) -> T {
        // SAFETY: as `new` requires; a callback has one operation at a time.
        let call = unsafe { &mut *self.0.as_ptr() };
        match operation(call) {
            Ok(value) => value,
            // SAFETY: no object of this library is on the stack, and the program does not use what is on it after
            // `rpc_server_shutdown`.
            Err(_) => unsafe { call.discard() },
        }
    }
}

/// Sends packets.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpc_send(
    port: RpcPort,
    callback: Option<PortCallback>,
    data: *mut c_void,
) {
    // SAFETY: guaranteed by the caller.
    let port = unsafe { Port::new(port) };
    port.operate(|call| call.send_copies(|packets| call_for_each(packets, callback, data)));
}

/// Receives packets.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpc_recv(
    port: RpcPort,
    callback: Option<PortCallback>,
    data: *mut c_void,
) {
    // SAFETY: guaranteed by the caller.
    let port = unsafe { Port::new(port) };
    port.operate(|call| call.recv_copies(|packets| call_for_each(packets, callback, data)));
}

/// Receives packets and sends them back.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpc_recv_and_send(
    port: RpcPort,
    callback: Option<PortCallback>,
    data: *mut c_void,
) {
    // SAFETY: guaranteed by the caller.
    let port = unsafe { Port::new(port) };
    port.operate(|call| {
        call.recv_copies(|packets| call_for_each(packets, callback, data))?;
        call.send(|_| {})
    });
}

/// Calls a function with the packet of each lane.
fn call_for_each(
    packets: &mut gpurpc::PacketCopies,
    callback: Option<PortCallback>,
    data: *mut c_void,
) {
    let Some(callback) = callback else { return };
    for lane in packets.lanes() {
        let buffer = std::ptr::from_mut(packets.get_mut(lane)).cast();
        // SAFETY: the function is as the header requires.
        unsafe { callback(buffer, data) }
    }
}

/// Receives messages.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpc_recv_n(
    port: RpcPort,
    dst: *mut *mut c_void,
    size: *mut u64,
    alloc: Option<Alloc>,
    data: *mut c_void,
) {
    // SAFETY: guaranteed by the caller.
    let port = unsafe { Port::new(port) };
    port.operate(|call| {
        let messages = call.recv_n()?;
        for lane in call.lanes() {
            let message = messages.get(lane).unwrap_or_default();
            let bytes = message.len();
            // SAFETY: the function is as the header requires, and returns as many bytes; the arrays have this lane.
            unsafe {
                let start = match alloc {
                    Some(alloc) => alloc(bytes as u64, data),
                    None => std::ptr::null_mut(),
                };
                if start.is_null() && bytes > 0 {
                    let fault = Fault::Other("the program cannot allocate the message");
                    call.fail(fault.clone());
                    return Err(fault);
                }
                if bytes > 0 {
                    start
                        .cast::<u8>()
                        .copy_from_nonoverlapping(message.as_ptr(), bytes);
                }
                dst.add(lane as usize).write(start);
                size.add(lane as usize).write(bytes as u64);
            }
        }
        Ok(())
    });
}

/// Sends messages.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpc_send_n(port: RpcPort, src: *const *const c_void, size: *mut u64) {
    // SAFETY: guaranteed by the caller.
    let port = unsafe { Port::new(port) };
    port.operate(|call| {
        call.send_n(|lane| {
            // SAFETY: guaranteed by the caller; the arrays have this lane.
            unsafe {
                let (start, bytes) = (
                    src.add(lane as usize).read(),
                    size.add(lane as usize).read(),
                );
                let bytes = usize::try_from(bytes).unwrap_or(0).min(isize::MAX as usize);
                if start.is_null() || bytes == 0 {
                    return &[];
                }
                std::slice::from_raw_parts(start.cast::<u8>(), bytes)
            }
        })
    });
}
