//! Blocking callbacks.

mod support;

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::mpsc::channel;
use std::thread;

use gpurpc_capi::*;
use support::{
    ABANDONED, BUSY, CALL, DUPLICATE_OPCODE, INVALID_ARGUMENT, OUT_OF_MEMORY, SUCCESS, Seen,
    Server, increment, options, with_seen,
};

/// Results of the operations of a callback, and its server.
struct Log {
    server: *mut gpurpc_capi::Server,
    results: RefCell<Vec<c_int>>,
    /// Call of an outer callback.
    call: Cell<*mut Blocking>,
}

impl Log {
    fn new(server: &Server) -> Self {
        Self {
            server: server.0,
            results: RefCell::default(),
            call: Cell::new(null_mut()),
        }
    }

    fn push(&self, result: c_int) {
        self.results.borrow_mut().push(result);
    }

    fn results(&self) -> Vec<c_int> {
        self.results.take()
    }
}

/// Data of a callback.
///
/// # Safety
///
/// `data` is the registered pointer.
unsafe fn log<'l>(data: *mut c_void) -> &'l Log {
    // SAFETY: as the caller promises.
    unsafe { &*data.cast() }
}

unsafe extern "C" fn converse(call: *mut Blocking, data: *mut c_void) {
    let (mut messages, mut sizes) = ([null_mut(); 64], [7; 64]);
    // SAFETY: the call is valid, the data is the registered pointer, and the arrays have 64 elements.
    unsafe {
        with_seen(data, |seen| {
            seen.began += 1;
            seen.opcode = gpurpc_blocking_opcode(call);
            seen.mask = gpurpc_blocking_lane_mask(call);
        });
        assert_ne!(gpurpc_blocking_device(call).handle, 0);
        assert_eq!(
            gpurpc_blocking_recv_and_send(call, Some(increment), data),
            SUCCESS
        );
        let (texts, bytes) = (messages.as_mut_ptr(), sizes.as_mut_ptr());
        assert_eq!(gpurpc_blocking_recv_n(call, texts, bytes), SUCCESS);
        for lane in 0..64 {
            let takes_part = gpurpc_blocking_lane_mask(call) >> lane & 1 != 0;
            assert_eq!(
                (messages[lane].is_null(), sizes[lane] == 0),
                (!takes_part, !takes_part)
            );
            assert!(messages[lane].addr() % 16 == 0);
        }
        assert_eq!(gpurpc_blocking_send_n(call, texts.cast(), bytes), SUCCESS);
        with_seen(data, |seen| seen.ended += 1);
    }
}

#[test]
fn operations_have_happened_when_they_return() {
    let server = Server::new();
    let seen = RefCell::new(Seen::default());
    assert_eq!(server.register(CALL, converse, &seen), SUCCESS);
    assert_eq!(server.register(CALL, converse, &seen), DUPLICATE_OPCODE);
    let options = options(4, 32);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    let text = |lane: u32| vec![lane as u8; 300 + lane as usize];
    let texts: Vec<_> = (0..32).map(text).collect();
    for round in 1..=3 {
        let mut call = client.open(CALL, 0x8000_0011);
        call.send(|packets| {
            packets
                .lanes()
                .for_each(|lane| packets.set_word(lane, 0, 8))
        });
        call.recv(|packets| {
            packets
                .lanes()
                .for_each(|lane| assert_eq!(packets.word(lane, 0), 9))
        });
        call.send_n(|lane| &texts[lane as usize]);
        let mut received = vec![Vec::<u8>::new(); 32];
        call.recv_n(|lane, _, bytes| received[lane as usize].extend(bytes));
        for lane in call.lanes() {
            assert_eq!(received[lane as usize], texts[lane as usize]);
        }
        let seen = seen.borrow();
        assert_eq!((seen.began, seen.ended), (round, round));
        assert_eq!((seen.opcode, seen.mask), (CALL, 0x8000_0011));
    }
}

/// Receives two packets, and tries all functions that a callback must not use.
unsafe extern "C" fn misuse(call: *mut Blocking, data: *mut c_void) {
    unsafe extern "C" fn reenter(_: *mut CBuffer, _: u32, data: *mut c_void) {
        // SAFETY: the call is valid.
        let status = unsafe { gpurpc_blocking_recv(data.cast(), None, null_mut()) };
        assert_eq!(status, BUSY);
    }
    // SAFETY: the call is valid; the data is the registered pointer.
    unsafe {
        let log = log(data);
        for _ in 0..2 {
            let received = gpurpc_blocking_recv(call, Some(reenter), call.cast());
            let mut results = log.results.borrow_mut();
            let device = gpurpc_blocking_device(call);
            results.push(received);
            results.push(gpurpc_serve(log.server));
            results.push(gpurpc_device_reset_ports(log.server, device, null_mut()));
            results.push(gpurpc_server_destroy(log.server));
            if received == ABANDONED {
                results.push(gpurpc_blocking_send(call, None, null_mut()));
            }
        }
    }
}

