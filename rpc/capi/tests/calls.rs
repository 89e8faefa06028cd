//! Calls of clients through the C interface. Client and server share one thread: a waiting client polls
//! the server.

#[macro_use]
mod support;

use std::cell::RefCell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use gpurpc_capi::*;
use support::{
    ABANDONED, BUSY, CALL, NewOptions, OUT_OF_MEMORY, SUCCESS, Seen, Server, increment, options,
    with_seen,
};

/// Answers one packet.
unsafe extern "C" fn answer(call: *mut Blocking, data: *mut c_void) {
    // SAFETY: the call is valid; the data is the registered pointer.
    unsafe {
        with_seen(data, |seen| {
            seen.began += 1;
            seen.opcode = gpurpc_blocking_opcode(call);
            seen.mask = gpurpc_blocking_lane_mask(call);
        });
        assert_eq!(
            gpurpc_blocking_recv_and_send(call, Some(increment), data),
            SUCCESS
        );
        with_seen(data, |seen| seen.ended += 1);
    }
}

fn lanes_that_take_part_are_answered(options: NewOptions) {
    for (lanes, mask) in [(1, 1), (32, 0x8000_0011), (64, 1 << 63 | 6)] {
        let seen = RefCell::new(Seen::default());
        let server = Server::new();
        assert_eq!(server.register(CALL, answer, &seen), SUCCESS);
        let options = options(3, lanes);
        let device = server.add(&options).expect("the device can be added");
        assert!(!server.poll());
        let client = server.client(device, &options);
        let mut call = client.open(CALL, mask);
        call.send(|packets| {
            packets
                .lanes()
                .for_each(|lane| packets.set_word(lane, 0, 41))
        });
        call.recv(|packets| {
            for lane in packets.lanes() {
                assert_eq!(packets.word(lane, 0), 42);
                assert_eq!(packets.word(lane, 7), u64::from(lane));
            }
        });
        drop(call);
        let seen = seen.borrow();
        assert_eq!((seen.began, seen.ended), (1, 1));
        assert_eq!((seen.opcode, seen.mask), (CALL, mask));
        assert_eq!(
            seen.lanes,
            gpurpc::Lanes::from_mask(mask).collect::<Vec<_>>()
        );
    }
}

unsafe extern "C" fn read_value(buffer: *mut CBuffer, _: u32, value: *mut c_void) {
    // SAFETY: the buffer is valid; the data is a number.
    unsafe { *value.cast::<u64>() = (*buffer).data[0] }
}

unsafe extern "C" fn write_value(buffer: *mut CBuffer, _: u32, value: *mut c_void) {
    // SAFETY: the buffer is valid; the data is a number.
    unsafe { (*buffer).data[0] = *value.cast::<u64>() }
}

/// Returns messages unchanged; then receives a number, and sends as many packets.
unsafe extern "C" fn converse(call: *mut Blocking, data: *mut c_void) {
    // SAFETY: the call is valid; the data is the registered pointer.
    unsafe {
        converse_until_fault(call, data);
        with_seen(data, |seen| seen.ended += 1);
    }
}

/// # Safety
///
/// As for `converse`.
unsafe fn converse_until_fault(call: *mut Blocking, data: *mut c_void) {
    let (mut messages, mut sizes) = ([null_mut(); 64], [0; 64]);
    let mut rest = 0_u64;
    let value = (&raw mut rest).cast();
    // SAFETY: the call is valid; the arrays have 64 elements; the data is the registered pointer.
    unsafe {
        let (texts, bytes) = (messages.as_mut_ptr(), sizes.as_mut_ptr());
        if gpurpc_blocking_recv_n(call, texts, bytes) != SUCCESS {
            return;
        }
        for (lane, (message, size)) in messages.iter().zip(sizes).enumerate() {
            assert_eq!(*message as usize % 16, 0);
            let takes_part = gpurpc_blocking_lane_mask(call) >> lane & 1 == 1;
            assert_eq!(message.is_null(), !takes_part);
            let text = if takes_part {
                std::slice::from_raw_parts(message.cast::<u8>(), size as usize)
            } else {
                &[]
            };
            with_seen(data, |seen| seen.texts.push(text.to_vec()));
        }
        if gpurpc_blocking_send_n(call, texts.cast(), bytes) != SUCCESS
            || gpurpc_blocking_recv(call, Some(read_value), value) != SUCCESS
        {
            return;
        }
        while rest > 0 {
            if gpurpc_blocking_send(call, Some(write_value), value) != SUCCESS {
                return;
            }
            rest -= 1;
        }
    }
}

