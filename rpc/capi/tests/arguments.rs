//! Rejected arguments, and ownership of memory.

mod support;

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use gpurpc::{Generation, Layout};
use gpurpc_capi::*;
use support::{
    ALREADY_STARTED, CALL, DUPLICATE_OPCODE, INVALID_ARGUMENT, INVALID_GENERATION,
    INVALID_LANE_SIZE, INVALID_MEMORY, INVALID_PORT_COUNT, INVALID_STRUCT_SIZE, NO_DEVICE,
    OUT_OF_MEMORY, SUCCESS, Server, add_one, options,
};

unsafe extern "C" fn nothing(_: *mut Blocking, _: *mut c_void) {}

unsafe extern "C" fn fault(_: *const CFault, _: *mut c_void) {}

/// Size of the options of the first version, which has no doorbell.
const FIRST_SIZE: u64 = offset_of!(DeviceOptions, doorbell_value) as u64;

#[test]
fn order_and_arguments_are_checked() {
    let server = Server::new();
    assert_eq!(server.register(CALL, nothing, &()), SUCCESS);
    assert_eq!(server.register(CALL, nothing, &()), DUPLICATE_OPCODE);
    assert_eq!(server.add(&options(0, 1)), Err(INVALID_PORT_COUNT));
    assert_eq!(server.add(&options(4097, 1)), Err(INVALID_PORT_COUNT));
    assert_eq!(server.add(&options(1, 16)), Err(INVALID_LANE_SIZE));
    let newer = |size| DeviceOptions {
        struct_size: size,
        ..options(1, 1)
    };
    for size in [0, 8, FIRST_SIZE - 8, u64::MAX] {
        assert_eq!(server.add(&newer(size)), Err(INVALID_STRUCT_SIZE), "{size}");
    }
    let mut first = newer(FIRST_SIZE);
    // Beyond the struct, which is not read.
    first.flags = 2;
    let first = server.add(&first).expect("older structs are accepted");
    assert_eq!(server.remove(first), SUCCESS);
    let server = Server::new();
    assert_eq!(server.register(CALL, nothing, &()), SUCCESS);
    for (opcodes, generation, status) in [
        (2, 0, INVALID_ARGUMENT),
        (1, 20, INVALID_ARGUMENT),
        (1, 23, INVALID_ARGUMENT),
        (0, 18, INVALID_GENERATION),
        (0, 24, INVALID_GENERATION),
    ] {
        let unknown = DeviceOptions {
            opcodes,
            generation,
            ..options(1, 1)
        };
        assert_eq!(server.add(&unknown), Err(status), "{opcodes} {generation}");
    }
    // Rejected arguments do not prevent a later registration.
    assert_eq!(server.register(CALL + 1, nothing, &()), SUCCESS);
    let device = server.add(&options(1, 1)).expect("the device can be added");
    assert_eq!(server.register(CALL + 2, nothing, &()), ALREADY_STARTED);

    assert_eq!(server.buffer(device).map(|(_, size)| size), Ok(88));
    assert_eq!(server.remove(device), SUCCESS);
    assert_eq!(server.remove(device), NO_DEVICE);
    assert_eq!(server.buffer(device), Err(NO_DEVICE));
    assert_eq!(server.remove(CDevice { handle: 0 }), NO_DEVICE);
    assert_ne!(server.add(&options(1, 1)), Ok(device));
}

/// A struct of a newer header, with more members than the library knows.
#[repr(C)]
struct Newer {
    known: DeviceOptions,
    more: u64,
}

#[test]
fn newer_structs_are_accepted_if_new_members_are_zero() {
    let server = Server::new();
    let mut newer = Newer {
        known: options(1, 1),
        more: 0,
    };
    newer.known.struct_size = size_of::<Newer>() as u64;
    let add = |newer: &Newer| {
        let mut device = CDevice::default();
        // SAFETY: as many bytes as `struct_size` states.
        unsafe { gpurpc_device_add(server.0, std::ptr::from_ref(newer).cast(), &mut device) }
    };
    assert_eq!(add(&newer), SUCCESS);
    newer.more = 1;
    assert_eq!(add(&newer), INVALID_ARGUMENT);
}

