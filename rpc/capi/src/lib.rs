//! The C interface of [`gpurpc`]: `include/gpurpc.h` says what each function does.
//!
//! Functions check what can be checked of a pointer, and give back a status, all of them by way of one
//! function that no panic gets through. There is no state but that of servers.
//!
//! # Pointers
//!
//! A pointer is null, or points to what its type says: to a server that was created and not destroyed, to
//! the port of a call that has not ended, to a struct that was filled in, to a place for an output, or to as
//! many bytes as the size beside it says. Functions of the program are what the header says of their type.

mod block;
mod call;
mod callback;
mod libc;
mod options;
mod port;
mod server;
mod status;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

use gpurpc::{CLIENT_SIZE, Layout};

pub use call::Call;
use callback::Callback;
pub use callback::{
    Alloc, CBuffer, CDevice, CFault, DeviceCallback, DeviceFree, DeviceMalloc, ExitCallback,
    FaultCallback, Free, HostCallCallback, OpcodeCallback, PlainCallback, PortCallback,
    ReadCallback, RecvNCallback, SendNCallback, SystemCallback, WriteCallback,
};
use libc::Libc;
pub use libc::LibcOptions;
pub use options::{DeviceOptions, ServerOptions};
pub use port::*;
use server::Handler;
pub use server::Server;
use status::{Status, run};

/// What a pointer points to.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers); it stays while `'a` lasts.
unsafe fn at<'a, T>(pointer: *const T) -> Result<&'a T, Status> {
    if !pointer.is_aligned() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or(Status::INVALID_ARGUMENT)
}

/// A place for an output.
fn place<T>(pointer: *mut T) -> Result<NonNull<T>, Status> {
    let place = NonNull::new(pointer).filter(|place| place.is_aligned());
    place.ok_or(Status::INVALID_ARGUMENT)
}

/// Makes a server.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_server_create(
    options: *const ServerOptions,
    server: *mut *mut Server,
) -> c_int {
    run(|| {
        let place = place(server)?;
        let idle = match options.is_null() {
            true => gpurpc::server::Idle::default(),
            // SAFETY: as the caller promises.
            false => unsafe { options::read(options) }?.idle(),
        };
        let server = Box::into_raw(Box::new(Server::new(idle)));
        // SAFETY: as the caller promises.
        unsafe { place.write(server) };
        Ok(())
    })
}

/// Removes a server.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers). No other thread uses the server.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_server_destroy(server: *mut Server) -> c_int {
    run(|| {
        if server.is_null() {
            return Ok(());
        }
        // SAFETY: as the caller promises.
        if unsafe { at(server) }?.is_used() {
            return Err(Status::BUSY);
        }
        // SAFETY: made by `gpurpc_server_create`, and nobody uses it.
        drop(unsafe { Box::from_raw(server) });
        Ok(())
    })
}

/// Serves an opcode.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_register_callback(
    server: *mut Server,
    opcode: u32,
    callback: Option<OpcodeCallback>,
    data: *mut c_void,
) -> c_int {
    run(|| {
        let callback = callback.ok_or(Status::INVALID_ARGUMENT)?;
        // SAFETY: as the caller promises.
        let server = unsafe { at(server) }?;
        server.register(opcode, Handler::Call(Callback::new(callback, data)))
    })
}

/// Serves an opcode whose calls are a packet and its answer.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_register_reply(
    server: *mut Server,
    opcode: u32,
    work: Option<PortCallback>,
    data: *mut c_void,
) -> c_int {
    run(|| {
        let work = work.ok_or(Status::INVALID_ARGUMENT)?;
        // SAFETY: as the caller promises.
        let server = unsafe { at(server) }?;
        server.register(opcode, Handler::Reply(Callback::new(work, data)))
    })
}

/// Serves the opcodes of LLVM's libc.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_register_libc(
    server: *mut Server,
    options: *const LibcOptions,
) -> c_int {
    run(|| {
        // SAFETY: as the caller promises.
        let (server, options) = unsafe { (at(server)?, options::read(options)?) };
        // SAFETY: as the caller promises.
        server.register_libc(unsafe { Libc::new(&options) }?)
    })
}

