//! Threads of the library, announced kernels, and functions for waiting.

mod support;

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::{NonNull, from_ref, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

use gpurpc::client::{Client, HostLocks};
use gpurpc::memory::SharedMemory;
use gpurpc_capi::*;
use support::{
    BUSY, CALL, INVALID_ARGUMENT, INVALID_STRUCT_SIZE, NO_DEVICE, SUCCESS, Server, add_one, options,
};

const IN_PLACE: u32 = 1;
const ANNOUNCED_KERNELS: u32 = 2;

fn server_options() -> ServerOptions {
    ServerOptions {
        struct_size: size_of::<ServerOptions>() as u64,
        spin_count: 1,
        yield_count: 1,
        max_sleep_ns: 50_000,
        wait: None,
        wake: None,
        data: null_mut(),
        // An hour: the test hangs if the end of a wait is lost.
        max_wait_ns: 3_600_000_000_000,
    }
}

fn create(options: &ServerOptions) -> Result<Server, c_int> {
    let mut server = null_mut();
    // SAFETY: valid options, and a place for the server.
    match unsafe { gpurpc_server_create(options, &mut server) } {
        SUCCESS => Ok(Server(server, true.into())),
        status => Err(status),
    }
}

fn client(
    server: &Server,
    device: CDevice,
    options: &DeviceOptions,
) -> Client<SharedMemory, HostLocks> {
    let (buffer, size) = server.buffer(device).expect("the device was added");
    let layout = options.layout().expect("the options are valid");
    let start = NonNull::new(buffer.cast()).expect("not null");
    // SAFETY: the memory stays valid until the server is destroyed.
    let memory = unsafe { SharedMemory::new(start, size as usize, layout) };
    Client::new(memory.expect("the size is right"), HostLocks::yielding())
}

fn increment(client: &Client<SharedMemory, HostLocks>, value: u64) {
    let mut call = client.open(CALL, 1);
    call.send(|packets| packets.set_word(0, 0, value));
    assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(value + 1));
}

unsafe extern "C" fn add_in_place(buffer: *mut CBuffer, _: u32, _: *mut c_void) {
    // SAFETY: the buffer is valid during the callback.
    unsafe { (*buffer).data[0] += 1 }
}

#[test]
fn options_of_waiting_are_checked() {
    unsafe extern "C" fn wait(_: u64, _: *mut c_void) -> c_int {
        0
    }
    unsafe extern "C" fn wake(_: *mut c_void) {}
    let options = server_options();
    let alone = [(Some(wait as WaitCallback), None), (None, Some(wake as _))];
    for (wait, wake) in alone {
        let incomplete = ServerOptions {
            wait,
            wake,
            ..options
        };
        assert_eq!(create(&incomplete).err(), Some(INVALID_ARGUMENT));
    }
    let first_size = offset_of!(ServerOptions, wait) as u64;
    for (struct_size, expected) in [
        (first_size, None),
        (first_size - 8, Some(INVALID_STRUCT_SIZE)),
    ] {
        let older = ServerOptions {
            struct_size,
            ..options
        };
        assert_eq!(create(&older).err(), expected);
    }
}

#[test]
fn announced_kernels_are_counted() {
    let server = create(&server_options()).expect("the options are valid");
    let with_flags = |flags| DeviceOptions {
        flags,
        ..options(1, 1)
    };
    assert_eq!(server.add(&with_flags(4)), Err(INVALID_ARGUMENT));
    let announced = server.add(&with_flags(ANNOUNCED_KERNELS | IN_PLACE));
    let announced = announced.expect("both flags are known");
    let polled = server.add(&with_flags(0)).expect("the options are valid");
    // SAFETY: the server is valid.
    let begin = |device| unsafe { gpurpc_device_begin(server.0, device) };
    // SAFETY: the server is valid.
    let end = |device| unsafe { gpurpc_device_end(server.0, device) };
    assert_eq!(end(announced), INVALID_ARGUMENT);
    assert_eq!([begin(announced), begin(announced)], [SUCCESS; 2]);
    assert_eq!([end(announced), end(announced)], [SUCCESS; 2]);
    assert_eq!(end(announced), INVALID_ARGUMENT);
    assert_eq!([begin(polled), end(polled), end(polled)], [SUCCESS; 3]);
    assert_eq!(server.remove(announced), SUCCESS);
    assert_eq!([begin(announced), end(announced)], [NO_DEVICE; 2]);
}

/// Tries to wait for its own thread, and to destroy its own server.
unsafe extern "C" fn join_and_destroy(call: *mut Blocking, data: *mut c_void) {
    // SAFETY: the data is the state of the test; the server is valid, and is not destroyed by a callback.
    unsafe {
        let (server, statuses) = &*data.cast::<(*mut gpurpc_capi::Server, [AtomicI32; 2])>();
        statuses[0].store(gpurpc_server_join(*server), Ordering::Relaxed);
        statuses[1].store(gpurpc_server_destroy(*server), Ordering::Relaxed);
        gpurpc_blocking_recv_and_send(call, Some(add_in_place), null_mut());
    }
}