/// Memory of a test, and the numbers of its allocations and releases.
#[repr(C, align(64))]
struct Pool {
    bytes: [u8; 256],
    asked: Cell<u64>,
    freed: Cell<u32>,
    at: usize,
}

unsafe extern "C" fn alloc(size: u64, data: *mut c_void) -> *mut c_void {
    // SAFETY: the data is a pool.
    unsafe {
        let pool = data.cast::<Pool>();
        (*pool).asked.set(size);
        match (*pool).at {
            usize::MAX => null_mut(),
            at => (&raw mut (*pool).bytes).cast::<u8>().add(at).cast(),
        }
    }
}

unsafe extern "C" fn free(memory: *mut c_void, data: *mut c_void) {
    // SAFETY: the data is a pool.
    unsafe {
        let pool = data.cast::<Pool>();
        assert_eq!(memory as usize - pool as usize, (*pool).at);
        (*pool).freed.set((*pool).freed.get() + 1);
    }
}

#[test]
fn memory_is_released_once() {
    let cases = [
        (0, true, SUCCESS, 1),
        (0, false, SUCCESS, 1),
        // Not a multiple of 8: memory supplied by the program stays with the program.
        (4, true, INVALID_MEMORY, 1),
        (4, false, INVALID_MEMORY, 0),
        (usize::MAX, true, OUT_OF_MEMORY, 0),
    ];
    for (at, by_alloc, status, freed) in cases {
        let mut pool = Box::new(Pool {
            bytes: [0xff; 256],
            asked: 0.into(),
            freed: 0.into(),
            at,
        });
        let pool: *mut Pool = &mut *pool;
        let server = Server::new();
        let mut options = options(2, 1);
        options.data = pool.cast();
        options.free = Some(free);
        let size = 176;
        if by_alloc {
            options.alloc = Some(alloc);
        } else {
            // SAFETY: the pool is valid.
            options.memory = unsafe { (&raw mut (*pool).bytes).cast::<u8>().add(at).cast() };
            options.memory_size = size;
        }
        let added = server.add(&options);
        assert_eq!(added.err().unwrap_or(SUCCESS), status);
        // SAFETY: the pool is valid.
        let seen = |pool: *mut Pool| unsafe { ((*pool).asked.get(), (*pool).freed.get()) };
        if let Ok(device) = added {
            assert_eq!(seen(pool).1, 0);
            assert_eq!(server.remove(device), SUCCESS);
            // SAFETY: the pool is valid, and no other code uses it.
            let bytes = unsafe { (&raw const (*pool).bytes).read() };
            let is_zero = bytes[..size as usize].iter().all(|byte| *byte == 0);
            assert_eq!(is_zero, by_alloc);
            assert!(bytes[size as usize..].iter().all(|byte| *byte == 0xff));
        }
        assert_eq!(seen(pool), (if by_alloc { size } else { 0 }, freed));
    }
}

#[test]
fn memory_that_is_too_small_is_refused() {
    let mut memory = [0_u64; 11];
    let server = Server::new();
    let mut options = options(1, 1);
    options.memory = (&raw mut memory).cast();
    options.memory_size = 87;
    assert_eq!(server.add(&options), Err(INVALID_MEMORY));
    options.memory_size = 88;
    assert!(server.add(&options).is_ok());
}

/// The doorbell, with which the memory begins in LLVM 23, is aligned to 64.
#[test]
fn misaligned_memory_is_refused() {
    #[repr(align(64))]
    struct Aligned([u8; 512]);
    let mut memory = Aligned([0; 512]);
    let start = memory.0.as_mut_ptr();
    let server = Server::new();
    for (generation, alignment) in [(19, 8), (20, 8), (23, 64)] {
        let mut options = options(1, 1);
        options.generation = generation;
        options.memory_size = 256;
        for at in [0, 1, 4, 8, 16, 32, 48, 60, 64, 72, 128] {
            options.memory = start.wrapping_add(at).cast();
            let expected = if at % alignment == 0 {
                SUCCESS
            } else {
                INVALID_MEMORY
            };
            let added = server.add(&options);
            let status = added.err().unwrap_or(SUCCESS);
            assert_eq!(status, expected, "LLVM {generation} at {at}");
            if let Ok(device) = added {
                assert_eq!(server.remove(device), SUCCESS);
            }
        }
    }
}