/// Tells of calls that are dropped.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_register_fault(
    server: *mut Server,
    callback: Option<FaultCallback>,
    data: *mut c_void,
) -> c_int {
    run(|| {
        let callback = callback.ok_or(Status::INVALID_ARGUMENT)?;
        // SAFETY: as the caller promises.
        let server = unsafe { at(server) }?;
        server.register_fault(Callback::new(callback, data))
    })
}

/// Bytes of the memory of a device.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_buffer_size(ports: u32, lanes: u32, size: *mut u64) -> c_int {
    run(|| {
        let place = place(size)?;
        let layout = Layout::new(ports, lanes)?;
        // SAFETY: as the caller promises.
        unsafe { place.write(layout.size() as u64) };
        Ok(())
    })
}

/// Serves a device.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_device_add(
    server: *mut Server,
    options: *const DeviceOptions,
    device: *mut CDevice,
) -> c_int {
    run(|| {
        let place = place(device)?;
        // SAFETY: as the caller promises.
        let (server, options) = unsafe { (at(server)?, options::read(options)?) };
        let device = server.add(&options)?;
        // SAFETY: as the caller promises.
        unsafe { place.write(device) };
        Ok(())
    })
}

/// Serves a device no longer.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_device_remove(server: *mut Server, device: CDevice) -> c_int {
    // SAFETY: as the caller promises.
    run(|| unsafe { at(server) }?.remove(device))
}

/// The memory of a device, and its bytes.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_device_buffer(
    server: *mut Server,
    device: CDevice,
    buffer: *mut *mut c_void,
    size: *mut u64,
) -> c_int {
    run(|| {
        // SAFETY: as the caller promises.
        let (start, bytes) = unsafe { at(server) }?.buffer(device)?;
        // SAFETY: as the caller promises.
        unsafe {
            if let Ok(place) = place(buffer) {
                place.write(start.as_ptr().cast());
            }
            if let Ok(place) = place(size) {
                place.write(bytes as u64);
            }
        }
        Ok(())
    })
}

/// Fills in a client.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_client_fill(
    client: *mut c_void,
    size: usize,
    buffer: u64,
    ports: u32,
) -> c_int {
    run(|| {
        let place = place(client.cast::<[u8; CLIENT_SIZE]>())?;
        // No device has such memory: it would find out in its first call.
        let no_memory = buffer == 0 || buffer % align_of::<u64>() as u64 != 0;
        if size < CLIENT_SIZE || no_memory {
            return Err(Status::INVALID_MEMORY);
        }
        // A client says nothing of lanes.
        let bytes = Layout::new(ports, 1)?.client(buffer);
        // SAFETY: as the caller promises.
        unsafe { place.write(bytes) };
        Ok(())
    })
}

/// Serves what there is now.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_poll(server: *mut Server, any: *mut c_int) -> c_int {
    run(|| {
        // SAFETY: as the caller promises.
        let served = unsafe { at(server) }?.poll();
        if let Ok(place) = place(any) {
            // SAFETY: as the caller promises.
            unsafe { place.write(c_int::from(served)) };
        }
        Ok(())
    })
}

/// Serves until the end.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_serve(server: *mut Server) -> c_int {
    run(|| {
        // SAFETY: as the caller promises.
        unsafe { at(server) }?.serve()
    })
}

/// Brings threads that serve to their end.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_end(server: *mut Server) -> c_int {
    run(|| {
        // SAFETY: as the caller promises.
        unsafe { at(server) }?.end();
        Ok(())
    })
}

/// Has threads that serve return at once.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_stop(server: *mut Server) -> c_int {
    run(|| {
        // SAFETY: as the caller promises.
        unsafe { at(server) }?.stop();
        Ok(())
    })
}

/// A sentence for a status.
#[unsafe(no_mangle)]
pub extern "C" fn gpurpc_strerror(status: c_int) -> *const c_char {
    status::text(status).as_ptr()
}
