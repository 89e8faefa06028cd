//! The services of LLVM's libc, implemented by functions of a C program.

mod host;
#[macro_use]
#[path = "../support/mod.rs"]
mod support;

use std::cell::RefCell;
use std::ffi::{CString, c_int, c_void};
use std::mem::size_of;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpurpc::client::Call as ClientCall;
use gpurpc::memory::SharedMemory;
use gpurpc::opcode;
use gpurpc_capi::*;
use host::{Arguments, Ends, all, exit, host, malloc};
use support::{
    ALREADY_STARTED, DUPLICATE_OPCODE, INVALID_ARGUMENT, INVALID_STRUCT_SIZE, NewOptions, Polling,
    SUCCESS, Server, none,
};

const INVALID_MEMORY: c_int = 0x1005;
const INVALID_ROOT: c_int = 0x100d;
const STDIN: u64 = 1;
const FAILED: u64 = u64::MAX;

fn register(server: &Server, options: &LibcOptions) -> c_int {
    // SAFETY: the server is valid, and the options are initialized.
    unsafe { gpurpc_register_libc(server.0, options) }
}

type Open<'c> = ClientCall<'c, SharedMemory, Polling<'c>>;

fn words(call: &mut Open<'_>, words: &[u64]) {
    call.send(|packets| {
        for (word, value) in words.iter().enumerate() {
            packets.set_word(0, word, *value);
        }
    });
}

fn word(call: &mut Open<'_>) -> u64 {
    let word = call.recv(|packets| packets.word(0, 0));
    word.expect("the call is open")
}

fn each_service_is_a_function_of_the_program(options: NewOptions) {
    let Ends { host, heard, typed } = host();
    let server = Server::new();
    server.1.set(true);
    let directory = tempfile::tempdir().expect("a directory can be created");
    std::fs::write(directory.path().join("a"), "in the file").expect("the file can be written");
    let root = CString::new(directory.path().to_str().expect("in UTF-8")).expect("without zero");
    let libc = LibcOptions {
        root: root.as_ptr(),
        allocation_limit: 1,
        ..all(host)
    };
    assert_eq!(register(&server, &libc), SUCCESS);
    drop(root);
    let options = options(4, 1);
    let other = server.add(&options).expect("the device can be added");
    let device = server.add(&options).expect("the device can be added");
    assert_eq!((other.handle, device.handle), (1, 2));
    let client = server.client(device, &options);
    let ask = |opcode, asked: &[u64]| {
        let mut call = client.open(opcode, 1);
        words(&mut call, asked);
        word(&mut call)
    };
    let message = |opcode, message: &[u8]| {
        let mut call = client.open(opcode, 1);
        call.send_n(|_| message);
        word(&mut call)
    };
    let hears = |expected: &str| assert_eq!(heard.recv().as_deref(), Ok(expected));

    assert_eq!(message(opcode::WRITE_TO_STDOUT, b"much"), 4);
    hears("write 2 1 much");
    assert_eq!(message(opcode::WRITE_TO_STDERR, b"fails"), 0);
    hears("write 2 2 fails");
    assert_eq!(ask(opcode::MALLOC, &[24]), 0x7018);
    hears("malloc 2 24");
    // One at a time, according to the options.
    assert_eq!(ask(opcode::MALLOC, &[24]), 0);
    let mut call = client.open(opcode::FREE, 1);
    words(&mut call, &[0x7018]);
    drop(call);
    while server.poll() {}
    hears("free 2 0x7018");
    assert_eq!(message(opcode::SYSTEM, b"ls\0") as i32, -7);
    hears("system 2 ls");

    let mut arguments = [0_u8; size_of::<Arguments>()];
    arguments[0] = 40;
    arguments[24..32].copy_from_slice(&2_u64.to_ne_bytes());
    let mut call = client.open(opcode::HOST_CALL, 1);
    call.send_n(|_| &arguments);
    words(&mut call, &[0x1234]);
    assert_eq!(word(&mut call), 42);
    drop(call);
    hears("call 2 0x1234");

    let mut call = client.open(opcode::OPEN_FILE, 1);
    call.send_n(|_| b"a\0");
    call.send(|packets| packets.write(0, 0, b"r\0"));
    let file = word(&mut call);
    drop(call);
    assert_ne!(file, 0);
    assert_eq!(ask(opcode::FSEEK, &[file, 0, 2]), 0);
    assert_eq!(ask(opcode::FTELL, &[file]), 11);

    typed.send(b"hello\n").expect("the host receives");
    let mut call = client.open(opcode::READ_FGETS, 1);
    words(&mut call, &[100, STDIN]);
    let mut line = Vec::new();
    call.recv_n(|_, _, bytes| line.extend(bytes));
    drop(call);
    assert_eq!(line.strip_suffix(b"\0").unwrap_or(&line), b"hello\n");
    assert!(heard.recv().expect("it was read").starts_with("read "));

    for (opcode, expected) in [(opcode::EXIT, "exit 2 3"), (opcode::ABORT, "abort 2")] {
        let mut call = client.open(opcode, 1);
        words(&mut call, &[]);
        word(&mut call);
        words(&mut call, &[3]);
        drop(call);
        while server.poll() {}
        hears(expected);
    }
    drop(client);
    assert_eq!(server.remove(device), SUCCESS);
    hears("end 2");
    assert_eq!(server.remove(other), SUCCESS);
    hears("end 1");
    drop(server);
    assert!(heard.try_recv().is_err(), "each device has one end");
}

