//! The functions for callbacks of a call.

use std::ffi::{c_int, c_void};

use crate::at;
use crate::call::{Call, Operation};
use crate::callback::{
    CDevice, Callback, PlainCallback, PortCallback, RecvNCallback, SendNCallback,
};
use crate::status::{Status, run};

/// Waits for packets.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_recv(
    port: *mut Call,
    r#use: Option<PortCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    run(|| unsafe { packets(port, Operation::Recv, r#use, data) })
}

/// Sends packets.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_send(
    port: *mut Call,
    fill: Option<PortCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    run(|| unsafe { packets(port, Operation::Send, fill, data) })
}

/// Waits for packets, and sends them back.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_recv_and_send(
    port: *mut Call,
    work: Option<PortCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    run(|| unsafe { packets(port, Operation::RecvAndSend, work, data) })
}

/// Queues what is done with one packet of each lane.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
unsafe fn packets(
    port: *mut Call,
    operation: impl FnOnce(Option<Callback<PortCallback>>) -> Operation,
    callback: Option<PortCallback>,
    data: *mut c_void,
) -> Result<(), Status> {
    let callback = callback.map(|callback| Callback::new(callback, data));
    // SAFETY: as the caller promises.
    unsafe { at(port) }?.queue(operation(callback));
    Ok(())
}

/// Waits for messages.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_recv_n(
    port: *mut Call,
    done: Option<RecvNCallback>,
    data: *mut c_void,
) -> c_int {
    run(|| {
        let done = Callback::new(done.ok_or(Status::INVALID_ARGUMENT)?, data);
        // SAFETY: as the caller promises.
        unsafe { at(port) }?.queue(Operation::RecvN(done));
        Ok(())
    })
}

/// Sends messages.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_send_n(
    port: *mut Call,
    message: Option<SendNCallback>,
    data: *mut c_void,
) -> c_int {
    run(|| {
        let message = Callback::new(message.ok_or(Status::INVALID_ARGUMENT)?, data);
        // SAFETY: as the caller promises.
        unsafe { at(port) }?.queue(Operation::SendN(message));
        Ok(())
    })
}

/// Has work done that may wait.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_work(
    port: *mut Call,
    work: Option<PlainCallback>,
    data: *mut c_void,
) -> c_int {
    run(|| {
        let work = Callback::new(work.ok_or(Status::INVALID_ARGUMENT)?, data);
        // SAFETY: as the caller promises.
        unsafe { at(port) }?.queue(Operation::Work(work));
        Ok(())
    })
}

/// Memory that lasts as long as a call.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_alloc(port: *mut Call, size: u64) -> *mut c_void {
    let mut memory = std::ptr::null_mut();
    // Why there is none is not told here.
    run(|| {
        let size = usize::try_from(size).map_err(|_| Status::OUT_OF_MEMORY)?;
        // SAFETY: as the caller promises.
        let start = unsafe { at(port) }?.alloc(size);
        memory = start.map_err(|fault| Status::of_fault(&fault))?.cast();
        Ok(())
    });
    memory
}

/// Has a function called when a call has ended.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_at_end(
    port: *mut Call,
    end: Option<PlainCallback>,
    data: *mut c_void,
) -> c_int {
    run(|| {
        let end = Callback::new(end.ok_or(Status::INVALID_ARGUMENT)?, data);
        // SAFETY: as the caller promises.
        unsafe { at(port) }?.at_end(end);
        Ok(())
    })
}

/// Drops a call.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_fail(port: *mut Call) -> c_int {
    run(|| {
        // SAFETY: as the caller promises.
        unsafe { at(port) }?.fail();
        Ok(())
    })
}

/// What the client asks for.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_opcode(port: *const Call) -> u32 {
    // SAFETY: as the caller promises.
    unsafe { at(port) }.map_or(0, |call| call.opcode)
}

/// A bit for each lane that takes part.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_lane_mask(port: *const Call) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { at(port) }.map_or(0, |call| call.mask)
}

/// The device of a call.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_port_device(port: *const Call) -> CDevice {
    // SAFETY: as the caller promises.
    unsafe { at(port) }.map_or_else(|_| CDevice::default(), |call| call.device)
}