#[test]
fn null_pointers_are_invalid_arguments() {
    let server = Server::new();
    let mut size = 0;
    // SAFETY: null is allowed for each argument, and results in a status.
    unsafe {
        let data = null_mut();
        assert_eq!(gpurpc_server_create(null(), null_mut()), INVALID_ARGUMENT);
        assert_eq!(gpurpc_server_destroy(null_mut()), SUCCESS);
        for status in [
            gpurpc_register_blocking(null_mut(), 1, Some(nothing), data),
            gpurpc_register_blocking(server.0, 1, None, data),
            gpurpc_register_warp(null_mut(), 1, 1, Some(add_one), data),
            gpurpc_register_warp(server.0, 1, 1, None, data),
            gpurpc_reserve_opcodes(null_mut(), 1, &mut 0),
            gpurpc_reserve_opcodes(server.0, 1, null_mut()),
            gpurpc_reserve_opcodes(server.0, 0, &mut 0),
            gpurpc_reserve_opcodes(server.0, u32::MAX, &mut 0),
            gpurpc_register_fault_callback(null_mut(), Some(fault), data),
            gpurpc_register_fault_callback(server.0, None, data),
            gpurpc_buffer_size(&options(1, 1), null_mut()),
            gpurpc_buffer_size(null(), &mut size),
            gpurpc_device_add(server.0, null(), &mut CDevice::default()),
            gpurpc_device_add(server.0, &options(1, 1), null_mut()),
            gpurpc_device_remove(null_mut(), CDevice::default()),
            gpurpc_device_buffer(null_mut(), CDevice::default(), null_mut(), null_mut()),
            gpurpc_device_reset_port(null_mut(), CDevice::default(), 0),
            gpurpc_device_reset_ports(null_mut(), CDevice::default(), null_mut()),
            gpurpc_client_init(&options(1, 1), null_mut(), 552, 1 << 40),
            gpurpc_client_init(null(), [0_u8; 552].as_mut_ptr().cast(), 552, 1 << 40),
            gpurpc_poll(null_mut(), null_mut()),
            gpurpc_serve(null_mut()),
            gpurpc_drain(null_mut()),
            gpurpc_stop(null_mut()),
        ] {
            assert_eq!(status, INVALID_ARGUMENT);
        }
        assert_eq!(gpurpc_poll(server.0, null_mut()), SUCCESS);
        let mut options = options(64, 32);
        assert_eq!(gpurpc_buffer_size(&options, &mut size), SUCCESS);
        assert_eq!(size, 132_608);
        options.generation = 23;
        assert_eq!(gpurpc_buffer_size(&options, &mut size), SUCCESS);
        assert_eq!(size, 132_672);
        options.lanes = 33;
        let status = gpurpc_buffer_size(&options, &mut size);
        assert_eq!(status, INVALID_LANE_SIZE);
    }
}