#[test]
fn threads_of_the_library_serve_until_they_are_joined() {
    let state = (null_mut(), [const { AtomicI32::new(-1) }; 2]);
    let mut state = Box::new(state);
    let server = create(&server_options()).expect("the options are valid");
    state.0 = server.0;
    assert_eq!(server.register(CALL, join_and_destroy, &*state), SUCCESS);
    let device = DeviceOptions {
        flags: ANNOUNCED_KERNELS,
        ..options(4, 1)
    };
    let added = server.add(&device).expect("the options are valid");
    let client = client(&server, added, &device);
    for _ in 0..2 {
        // SAFETY: the server is valid.
        assert_eq!(unsafe { gpurpc_server_start(server.0) }, SUCCESS);
    }
    for round in 0..500 {
        // SAFETY: the server is valid.
        assert_eq!(unsafe { gpurpc_device_begin(server.0, added) }, SUCCESS);
        increment(&client, round);
        // SAFETY: the server is valid.
        assert_eq!(unsafe { gpurpc_device_end(server.0, added) }, SUCCESS);
    }
    let statuses = state
        .1
        .each_ref()
        .map(|status| status.load(Ordering::Relaxed));
    assert_eq!(statuses, [BUSY; 2]);
    // SAFETY: the server is valid.
    let ended = unsafe { [gpurpc_drain(server.0), gpurpc_server_join(server.0)] };
    assert_eq!(ended, [SUCCESS; 2]);
    // A thread of a server that drains returns at once.
    // SAFETY: the server is valid.
    let again = unsafe { [gpurpc_server_start(server.0), gpurpc_server_join(server.0)] };
    assert_eq!(again, [SUCCESS; 2]);
}

/// Destroying the server ends a thread that sleeps.
#[test]
fn threads_of_the_library_end_with_the_server() {
    for _ in 0..100 {
        let server = create(&server_options()).expect("the options are valid");
        // SAFETY: the server is valid.
        assert_eq!(unsafe { gpurpc_server_start(server.0) }, SUCCESS);
    }
}

/// A doorbell whose interrupts are notifications.
#[derive(Default)]
struct Signal {
    open_calls: AtomicU64,
    mailbox: AtomicU64,
    woken: Mutex<bool>,
    changed: Condvar,
    waits: AtomicU64,
}

unsafe extern "C" fn wait(timeout_ns: u64, data: *mut c_void) -> c_int {
    // SAFETY: the data is the signal.
    let signal = unsafe { &*data.cast::<Signal>() };
    assert_eq!(timeout_ns, server_options().max_wait_ns);
    signal.waits.fetch_add(1, Ordering::Relaxed);
    let woken = signal.woken.lock().expect("no holder panics");
    let silent = |woken: &mut bool| !*woken && signal.open_calls.load(Ordering::Relaxed) == 0;
    let woken = signal.changed.wait_while(woken, silent);
    *woken.expect("no holder panics") = false;
    1
}

unsafe extern "C" fn wake(data: *mut c_void) {
    // SAFETY: the data is the signal.
    let signal = unsafe { &*data.cast::<Signal>() };
    *signal.woken.lock().expect("no holder panics") = true;
    signal.changed.notify_all();
}

#[test]
fn functions_of_the_program_wait_for_a_doorbell() {
    let signal = Signal::default();
    let server = create(&ServerOptions {
        wait: Some(wait),
        wake: Some(wake),
        data: from_ref(&signal).cast_mut().cast(),
        ..server_options()
    });
    let server = server.expect("the options are valid");
    assert_eq!(server.register_warp(CALL, add_one, &()), SUCCESS);
    let device = DeviceOptions {
        generation: 23,
        doorbell_value: signal.open_calls.as_ptr(),
        doorbell_mailbox: signal.mailbox.as_ptr(),
        doorbell_event: 1,
        ..options(4, 1)
    };
    let added = server.add(&device).expect("the options are valid");
    let client = client(&server, added, &device);
    // SAFETY: the server is valid.
    assert_eq!(unsafe { gpurpc_server_start(server.0) }, SUCCESS);
    // An idle server waits.
    while signal.waits.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    for round in 0..500 {
        let mut call = client.open(CALL, 1);
        signal.open_calls.fetch_add(1, Ordering::Relaxed);
        call.send(|packets| packets.set_word(0, 0, round));
        // Half of the calls are announced by their interrupt, half by a thread of the host.
        if round % 2 == 0 {
            drop(signal.woken.lock());
            signal.changed.notify_all();
        } else {
            // SAFETY: the server is valid.
            assert_eq!(unsafe { gpurpc_wake(server.0) }, SUCCESS);
        }
        assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(round + 1));
    }
    drop(server);
}