fn operations_run_in_order(options: NewOptions) {
    let seen = RefCell::new(Seen::default());
    let server = Server::new();
    assert_eq!(server.register(CALL, converse, &seen), SUCCESS);
    let options = options(2, 32);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    // Messages of no packet, of one, of several.
    let texts: Vec<_> = (0..32).map(|lane| vec![lane as u8; lane * 9]).collect();
    let mut call = client.open(CALL, 0xffff_000f);
    call.send_n(|lane| &texts[lane as usize]);
    let mut got = vec![Vec::new(); 32];
    call.recv_n(|lane, _, bytes| got[lane as usize].extend_from_slice(bytes));
    for lane in 0..32 {
        let takes_part = 0xffff_000f_u32 >> lane & 1 == 1;
        let expected = if takes_part { &texts[lane][..] } else { &[] };
        assert_eq!(got[lane], expected, "back, {lane}");
        assert_eq!(seen.borrow().texts[lane], expected, "there, {lane}");
    }
    drop(call);
    // A call in progress.
    assert_eq!(seen.borrow().ended, 0);
    assert_eq!(server.remove(device), SUCCESS);
    assert_eq!(seen.borrow().ended, 1);
}

fn callbacks_decide_what_follows(options: NewOptions) {
    let seen = RefCell::new(Seen::default());
    let server = Server::new();
    assert_eq!(server.register(CALL, converse, &seen), SUCCESS);
    let options = options(1, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    let mut call = client.open(CALL, 1);
    call.send_n(|_| b"x");
    call.recv_n(|_, _, bytes| assert_eq!(bytes, b"x"));
    call.send(|packets| packets.set_word(0, 0, 3));
    for left in [3, 2, 1] {
        assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(left));
    }
    drop(call);
    // The client keeps the last packet, which the server does not receive again.
    server.poll();
    assert_eq!(seen.borrow().ended, 1);
}

unsafe extern "C" fn receive_and_fail(call: *mut Blocking, data: *mut c_void) {
    // SAFETY: the call is valid.
    unsafe {
        assert_eq!(gpurpc_blocking_recv(call, None, data), SUCCESS);
        assert_eq!(gpurpc_blocking_fail(call), SUCCESS);
        assert_ne!(gpurpc_blocking_send(call, None, data), SUCCESS);
    }
}

unsafe extern "C" fn fail_at_once(call: *mut Blocking, data: *mut c_void) {
    // SAFETY: the call is valid.
    unsafe {
        assert_eq!(gpurpc_blocking_fail(call), SUCCESS);
        assert_ne!(gpurpc_blocking_recv(call, Some(increment), data), SUCCESS);
    }
}

/// Fields of reported faults.
type Faults = RefCell<Vec<(CDevice, u32, u32, c_int, String)>>;

unsafe extern "C" fn fault(fault: *const CFault, data: *mut c_void) {
    // SAFETY: the fault is valid, and the data is the registered pointer.
    unsafe {
        let CFault {
            device,
            port,
            opcode,
            status,
            text,
            ..
        } = *fault;
        let text = CStr::from_ptr(text).to_string_lossy().into_owned();
        let faults = &*data.cast::<Faults>();
        faults
            .borrow_mut()
            .push((device, port, opcode, status, text));
    }
}

