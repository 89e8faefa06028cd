//! Callbacks for packets, on copies and in place.

#[macro_use]
mod support;

use std::cell::RefCell;
use std::ffi::c_void;

use gpurpc_capi::*;
use support::{
    CALL, INVALID_ARGUMENT, NewOptions, SUCCESS, Seen, Server, increment, options, with_seen,
};

/// Adds one to the first word of each participating lane.
unsafe extern "C" fn increment_warp(
    input: *const CBuffer,
    output: *mut CBuffer,
    mask: u64,
    lanes: u32,
    data: *mut c_void,
) {
    for lane in 0..lanes {
        if mask >> lane & 1 == 1 {
            // SAFETY: the lane participates; the data is the registered pointer.
            unsafe {
                (*output.add(lane as usize)).data[0] = (*input.add(lane as usize)).data[0] + 1;
                with_seen(data, |seen| seen.lanes.push(lane));
            }
        }
    }
}

fn packets_are_answered_from_copies_or_in_place(options: NewOptions) {
    const IN_PLACE: u32 = 1;
    for (flags, words) in [0, IN_PLACE]
        .into_iter()
        .flat_map(|flags| [1, 2, 3, 8].map(|words| (flags, words)))
    {
        let seen = RefCell::new(Seen::default());
        let server = Server::new();
        let data: *mut c_void = std::ptr::from_ref(&seen).cast_mut().cast();
        // SAFETY: the server is valid.
        let registered =
            unsafe { gpurpc_register_warp(server.0, CALL, words, Some(increment_warp), data) };
        assert_eq!(registered, SUCCESS);
        let options = DeviceOptions {
            flags,
            ..options(1, 64)
        };
        let device = server.add(&options).expect("the device can be added");
        let client = server.client(device, &options);
        let mut call = client.open(CALL, 5);
        call.send(|packets| {
            for lane in packets.lanes() {
                packets.set_word(lane, 0, 8);
                packets.set_word(lane, 6, 7);
            }
        });
        let answers =
            call.recv(|packets| [0, 2].map(|lane| (packets.word(lane, 0), packets.word(lane, 6))));
        assert_eq!(answers, Some([(9, 7), (9, 7)]));
        assert_eq!(seen.borrow().lanes, [0, 2]);
    }
}

#[test]
fn a_callback_for_warps_reads_1_to_8_words() {
    let server = Server::new();
    for words in [0, 9, u32::MAX] {
        // SAFETY: the server is valid.
        let registered = unsafe {
            gpurpc_register_warp(
                server.0,
                CALL,
                words,
                Some(increment_warp),
                std::ptr::null_mut(),
            )
        };
        assert_eq!(registered, INVALID_ARGUMENT);
    }
    let unknown = DeviceOptions {
        flags: 4,
        ..options(1, 1)
    };
    assert_eq!(server.add(&unknown), Err(INVALID_ARGUMENT));
}

/// Operations that work on packets.
unsafe extern "C" fn exchange(call: *mut Blocking, data: *mut c_void) {
    // SAFETY: the call is valid; the data is the registered pointer.
    unsafe {
        assert_eq!(gpurpc_blocking_recv(call, Some(increment), data), SUCCESS);
        assert_eq!(gpurpc_blocking_send(call, Some(increment), data), SUCCESS);
        assert_eq!(
            gpurpc_blocking_recv_and_send(call, Some(increment), data),
            SUCCESS
        );
    }
}

fn operations_work_on_copies_or_in_place(options: NewOptions) {
    for flags in [0, 1] {
        let seen = RefCell::new(Seen::default());
        let server = Server::new();
        assert_eq!(server.register(CALL, exchange, &seen), SUCCESS);
        let options = DeviceOptions {
            flags,
            ..options(1, 32)
        };
        let device = server.add(&options).expect("the device can be added");
        let client = server.client(device, &options);
        // The second call has the session of the first.
        for _ in 0..2 {
            let mut call = client.open(CALL, 0x8000_0001);
            call.send(|packets| packets.set_word(31, 0, 10));
            assert_eq!(call.recv(|packets| packets.word(31, 0)), Some(12));
            call.send(|packets| packets.set_word(31, 0, 20));
            assert_eq!(call.recv(|packets| packets.word(31, 0)), Some(21));
        }
        assert_eq!(seen.borrow().lanes, [0, 31].repeat(6));
    }
}

for_each_generation!(
    packets_are_answered_from_copies_or_in_place,
    operations_work_on_copies_or_in_place,
);
