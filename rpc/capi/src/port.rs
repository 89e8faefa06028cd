//! C functions for callbacks of a call.

use std::ffi::{c_int, c_void};

use crate::call::{Call, Operation};
use crate::callback::{
    CDevice, Callback, PlainCallback, PortCallback, RecvNCallback, SendNCallback,
};
use crate::pointer::deref;
use crate::status::{Status, catch_status};

/// Queues a receive of packets.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_recv(
    port: *mut Call,
    r#use: Option<PortCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    catch_status(|| unsafe { queue_packets(port, Operation::Recv, r#use, data) })
}

/// Queues a send of packets.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_send(
    port: *mut Call,
    fill: Option<PortCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    catch_status(|| unsafe { queue_packets(port, Operation::Send, fill, data) })
}

/// Queues a receive of packets that are sent back.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_recv_and_send(
    port: *mut Call,
    work: Option<PortCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    catch_status(|| unsafe { queue_packets(port, Operation::RecvAndSend, work, data) })
}

/// Queues an operation on one packet of each lane.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
unsafe fn queue_packets(
    port: *mut Call,
    operation: impl FnOnce(Option<Callback<PortCallback>>) -> Operation,
    callback: Option<PortCallback>,
    data: *mut c_void,
) -> Result<(), Status> {
    let callback = callback.map(|callback| Callback::new(callback, data));
    // SAFETY: guaranteed by the caller.
    unsafe { deref(port) }?.queue(operation(callback));
    Ok(())
}

/// Queues a receive of messages.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_recv_n(
    port: *mut Call,
    done: Option<RecvNCallback>,
    data: *mut c_void,
) -> c_int {
    catch_status(|| {
        let done = Callback::new(done.ok_or(Status::INVALID_ARGUMENT)?, data);
        // SAFETY: guaranteed by the caller.
        unsafe { deref(port) }?.queue(Operation::RecvN(done));
        Ok(())
    })
}

/// Queues a send of messages.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_send_n(
    port: *mut Call,
    message: Option<SendNCallback>,
    data: *mut c_void,
) -> c_int {
    catch_status(|| {
        let message = Callback::new(message.ok_or(Status::INVALID_ARGUMENT)?, data);
        // SAFETY: guaranteed by the caller.
        unsafe { deref(port) }?.queue(Operation::SendN(message));
        Ok(())
    })
}

/// Queues a function that is called after the operations before it.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_on_sent(
    port: *mut Call,
    callback: Option<PlainCallback>,
    data: *mut c_void,
) -> c_int {
    catch_status(|| {
        let callback = Callback::new(callback.ok_or(Status::INVALID_ARGUMENT)?, data);
        // SAFETY: guaranteed by the caller.
        unsafe { deref(port) }?.queue(Operation::OnSent(callback));
        Ok(())
    })
}

/// Queues work that may block.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_run_blocking(
    port: *mut Call,
    work: Option<PlainCallback>,
    data: *mut c_void,
) -> c_int {
    catch_status(|| {
        let work = Callback::new(work.ok_or(Status::INVALID_ARGUMENT)?, data);
        // SAFETY: guaranteed by the caller.
        unsafe { deref(port) }?.queue(Operation::RunBlocking(work));
        Ok(())
    })
}

/// Allocates memory that is released with the call.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_alloc(port: *mut Call, size: u64) -> *mut c_void {
    let mut memory = std::ptr::null_mut();
    // The caller learns only that the result is null.
    catch_status(|| {
        let size = usize::try_from(size).map_err(|_| Status::OUT_OF_MEMORY)?;
        // SAFETY: guaranteed by the caller.
        let start = unsafe { deref(port) }?.alloc(size);
        memory = start.map_err(|fault| Status::from_fault(&fault))?.cast();
        Ok(())
    });
    memory
}

/// Registers a function that is called when the call has ended.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_on_close(
    port: *mut Call,
    callback: Option<PlainCallback>,
    data: *mut c_void,
) -> c_int {
    catch_status(|| {
        let callback = Callback::new(callback.ok_or(Status::INVALID_ARGUMENT)?, data);
        // SAFETY: guaranteed by the caller.
        unsafe { deref(port) }?.on_close(callback);
        Ok(())
    })
}

/// Drops a call.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_fail(port: *mut Call) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { deref(port) }?.fail();
        Ok(())
    })
}

/// Opcode of a call.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_opcode(port: *const Call) -> u32 {
    // SAFETY: guaranteed by the caller.
    unsafe { deref(port) }.map_or(0, |call| call.opcode)
}

/// Bit mask of the participating lanes.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_lane_mask(port: *const Call) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { deref(port) }.map_or(0, |call| call.mask)
}

/// Device of a call.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_device(port: *const Call) -> CDevice {
    // SAFETY: guaranteed by the caller.
    unsafe { deref(port) }.map_or_else(|_| CDevice::default(), |call| call.device)
}