fn dropped_calls_are_reported(options: NewOptions) {
    let (faults, seen) = (Faults::default(), RefCell::new(Seen::default()));
    let server = Server::new();
    let data = std::ptr::from_ref(&faults).cast_mut().cast();
    // SAFETY: the server is valid.
    let registered = unsafe { gpurpc_register_fault_callback(server.0, Some(fault), data) };
    assert_eq!(registered, SUCCESS);
    assert_eq!(server.register(CALL, converse, &seen), SUCCESS);
    assert_eq!(server.register(CALL + 1, receive_and_fail, &()), SUCCESS);
    assert_eq!(server.register(CALL + 3, fail_at_once, &seen), SUCCESS);
    let mut options = options(8, 1);
    options.message_limit = 100;
    let other = server.add(&options).expect("the device can be added");
    let device = server.add(&options).expect("the device can be added");
    assert_ne!(device, other);
    let client = server.client(device, &options);
    let calls = [
        (
            CALL,
            101,
            0x100b,
            "message of 101 bytes exceeds the limit of 100",
        ),
        (
            CALL + 1,
            0,
            0x100c,
            "a callback called gpurpc_blocking_fail",
        ),
        (
            CALL + 3,
            0,
            0x100c,
            "a callback called gpurpc_blocking_fail",
        ),
        (
            CALL + 2,
            0,
            0x1001,
            "no handler is registered for the opcode",
        ),
    ];
    for (port, (opcode, size, status, text)) in (0..).zip(calls) {
        let mut call = client.open(opcode, 1);
        call.send(|packets| packets.set_word(0, 0, size));
        assert!(server.poll());
        let reported = faults.borrow_mut().pop();
        assert_eq!(
            reported,
            Some((device, port, opcode, status, text.to_owned()))
        );
        assert_eq!(server.answered(device, &options, port), 0, "{text}");
        // The client waits indefinitely, and keeps the port.
        std::mem::forget(call);
    }
    // The callback of the first call has returned.
    assert_eq!(seen.borrow().ended, 1);
    let mut call = client.open(CALL, 1);
    call.send_n(|_| b"and on");
    call.recv_n(|_, _, bytes| assert_eq!(bytes, b"and on"));
    assert_eq!(server.remove(device), SUCCESS);
    assert_eq!(seen.borrow().ended, 2);
    assert!(faults.borrow().is_empty());
    assert!(seen.borrow().lanes.is_empty());
}

unsafe extern "C" fn receive_messages(call: *mut Blocking, data: *mut c_void) {
    let (mut messages, mut sizes) = ([null_mut(); 64], [0; 64]);
    // SAFETY: the call is valid; the arrays have 64 elements; the data is the registered pointer.
    unsafe {
        let (texts, bytes) = (messages.as_mut_ptr(), sizes.as_mut_ptr());
        let status = gpurpc_blocking_recv_n(call, texts, bytes);
        (*data.cast::<RefCell<Vec<c_int>>>())
            .borrow_mut()
            .push(status);
    }
}

/// Messages, and the aligned copies that the callback gets.
fn memory_of_calls_is_limited(options: NewOptions) {
    let statuses = RefCell::new(Vec::<c_int>::new());
    let server = Server::new();
    assert_eq!(server.register(CALL, receive_messages, &statuses), SUCCESS);
    let mut options = options(1, 64);
    options.memory_limit = 4096;
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    let text = [b'x'; 56];
    for _ in 0..3 {
        let mut call = client.open(CALL, u64::MAX >> 34);
        call.send_n(|_| &text);
        call.recv(|_| {});
        drop(call);
        // The memory of the previous call is available again.
        assert_eq!(statuses.take(), [SUCCESS]);
    }
    let mut call = client.open(CALL, u64::MAX);
    call.send_n(|_| &text);
    assert!(server.poll());
    assert_eq!(statuses.take(), [OUT_OF_MEMORY]);
    std::mem::forget(call);
}

