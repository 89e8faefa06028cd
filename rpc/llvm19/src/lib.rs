//! The RPC server library of LLVM 19's libc, over [`gpurpc`]: the functions of `include/llvmlibc_rpc_server.h`.
//!
//! Callbacks run as blocking handlers: LLVM's `recv` and `send` have happened when they return.
//!
//! # Pointers
//!
//! A pointer is null or points to a valid object of its type: a device that was created and not destroyed, the port of
//! a callback that has not returned, or an array with an element for each lane. Functions of the program are as the
//! header requires for their type.

mod device;
mod port;
mod streams;
mod types;

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use device::Device;
pub use port::*;
pub use types::{Alloc, Free};
use types::{ERROR, SUCCESS};

/// `rpc_device_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RpcDevice {
    /// Address of the device, or 0.
    pub handle: usize,
}

/// Runs the body of a function. No panic reaches the program.
fn status(body: impl FnOnce() -> Result<(), c_int>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(status)) => status,
        Err(_) => ERROR,
    }
}

/// The device of a handle.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
unsafe fn device<'d>(device: RpcDevice) -> Result<&'d Device, c_int> {
    let pointer = std::ptr::with_exposed_provenance::<Device>(device.handle);
    // SAFETY: guaranteed by the caller.
    unsafe { pointer.as_ref() }.ok_or(ERROR)
}

/// Creates a server for a device.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpc_server_init(
    rpc_device: *mut RpcDevice,
    num_ports: u64,
    lane_size: u32,
    alloc: Option<Alloc>,
    data: *mut c_void,
) -> c_int {
    status(|| {
        if rpc_device.is_null() {
            return Err(ERROR);
        }
        let alloc = alloc.ok_or(ERROR)?;
        let device = Device::new(num_ports, lane_size, |size| {
            // SAFETY: the function is as the header requires.
            unsafe { alloc(size, data) }
        });
        let device = Box::into_raw(Box::new(device?));
        // SAFETY: guaranteed by the caller.
        unsafe {
            rpc_device.write(RpcDevice {
                handle: device.expose_provenance(),
            });
        }
        Ok(())
    })
}

/// Destroys the server of a device.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers). No other thread uses the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpc_server_shutdown(
    rpc_device: RpcDevice,
    dealloc: Option<Free>,
    data: *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: guaranteed by the caller.
        let memory = unsafe { device(rpc_device) }?.close()?;
        let closed = std::ptr::with_exposed_provenance_mut::<Device>(rpc_device.handle);
        // SAFETY: created by `rpc_server_init`, and no longer used.
        drop(unsafe { Box::from_raw(closed) });
        if let Some(dealloc) = dealloc {
            // SAFETY: the function is as the header requires; the server is gone.
            unsafe { dealloc(memory.as_ptr().cast(), data) }
        }
        Ok(())
    })
}

/// Serves calls until none can continue.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpc_handle_server(rpc_device: RpcDevice) -> c_int {
    // SAFETY: guaranteed by the caller.
    status(|| unsafe { device(rpc_device) }?.serve())
}

/// Sets the callback of an opcode.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpc_register_callback(
    rpc_device: RpcDevice,
    opcode: u16,
    callback: Option<OpcodeCallback>,
    data: *mut c_void,
) -> c_int {
    status(|| {
        let callback = callback.ok_or(ERROR)?;
        // SAFETY: guaranteed by the caller.
        unsafe { device(rpc_device) }?.register(opcode, Callback::new(callback, data));
        Ok(())
    })
}

/// The initial client of a device.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpc_get_client_buffer(rpc_device: RpcDevice) -> *const c_void {
    // SAFETY: guaranteed by the caller.
    let device = unsafe { device(rpc_device) };
    device.map_or(std::ptr::null(), |device| device.client().cast())
}

/// Size in bytes of a client.
#[unsafe(no_mangle)]
pub extern "C" fn rpc_get_client_size() -> u64 {
    gpurpc::Generation::LLVM_19.client_size as u64
}