#[test]
fn a_client_is_initialized() {
    for (generation, size) in [(0, 552), (19, 552), (22, 552), (23, 2096)] {
        let mut bytes = [0xff_u8; 2200];
        let mut init = |size, buffer, ports| {
            let options = DeviceOptions {
                generation,
                ..options(ports, 32)
            };
            // SAFETY: there are `size` bytes.
            let status =
                unsafe { gpurpc_client_init(&options, bytes.as_mut_ptr().cast(), size, buffer) };
            (status, bytes)
        };
        let alignment = if size == 552 { 8 } else { 64 };
        for wrong in [0, 551, 560, 552 + 2096 - size] {
            assert_eq!(init(wrong, 1 << 40, 64).0, INVALID_GENERATION);
        }
        for buffer in [0, alignment / 2, (1 << 40) + 1] {
            let status = init(size, buffer, 64).0;
            assert_eq!(status, INVALID_MEMORY, "{buffer:#x}");
        }
        let (status, bytes) = init(size, 1 << 40, 0);
        assert_eq!((status, bytes), (INVALID_PORT_COUNT, [0xff; 2200]));
        let max_ports = if size == 552 { 4096 } else { 16384 };
        assert_eq!(init(size, 1 << 40, max_ports + 1).0, INVALID_PORT_COUNT);
        let (status, bytes) = init(size, alignment, max_ports);
        assert_eq!(status, SUCCESS);
        let (client, rest) = bytes.split_at(size);
        let known = Generation::for_release(generation.max(20)).expect("it is known");
        let layout = Layout::with_generation(known, max_ports, 1).expect("a layout");
        assert_eq!(*client, *layout.client(alignment));
        assert!(rest.iter().all(|byte| *byte == 0xff));
    }
}

unsafe extern "C" fn fail(call: *mut Blocking, _: *mut c_void) {
    // SAFETY: an open call.
    assert_eq!(unsafe { gpurpc_blocking_fail(call) }, SUCCESS);
}

/// Calls that have ended or were dropped are subtracted, at the address of the options.
#[test]
fn ended_calls_are_subtracted_from_the_doorbell() {
    let (value, other) = (AtomicU64::new(0), AtomicU64::new(5));
    let mut mailbox = 0_u64;
    let server = Server::new();
    assert_eq!(server.register(CALL, nothing, &()), SUCCESS);
    assert_eq!(server.register(CALL + 1, fail, &()), SUCCESS);
    let options = DeviceOptions {
        generation: 23,
        doorbell_value: value.as_ptr(),
        doorbell_mailbox: &mut mailbox,
        doorbell_event: 7,
        ..options(8, 1)
    };
    let device = server.add(&options).expect("a device with a doorbell");
    let (buffer, _) = server.buffer(device).expect("its memory");
    let client = server.client(device, &options);
    // SAFETY: the doorbell is at the beginning, and only this thread accesses it.
    let doorbell = unsafe { &mut *buffer.cast::<[u64; 3]>() };
    let addresses = [value.as_ptr() as u64, &raw const mailbox as u64, 7];
    assert_eq!(*doorbell, addresses);
    // The device changes it.
    doorbell[0] = other.as_ptr() as u64;
    value.store(2, Relaxed);
    let mut call = client.open(CALL, 1);
    call.send(|_| {});
    assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(0));
    drop(call);
    assert_eq!(value.load(Relaxed), 1);
    client.open(CALL + 1, 1).send(|_| {});
    assert!(server.poll());
    assert_eq!((value.load(Relaxed), other.load(Relaxed)), (0, 5));
    assert_eq!(mailbox, 0);
}

#[test]
fn incomplete_doorbells_are_refused() {
    let server = Server::new();
    let (mut value, mut mailbox) = ([0_u64; 2], 0_u64);
    let value = value.as_mut_ptr();
    let add = |generation, value, mailbox, flags| {
        let options = DeviceOptions {
            generation,
            doorbell_value: value,
            doorbell_mailbox: mailbox,
            flags,
            ..options(1, 1)
        };
        server.add(&options).err().unwrap_or(SUCCESS)
    };
    assert_eq!(add(23, value, null_mut(), 0), INVALID_ARGUMENT);
    assert_eq!(add(23, null_mut(), &mut mailbox, 0), INVALID_ARGUMENT);
    assert_eq!(
        add(23, value.wrapping_byte_add(4), &mut mailbox, 0),
        INVALID_ARGUMENT
    );
    assert_eq!(add(23, value, &mut mailbox, 4), INVALID_ARGUMENT);
    assert_eq!(add(22, value, &mut mailbox, 0), INVALID_ARGUMENT);
    assert_eq!(add(0, value, &mut mailbox, 0), INVALID_ARGUMENT);
    assert_eq!(add(23, value, &mut mailbox, 0), SUCCESS);
}