#[test]
fn servers_are_busy_in_a_callback() {
    let server = Server::new();
    let log = Log::new(&server);
    assert_eq!(server.register(CALL, misuse, &log), SUCCESS);
    let options = options(2, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    let mut call = client.open(CALL, 1);
    call.send(|_| {});
    server.poll();
    call.send(|_| {});
    server.poll();
    let each = [SUCCESS, BUSY, BUSY, BUSY];
    assert_eq!(log.results(), [each, each].concat());
    // The nesting is balanced again.
    // SAFETY: the server is valid.
    unsafe {
        assert_eq!(gpurpc_drain(server.0), SUCCESS);
        assert_eq!(gpurpc_serve(server.0), SUCCESS);
    }
}

/// A callback that waits when its device is removed.
#[test]
fn an_abandoned_callback_runs_to_its_end() {
    let server = Server::new();
    let log = Log::new(&server);
    assert_eq!(server.register(CALL, misuse, &log), SUCCESS);
    let options = options(2, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    client.open(CALL, 1).send(|_| {});
    server.poll();
    log.results();
    assert_eq!(server.remove(device), SUCCESS);
    // Outside of any poll, but still in a callback. The device is gone for resets.
    let [received, served, _, destroyed, sent] = log.results()[..] else {
        panic!("the callback has not ended");
    };
    assert_eq!((received, sent), (ABANDONED, ABANDONED));
    assert_eq!((served, destroyed), (BUSY, BUSY));
    // SAFETY: the server is valid.
    unsafe {
        assert_eq!(gpurpc_drain(server.0), SUCCESS);
        assert_eq!(gpurpc_serve(server.0), SUCCESS);
    }
}

/// The server stays while a callback waits on another thread, because it uses the program's data.
#[test]
fn a_server_stays_until_callbacks_of_other_threads_have_ended() {
    struct Shared(*mut gpurpc_capi::Server);
    // SAFETY: any thread may use a server.
    unsafe impl Sync for Shared {}

    let server = Server::new();
    let log = Log::new(&server);
    assert_eq!(server.register(CALL, misuse, &log), SUCCESS);
    let options = options(2, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    client.open(CALL, 1).send(|_| {});
    let shared = Shared(server.0);
    let (end, ended) = channel::<()>();
    let (polled, has_polled) = channel();
    thread::scope(|scope| {
        let shared = &shared;
        let serving = scope.spawn(move || {
            // SAFETY: the server is valid until this thread ends.
            let status = unsafe { gpurpc_poll(shared.0, null_mut()) };
            polled.send(status).expect("the test waits");
            assert!(ended.recv().is_err());
        });
        assert_eq!(has_polled.recv(), Ok(SUCCESS));
        // SAFETY: no thread uses the server.
        assert_eq!(unsafe { gpurpc_server_destroy(shared.0) }, BUSY);
        drop(end);
        // A scope alone does not wait for destructors of thread-local variables.
        serving.join().expect("the thread does not panic");
    });
    let results = log.results.borrow();
    assert_eq!((results.len(), results[4]), (9, ABANDONED));
    // The drop of the server destroys it.
}

/// Serves another device, whose callback uses the call.
unsafe extern "C" fn serve_another(call: *mut Blocking, data: *mut c_void) {
    // SAFETY: the call is valid; the data is the registered pointer.
    unsafe {
        let log = log(data);
        log.call.set(call);
        log.push(gpurpc_blocking_recv(call, None, null_mut()));
        log.push(gpurpc_poll(log.server, null_mut()));
        log.push(gpurpc_blocking_send(call, None, null_mut()));
    }
}

unsafe extern "C" fn use_outer(
    _: *const CBuffer,
    _: *mut CBuffer,
    _: u64,
    _: u32,
    data: *mut c_void,
) {
    unsafe extern "C" fn nothing(_: *mut c_void) {}
    // SAFETY: the outer callback waits for this one; the data is the registered pointer.
    unsafe {
        let log = log(data);
        let call = log.call.get();
        // Otherwise the poll of the outer callback would stop in its middle.
        log.push(gpurpc_blocking_recv(call, None, null_mut()));
        log.push(gpurpc_blocking_run(call, Some(nothing), null_mut()));
    }
}

#[test]
fn a_callback_of_a_nested_poll_cannot_wait() {
    const INNER: u32 = 0x7900_0002;
    let server = Server::new();
    let log = Log::new(&server);
    assert_eq!(server.register(CALL, serve_another, &log), SUCCESS);
    assert_eq!(server.register_warp(INNER, use_outer, &log), SUCCESS);
    let options = options(1, 1);
    let devices = [(); 2].map(|()| server.add(&options).expect("the device can be added"));
    let [outer, inner] = devices.map(|device| server.client(device, &options));
    let mut asked = inner.open(INNER, 1);
    let mut call = outer.open(CALL, 1);
    call.send(|_| {});
    asked.send(|_| {});
    server.poll();
    assert_eq!(log.results(), [SUCCESS, BUSY, BUSY, SUCCESS, SUCCESS]);
    assert!(call.recv(|_| {}).is_some() && asked.recv(|_| {}).is_some());
}

/// Runs a function on a worker thread, then drops the call.
unsafe extern "C" fn run_and_fail(call: *mut Blocking, data: *mut c_void) {
    unsafe extern "C" fn number(data: *mut c_void) {
        // SAFETY: a number of the callback, which waits.
        unsafe { *data.cast::<u64>() = 7 }
    }
    let mut value = 0_u64;
    // SAFETY: the call is valid; the data is the registered pointer.
    unsafe {
        let log = log(data);
        log.push(gpurpc_blocking_recv(call, None, null_mut()));
        log.push(gpurpc_blocking_run(
            call,
            Some(number),
            (&raw mut value).cast(),
        ));
        assert_eq!(value, 7);
        log.push(gpurpc_blocking_run(call, None, null_mut()));
        log.push(gpurpc_blocking_fail(call));
        log.push(gpurpc_blocking_send(call, None, null_mut()));
    }
}

#[test]
fn a_callback_runs_what_blocks_and_drops_its_call() {
    unsafe extern "C" fn report(fault: *const CFault, data: *mut c_void) {
        // SAFETY: the fault is valid; the data is the registered pointer.
        unsafe { log(data).push((*fault).status) }
    }
    let server = Server::new();
    let log = Log::new(&server);
    assert_eq!(server.register(CALL, run_and_fail, &log), SUCCESS);
    let data = (&raw const log).cast_mut().cast();
    // SAFETY: the server is valid.
    let status = unsafe { gpurpc_register_fault_callback(server.0, Some(report), data) };
    assert_eq!(status, SUCCESS);
    let options = options(1, 1);
    let device = server.add(&options).expect("the device can be added");
    server.client(device, &options).open(CALL, 1).send(|_| {});
    while log.results.borrow().len() < 6 {
        server.poll();
    }
    const HANDLER_FAILED: c_int = 0x100c;
    let expected = [
        SUCCESS,
        SUCCESS,
        INVALID_ARGUMENT,
        SUCCESS,
        HANDLER_FAILED,
        HANDLER_FAILED,
    ];
    assert_eq!(log.results(), expected);
}

#[test]
fn stacks_count_as_memory_of_the_device() {
    let server = Server::new();
    let log = Log::new(&server);
    assert_eq!(server.register(CALL, misuse, &log), SUCCESS);
    let options = DeviceOptions {
        memory_limit: 100_000,
        stack_size: 100_001,
        ..options(2, 1)
    };
    let device = server.add(&options).expect("the device can be added");
    server.client(device, &options).open(CALL, 1).send(|_| {});
    server.poll();
    assert_eq!(log.results()[4], OUT_OF_MEMORY);
}

#[test]
fn wrong_arguments_are_refused() {
    // SAFETY: null is allowed everywhere.
    unsafe {
        assert_eq!(
            gpurpc_register_blocking(null_mut(), CALL, Some(misuse), null_mut()),
            INVALID_ARGUMENT
        );
        assert_eq!(
            gpurpc_blocking_recv(null_mut(), None, null_mut()),
            INVALID_ARGUMENT
        );
        assert_eq!(
            gpurpc_blocking_send(null_mut(), None, null_mut()),
            INVALID_ARGUMENT
        );
        assert_eq!(
            gpurpc_blocking_recv_and_send(null_mut(), None, null_mut()),
            INVALID_ARGUMENT
        );
        assert_eq!(
            gpurpc_blocking_recv_n(null_mut(), null_mut(), null_mut()),
            INVALID_ARGUMENT
        );
        assert_eq!(
            gpurpc_blocking_send_n(null_mut(), null(), null()),
            INVALID_ARGUMENT
        );
        assert_eq!(
            gpurpc_blocking_run(null_mut(), None, null_mut()),
            INVALID_ARGUMENT
        );
        assert_eq!(gpurpc_blocking_fail(null_mut()), INVALID_ARGUMENT);
        assert_eq!(gpurpc_blocking_opcode(null()), 0);
        assert_eq!(gpurpc_blocking_lane_mask(null()), 0);
        assert_eq!(gpurpc_blocking_device(null()).handle, 0);
    }
    let server = Server::new();
    // SAFETY: the server is valid.
    let status = unsafe { gpurpc_register_blocking(server.0, CALL, None, null_mut()) };
    assert_eq!(status, INVALID_ARGUMENT);
}