fn services_without_functions_fail(options: NewOptions) {
    let server = Server::new();
    server.1.set(true);
    assert_eq!(register(&server, &none()), SUCCESS);
    let options = options(4, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    let mut call = client.open(opcode::MALLOC, 1);
    words(&mut call, &[24]);
    assert_eq!(word(&mut call), 0);
    drop(call);
    let mut call = client.open(opcode::SYSTEM, 1);
    call.send_n(|_| b"ls\0");
    assert_eq!(word(&mut call) as i32, -1);
    drop(call);
    let mut call = client.open(opcode::REMOVE, 1);
    call.send_n(|_| b"a\0");
    assert_eq!(word(&mut call), FAILED);
}

/// Opcodes and statuses of dropped calls.
type Dropped = RefCell<Vec<(u32, c_int)>>;

unsafe extern "C" fn dropped(fault: *const CFault, data: *mut c_void) {
    // SAFETY: the fault is valid, and the data is the registered pointer.
    unsafe {
        let faults = &*data.cast::<Dropped>();
        faults.borrow_mut().push(((*fault).opcode, (*fault).status));
    }
}

/// Their services would trust the device.
fn opcodes_of_openmp_and_hip_are_unknown(options: NewOptions) {
    let groups = [opcode::OPENMP_BASE, opcode::HIP_BASE];
    let known = opcode::ALL.iter().map(|(_, opcode)| *opcode);
    let opcodes = known.filter(|opcode| groups.contains(&(opcode & 0xff00_0000)));
    let opcodes: Vec<_> = opcodes.collect();
    assert_eq!(opcodes.len(), 5);
    let (faults, Ends { host, heard, .. }) = (Dropped::default(), host());
    let server = Server::new();
    let data = (&raw const faults).cast_mut().cast();
    // SAFETY: the server is valid, and the faults outlive it.
    let registered = unsafe { gpurpc_register_fault_callback(server.0, Some(dropped), data) };
    assert_eq!(registered, SUCCESS);
    assert_eq!(register(&server, &all(host)), SUCCESS);
    let options = options(8, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    for opcode in &opcodes {
        client.open(*opcode, 1).send(|_| ());
        while server.poll() {}
    }
    let unknown = opcodes.iter().map(|opcode| (*opcode, 0x1001));
    assert_eq!(*faults.borrow(), unknown.collect::<Vec<_>>());
    assert!(heard.try_recv().is_err(), "no function was called");
}

fn data_is_used_until_a_read_has_returned(options: NewOptions) {
    let Ends { host, heard, typed } = host();
    let server = Server::new();
    assert_eq!(register(&server, &all(host)), SUCCESS);
    let options = options(1, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    let mut waits = client.open(opcode::READ_FGETS, 1);
    words(&mut waits, &[100, STDIN]);
    while server.poll() {}
    assert!(heard.recv().expect("it reads").starts_with("read "));
    // The client never polls again.
    std::mem::forget(waits);
    assert_eq!(server.remove(device), SUCCESS);
    assert!(heard.try_recv().is_err(), "it reads still");
    typed.send(b"late\n").expect("the host receives");
    assert_eq!(heard.recv().as_deref(), Ok("end 1"));
}

fn an_opcode_is_served_by_one(options: NewOptions) {
    unsafe extern "C" fn own(_: *mut Blocking, _: *mut c_void) {}
    let server = Server::new();
    assert_eq!(register(&server, &none()), SUCCESS);
    assert_eq!(register(&server, &none()), DUPLICATE_OPCODE);
    assert_eq!(server.register(opcode::MALLOC, own, &()), SUCCESS);
    assert_eq!(server.register(opcode::MALLOC, own, &()), DUPLICATE_OPCODE);
    let increment = opcode::TEST_INCREMENT;
    assert_eq!(server.register(increment, own, &()), SUCCESS);
    server.add(&options(1, 1)).expect("the device can be added");

    let server = Server::new();
    server.add(&options(1, 1)).expect("the device can be added");
    assert_eq!(register(&server, &none()), ALREADY_STARTED);
}

/// The program allocates the memory, and the services print.
fn a_callback_of_the_program_wins_in_either_order(new: NewOptions) {
    unsafe extern "C" fn own(
        input: *const CBuffer,
        output: *mut CBuffer,
        _: u64,
        _: u32,
        _: *mut c_void,
    ) {
        // SAFETY: the only lane participates.
        unsafe { (*output).data[0] = (*input).data[0] + 5 }
    }
    for is_first in [true, false] {
        let Ends { host, heard, .. } = host();
        let server = Server::new();
        let register_own = || server.register_warp(opcode::MALLOC, own, &());
        if is_first {
            assert_eq!(register_own(), SUCCESS);
        }
        assert_eq!(register(&server, &all(host)), SUCCESS);
        if !is_first {
            assert_eq!(register_own(), SUCCESS);
        }
        let options = new(1, 1);
        let device = server.add(&options).expect("the device can be added");
        let client = server.client(device, &options);
        server.1.set(true);
        let mut call = client.open(opcode::MALLOC, 1);
        words(&mut call, &[100]);
        assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(105));
        drop(call);
        let mut call = client.open(opcode::WRITE_TO_STDOUT, 1);
        call.send_n(|_| b"much");
        assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(4));
        let heard = heard.recv().expect("it writes");
        assert!(heard.contains("much"), "{heard}");
    }
}

/// The end of a device is reported even if the program serves the only opcode with a function of the options.
#[test]
fn the_last_use_of_data_is_reported_beside_own_callbacks() {
    let Ends { host, heard, .. } = host();
    unsafe extern "C" fn own(_: *mut Blocking, _: *mut c_void) {}
    let server = Server::new();
    assert_eq!(server.register(opcode::EXIT, own, &()), SUCCESS);
    let options = LibcOptions {
        exit: Some(exit),
        release: all(host).release,
        data: all(host).data,
        ..none()
    };
    assert_eq!(register(&server, &options), SUCCESS);
    let device = server
        .add(&support::options(1, 1))
        .expect("the device can be added");
    assert!(heard.try_recv().is_err());
    assert_eq!(server.remove(device), SUCCESS);
    assert_eq!(heard.recv().as_deref(), Ok("end 1"));
}

#[test]
fn wrong_options_are_refused() {
    let server = Server::new();
    let directory = tempfile::tempdir().expect("a directory can be created");
    let path = |path: &std::path::Path| {
        CString::new(path.to_str().expect("in UTF-8")).expect("without zero")
    };
    let file = directory.path().join("file");
    std::fs::write(&file, "").expect("the file can be written");
    for root in [path(&file), path(&directory.path().join("none"))] {
        let options = LibcOptions {
            root: root.as_ptr(),
            ..none()
        };
        assert_eq!(register(&server, &options), INVALID_ROOT, "{root:?}");
    }
    let half = LibcOptions {
        malloc: Some(malloc),
        ..none()
    };
    assert_eq!(register(&server, &half), INVALID_ARGUMENT);
    let old = LibcOptions {
        struct_size: 8,
        ..none()
    };
    assert_eq!(register(&server, &old), INVALID_STRUCT_SIZE);

    // The directory exists, and is removed before a device is added.
    let root = path(directory.path());
    let options = LibcOptions {
        root: root.as_ptr(),
        ..none()
    };
    assert_eq!(register(&server, &options), SUCCESS);
    directory.close().expect("the directory can be removed");
    let added = server.add(&support::options(1, 1));
    assert_eq!(added.map(|device| device.handle), Err(INVALID_ROOT));
    // No device was added yet, so that registration is possible.
    assert_eq!(register(&server, &none()), DUPLICATE_OPCODE);
}

/// A failed call takes no ownership: the program releases its resources itself.
#[test]
fn a_device_that_cannot_be_added_takes_no_ownership() {
    unsafe extern "C" fn free(_: *mut c_void, data: *mut c_void) {
        // SAFETY: as the options below have it.
        unsafe { &*data.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
    }
    unsafe extern "C" fn end(_: CDevice, data: *mut c_void) {
        // SAFETY: as the options below have it.
        unsafe { &*data.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
    }
    let (freed, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let calls = || {
        let both = [&freed, &ended];
        both.map(|times| times.load(Ordering::Relaxed))
    };
    let mut memory = [0_u64; 11];
    {
        let server = Server::new();
        let directory = tempfile::tempdir().expect("a directory can be created");
        let root = CString::new(directory.path().as_os_str().as_encoded_bytes());
        let root = root.expect("no directory has a NUL");
        let options = LibcOptions {
            root: root.as_ptr(),
            release: Some(end),
            data: (&raw const ended).cast_mut().cast(),
            ..none()
        };
        assert_eq!(register(&server, &options), SUCCESS);
        let given = DeviceOptions {
            memory: memory.as_mut_ptr().cast(),
            memory_size: 88,
            free: Some(free),
            data: (&raw const freed).cast_mut().cast(),
            ..support::options(1, 1)
        };
        let add = |options: &DeviceOptions| server.add(options).map(drop);
        let small = DeviceOptions {
            memory_size: 87,
            ..given
        };
        assert_eq!(add(&small), Err(INVALID_MEMORY));
        assert_eq!(add(&given), Ok(()));
        directory.close().expect("the directory can be removed");
        assert_eq!(add(&given), Err(INVALID_ROOT));
        assert_eq!(calls(), [0, 0]);
    }
    // The server's end also ends its only device.
    assert_eq!(calls(), [1, 1]);
}

for_each_generation!(
    each_service_is_a_function_of_the_program,
    services_without_functions_fail,
    opcodes_of_openmp_and_hip_are_unknown,
    data_is_used_until_a_read_has_returned,
    an_opcode_is_served_by_one,
    a_callback_of_the_program_wins_in_either_order,
);
