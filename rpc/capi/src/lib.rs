//! C interface of [`gpurpc`], documented in `include/gpurpc.h`.
//!
//! Functions validate pointers as far as possible and return a status; none lets a panic reach C. Servers hold
//! all state.
//!
//! # Pointers
//!
//! A pointer is null or points to a valid object of its type: a server that was created and not destroyed, the
//! call of a blocking callback that has not returned, an initialised struct, writable memory for an output, or as many bytes as
//! the size next to it states. Functions of the program are as the header requires for their type.

mod blocking;
mod callback;
mod client;
mod libc;
mod nesting;
mod options;
mod pointer;
mod server;
mod status;

use std::ffi::{c_char, c_int, c_void};

use gpurpc::PACKET_WORDS;

pub use blocking::*;
use callback::Callback;
pub use callback::{
    Alloc, CBuffer, CDevice, CFault, DeviceCallback, DeviceFree, DeviceMalloc, ExitCallback,
    FaultCallback, Free, HostCallCallback, PlainCallback, PortCallback, ReadCallback,
    SystemCallback, WaitCallback, WarpCallback, WriteCallback,
};
pub use client::*;
use libc::Libc;
pub use libc::LibcOptions;
pub use options::{DeviceOptions, ServerOptions};
use options::{Options, saturating_usize};
use pointer::{deref, output};
use server::Handler;
pub use server::Server;
use status::{Status, catch_status};

/// Creates a server.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_server_create(
    options: *const ServerOptions,
    server: *mut *mut Server,
) -> c_int {
    catch_status(|| {
        let output = output(server)?;
        let options = if options.is_null() {
            ServerOptions::ZERO
        } else {
            // SAFETY: guaranteed by the caller.
            unsafe { options::read(options) }?
        };
        let server = Box::new(Server::new(options.idle(), options.hooks()?));
        let server = Box::into_raw(server);
        // SAFETY: guaranteed by the caller.
        unsafe { output.write(server) };
        Ok(())
    })
}

/// Destroys a server.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers). No other thread uses the server.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_server_destroy(server: *mut Server) -> c_int {
    catch_status(|| {
        if server.is_null() {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        unsafe { deref(server) }?.close()?;
        // SAFETY: created by `gpurpc_server_create`, and no longer used.
        drop(unsafe { Box::from_raw(server) });
        Ok(())
    })
}

/// Registers the callback of an opcode that answers all lanes of a warp at once.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_register_warp(
    server: *mut Server,
    opcode: u32,
    words: u32,
    answer: Option<WarpCallback>,
    data: *mut c_void,
) -> c_int {
    catch_status(|| {
        let answer = answer.ok_or(Status::INVALID_ARGUMENT)?;
        let words = saturating_usize(words.into());
        if !(1..=PACKET_WORDS).contains(&words) {
            return Err(Status::INVALID_ARGUMENT);
        }
        // SAFETY: guaranteed by the caller.
        let server = unsafe { deref(server) }?;
        server.register(opcode, Handler::Warp(words, Callback::new(answer, data)))
    })
}

/// Registers the blocking callback of an opcode.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_register_blocking(
    server: *mut Server,
    opcode: u32,
    callback: Option<BlockingCallback>,
    data: *mut c_void,
) -> c_int {
    catch_status(|| {
        let callback = callback.ok_or(Status::INVALID_ARGUMENT)?;
        // SAFETY: guaranteed by the caller.
        let server = unsafe { deref(server) }?;
        server.register(opcode, Handler::Blocking(Callback::new(callback, data)))
    })
}

/// Assigns unused opcodes.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_reserve_opcodes(
    server: *mut Server,
    count: u32,
    first: *mut u32,
) -> c_int {
    catch_status(|| {
        let output = output(first)?;
        // SAFETY: guaranteed by the caller.
        let opcode = unsafe { deref(server) }?.reserve_opcodes(count)?;
        // SAFETY: guaranteed by the caller.
        unsafe { output.write(opcode) };
        Ok(())
    })
}

