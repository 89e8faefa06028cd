//! C functions for the memory and the client of a device, which need no server.

use std::ffi::{c_int, c_void};

use crate::options::{self, DeviceOptions};
use crate::pointer::output;
use crate::status::{Status, catch_status};

/// Size in bytes of the memory of a device.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_buffer_size(
    options: *const DeviceOptions,
    size: *mut u64,
) -> c_int {
    catch_status(|| {
        let output = output(size)?;
        // SAFETY: guaranteed by the caller.
        let layout = unsafe { options::read(options) }?.layout()?;
        // SAFETY: guaranteed by the caller.
        unsafe { output.write(layout.size() as u64) };
        Ok(())
    })
}

/// Initialises a client.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_client_init(
    options: *const DeviceOptions,
    client: *mut c_void,
    size: usize,
    buffer: u64,
) -> c_int {
    catch_status(|| {
        let output = output(client.cast::<u8>())?;
        // SAFETY: guaranteed by the caller.
        let layout = unsafe { options::read(options) }?.layout()?;
        if size != layout.generation().client_size {
            return Err(Status::INVALID_GENERATION);
        }
        // Invalid on any device, which would only show in its first call.
        if buffer == 0 || buffer % layout.generation().alignment as u64 != 0 {
            return Err(Status::INVALID_MEMORY);
        }
        let bytes = layout.client(buffer);
        // SAFETY: guaranteed by the caller, as many bytes as `size` states.
        unsafe {
            output
                .as_ptr()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
        Ok(())
    })
}
