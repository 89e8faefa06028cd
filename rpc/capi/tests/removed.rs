//! Devices whose kernel has ended or hangs: memory after their removal, and ports that are served again.

#[macro_use]
mod support;

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use gpurpc_capi::*;
use support::{
    ABANDONED, BUSY, CALL, INVALID_ARGUMENT, NO_DEVICE, NewOptions, REFUSED, SUCCESS, Server,
    add_one,
};

/// A warp that hangs writes whenever it wakes up: the memory is neither unmapped nor handed to another device.
fn memory_of_the_library_outlives_its_device(options: NewOptions) {
    let server = Server::new();
    let options = options(64, 32);
    let device = server.add(&options).expect("a device");
    let (removed, size) = server.buffer(device).expect("its memory");
    assert_eq!(server.remove(device), SUCCESS);
    let last = removed.cast::<u64>().wrapping_add(size as usize / 8 - 1);
    // SAFETY: the header states that the memory stays until the server is destroyed.
    unsafe { last.write(42) };
    for _ in 0..8 {
        let device = server.add(&options).expect("a device");
        let (memory, _) = server.buffer(device).expect("its memory");
        assert_ne!(memory, removed);
        assert_eq!(server.remove(device), SUCCESS);
    }
    // SAFETY: as above.
    assert_eq!(unsafe { last.read() }, 42);
}

/// Waits for a second packet.
unsafe extern "C" fn wait(call: *mut Blocking, data: *mut c_void) {
    // SAFETY: the call is valid, and the data is the registered pointer.
    unsafe {
        assert_eq!(gpurpc_blocking_recv(call, None, null_mut()), SUCCESS);
        assert_eq!(gpurpc_blocking_recv(call, None, null_mut()), ABANDONED);
        let ended = &*data.cast::<Cell<u32>>();
        ended.set(ended.get() + 1);
    }
}

fn ports_are_reset_after_their_kernel(options: NewOptions) {
    let server = Server::new();
    let ended = Cell::new(0);
    assert_eq!(server.register_warp(CALL, add_one, &()), SUCCESS);
    assert_eq!(server.register(CALL + 1, wait, &ended), SUCCESS);
    let options = options(4, 1);
    let device = server.add(&options).expect("a device");
    let reset = |port| {
        // SAFETY: the server is valid.
        unsafe { gpurpc_device_reset_port(server.0, device, port) }
    };
    let reset_all = |count: &mut u32| {
        // SAFETY: the server is valid, and a place for the number.
        unsafe { gpurpc_device_reset_ports(server.0, device, count) }
    };
    let mut count = 9;
    for round in 0..3 {
        // A new client for each kernel: none of its ports is locked.
        let client = server.client(device, &options);
        // The second opcode waits, the third one has no callback.
        for (port, opcode) in (0..).zip([CALL, CALL + 1, CALL + 2, CALL + 1]) {
            let mut call = client.open(opcode, 1);
            assert_eq!(call.port().get(), port);
            call.send(|_| {});
            assert!(server.poll());
            // The kernel ends here.
            std::mem::forget(call);
        }
        assert_eq!(reset(3), SUCCESS);
        assert_eq!(ended.get(), 2 * round + 1, "its callback has returned");
        assert_eq!(reset_all(&mut count), SUCCESS);
        assert_eq!((count, ended.get()), (2, 2 * round + 2));
        assert_eq!(reset_all(&mut count), SUCCESS);
        assert_eq!(count, 0);
        // The next kernel.
        let client = server.client(device, &options);
        let calls: Vec<_> = (0..4)
            .map(|port| {
                let mut call = client.open(CALL, 1);
                assert_eq!(call.port().get(), port);
                call.send(|packets| packets.set_word(0, 0, 6));
                assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(7));
                call
            })
            .collect();
        drop(calls);
    }
    assert_eq!(reset(4), INVALID_ARGUMENT);
    assert_eq!(server.remove(device), SUCCESS);
    assert_eq!((reset(0), reset_all(&mut count)), (NO_DEVICE, NO_DEVICE));
}

/// Resets the ports of its own device, which is in use.
unsafe extern "C" fn reset_own(call: *mut Blocking, data: *mut c_void) {
    // SAFETY: the call is valid, and the data is a place for the server.
    unsafe {
        let device = gpurpc_blocking_device(call);
        let server = *data.cast::<*mut gpurpc_capi::Server>();
        assert_eq!(gpurpc_device_reset_ports(server, device, null_mut()), BUSY);
        assert_eq!(gpurpc_device_reset_port(server, device, 0), BUSY);
    }
}

fn callbacks_do_not_reset_ports(options: NewOptions) {
    let server = Server::new();
    assert_eq!(server.register(CALL, reset_own, &server.0), SUCCESS);
    let options = options(1, 1);
    let device = server.add(&options).expect("a device");
    let client = server.client(device, &options);
    let mut call = client.open(CALL, 1);
    call.send(|_| {});
    assert!(call.recv(|_| {}).is_some());
}

type Reports = RefCell<Vec<(u32, c_int, String)>>;

unsafe extern "C" fn report(fault: *const CFault, data: *mut c_void) {
    // SAFETY: the fault is valid, and the data is that of the registration.
    unsafe {
        let text = CStr::from_ptr((*fault).text).to_string_lossy().into_owned();
        let report = ((*fault).opcode, (*fault).status, text);
        (*data.cast::<Reports>()).borrow_mut().push(report);
    }
}

fn refused_calls_are_reported_and_answered(options: NewOptions) {
    let server = Server::new();
    server.1.set(true);
    let reports = Reports::default();
    let data = std::ptr::from_ref(&reports).cast_mut().cast();
    // SAFETY: all zero but the size: the defaults.
    let mut libc: LibcOptions = unsafe { std::mem::zeroed() };
    libc.struct_size = size_of::<LibcOptions>() as u64;
    // SAFETY: the server and the options are valid.
    unsafe {
        assert_eq!(gpurpc_register_libc(server.0, &libc), SUCCESS);
        assert_eq!(
            gpurpc_register_fault_callback(server.0, Some(report), data),
            SUCCESS
        );
    }
    let options = options(1, 1);
    let device = server.add(&options).expect("a device");
    let client = server.client(device, &options);
    let opcode = gpurpc::opcode::PRINTF_TO_STDOUT;
    for _ in 0..2 {
        let mut call = client.open(opcode, 1);
        call.send_n(|_| b"%n\0");
        assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(0));
        call.send_n(|_| b"");
        assert_eq!(call.recv(|packets| packets.word(0, 0) as i32), Some(-1));
        drop(call);
        let report = (opcode, REFUSED, "printf: %n is not allowed".to_owned());
        assert_eq!(reports.take(), [report]);
    }
}

for_each_generation!(
    memory_of_the_library_outlives_its_device,
    ports_are_reset_after_their_kernel,
    callbacks_do_not_reset_ports,
    refused_calls_are_reported_and_answered,
);