/// Registers the services of LLVM's libc.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_register_libc(
    server: *mut Server,
    options: *const LibcOptions,
) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        let (server, options) = unsafe { (deref(server)?, options::read(options)?) };
        // SAFETY: guaranteed by the caller.
        server.register_libc(unsafe { Libc::new(&options) }?)
    })
}

/// Registers the callback for dropped and refused calls.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_register_fault_callback(
    server: *mut Server,
    callback: Option<FaultCallback>,
    data: *mut c_void,
) -> c_int {
    catch_status(|| {
        let callback = callback.ok_or(Status::INVALID_ARGUMENT)?;
        // SAFETY: guaranteed by the caller.
        let server = unsafe { deref(server) }?;
        server.register_fault_callback(Callback::new(callback, data))
    })
}

/// Adds a device.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_device_add(
    server: *mut Server,
    options: *const DeviceOptions,
    device: *mut CDevice,
) -> c_int {
    catch_status(|| {
        let output = output(device)?;
        // SAFETY: guaranteed by the caller.
        let (server, options) = unsafe { (deref(server)?, options::read(options)?) };
        let device = server.add_device(&options)?;
        // SAFETY: guaranteed by the caller.
        unsafe { output.write(device) };
        Ok(())
    })
}

/// Removes a device.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_device_remove(server: *mut Server, device: CDevice) -> c_int {
    // SAFETY: guaranteed by the caller.
    catch_status(|| unsafe { deref(server) }?.remove_device(device))
}

/// Resets a port of a device.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_device_reset_port(
    server: *mut Server,
    device: CDevice,
    port: u32,
) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { deref(server) }?.reset(device, Some(port))?;
        Ok(())
    })
}

/// Resets all ports of a device.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_device_reset_ports(
    server: *mut Server,
    device: CDevice,
    count: *mut u32,
) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        let reset = unsafe { deref(server) }?.reset(device, None)?;
        if let Ok(output) = output(count) {
            // SAFETY: guaranteed by the caller. A device has no more ports than a `u32`.
            unsafe { output.write(reset as u32) };
        }
        Ok(())
    })
}

/// Announces a kernel of a device.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_device_begin(server: *mut Server, device: CDevice) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { deref(server) }?.begin_kernel(device)
    })
}

/// Announces that a kernel of a device has ended.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_device_end(server: *mut Server, device: CDevice) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { deref(server) }?.end_kernel(device)
    })
}

/// Address and size of the memory of a device.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_device_buffer(
    server: *mut Server,
    device: CDevice,
    buffer: *mut *mut c_void,
    size: *mut u64,
) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        let (start, bytes) = unsafe { deref(server) }?.buffer(device)?;
        // SAFETY: guaranteed by the caller.
        unsafe {
            if let Ok(output) = output(buffer) {
                output.write(start.as_ptr().cast());
            }
            if let Ok(output) = output(size) {
                output.write(bytes as u64);
            }
        }
        Ok(())
    })
}

/// Polls all devices once.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_poll(server: *mut Server, any: *mut c_int) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        let served = unsafe { deref(server) }?.poll();
        if let Ok(output) = output(any) {
            // SAFETY: guaranteed by the caller.
            unsafe { output.write(c_int::from(served)) };
        }
        Ok(())
    })
}

/// Serves until drained or stopped.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_serve(server: *mut Server) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { deref(server) }?.serve()
    })
}

/// Serves on a thread of this library.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_server_start(server: *mut Server) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { deref(server) }?.start()
    })
}

/// Waits for the threads of this library.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_server_join(server: *mut Server) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { deref(server) }?.join()
    })
}

/// Makes serving threads that sleep poll now.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_wake(server: *mut Server) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { deref(server) }?.wake();
        Ok(())
    })
}

/// Makes serving threads return once all calls are answered.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_drain(server: *mut Server) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { deref(server) }?.drain();
        Ok(())
    })
}

/// Makes serving threads return at once.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_stop(server: *mut Server) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { deref(server) }?.stop();
        Ok(())
    })
}

/// Message for a status.
#[unsafe(no_mangle)]
pub extern "C" fn gpurpc_strerror(status: c_int) -> *const c_char {
    status::message(status).as_ptr()
}