type OfServer = unsafe extern "C" fn(*mut gpurpc_capi::Server) -> c_int;

unsafe extern "C" fn act_on_server(_: *mut Blocking, data: *mut c_void) {
    // SAFETY: the data is that of `within_a_callback`; the server is valid.
    unsafe {
        let (server, act, status) =
            *data.cast::<(*mut gpurpc_capi::Server, OfServer, *mut c_int)>();
        *status = act(server);
    }
}

/// Calls a function of the server in a callback; returns its status.
fn within_a_callback(server: &Server, act: OfServer) -> c_int {
    let mut status = SUCCESS;
    let data = (server.0, act, &raw mut status);
    assert_eq!(server.register(CALL, act_on_server, &data), SUCCESS);
    let options = options(1, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    let mut call = client.open(CALL, 1);
    call.send(|_| {});
    call.recv(|_| {});
    drop(call);
    status
}

#[test]
fn a_server_that_polls_is_not_destroyed() {
    let server = Server::new();
    assert_eq!(within_a_callback(&server, gpurpc_server_destroy), BUSY);
}

/// A nested `gpurpc_serve` would wait for its own call.
#[test]
fn a_callback_does_not_serve() {
    let server = Server::new();
    assert_eq!(within_a_callback(&server, gpurpc_serve), BUSY);
    // The rejected call leaves no state.
    // SAFETY: the server is valid.
    unsafe {
        assert_eq!(gpurpc_stop(server.0), SUCCESS);
        assert_eq!(gpurpc_serve(server.0), SUCCESS);
    }
}

unsafe extern "C" fn stop(call: *mut Blocking, data: *mut c_void) {
    // SAFETY: the call is valid, and the data is a place for the server, which is there.
    unsafe {
        assert_eq!(
            gpurpc_stop(*data.cast::<*mut gpurpc_capi::Server>()),
            SUCCESS
        );
        assert_eq!(gpurpc_blocking_recv(call, None, null_mut()), SUCCESS);
        // Packets that the client never sends.
        assert_eq!(gpurpc_blocking_recv(call, None, null_mut()), ABANDONED);
    }
}

fn a_server_stops_while_calls_are_in_progress(options: NewOptions) {
    let server = Server::new();
    assert_eq!(server.register(CALL, stop, &server.0), SUCCESS);
    let options = options(1, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    let mut call = client.open(CALL, 1);
    call.send(|_| {});
    // SAFETY: the server is valid.
    assert_eq!(unsafe { gpurpc_serve(server.0) }, SUCCESS);
    drop(call);
}

/// Two libraries that know nothing of each other register services on one server.
fn reserved_opcodes_are_unique(options: NewOptions) {
    let server = Server::new();
    let reserve = |count| {
        let mut first = 0;
        // SAFETY: the server is valid, and a place for the opcode.
        let status = unsafe { gpurpc_reserve_opcodes(server.0, count, &mut first) };
        assert_eq!(status, SUCCESS);
        first
    };
    let (one, other, last) = (reserve(2), reserve(1), reserve(1));
    assert_eq!([one, other, last], [0xff00_0000, 0xff00_0002, 0xff00_0003]);
    let seen = RefCell::new(Seen::default());
    for opcode in [one, one + 1, other, last] {
        assert_eq!(server.register(opcode, answer, &seen), SUCCESS);
    }
    let options = options(1, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    for opcode in [one + 1, other] {
        let mut call = client.open(opcode, 1);
        call.send(|packets| packets.set_word(0, 0, 41));
        assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(42));
        assert_eq!(seen.borrow().opcode, opcode);
    }
}

for_each_generation!(
    lanes_that_take_part_are_answered,
    operations_run_in_order,
    callbacks_decide_what_follows,
    dropped_calls_are_reported,
    memory_of_calls_is_limited,
    a_server_stops_while_calls_are_in_progress,
    reserved_opcodes_are_unique,
);
