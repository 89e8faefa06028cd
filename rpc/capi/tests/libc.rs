//! The services of LLVM's libc, implemented by functions of a C program.

mod support;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::size_of;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use gpurpc::client::Call as ClientCall;
use gpurpc::memory::SharedMemory;
use gpurpc::opcode;
use gpurpc_capi::*;
use support::{
    ALREADY_STARTED, DUPLICATE_OPCODE, INVALID_ARGUMENT, INVALID_STRUCT_SIZE, Polling, SUCCESS,
    Server, none, options,
};

const INVALID_MEMORY: c_int = 0x1005;
const INVALID_ROOT: c_int = 0x100d;
const STDIN: u64 = 1;
const FAILED: u64 = u64::MAX;

/// Reports of the program's functions, and the source of the standard input.
struct Host {
    reports: Mutex<Sender<String>>,
    input: Mutex<Receiver<&'static [u8]>>,
}

struct Ends {
    host: &'static Host,
    heard: Receiver<String>,
    typed: Sender<&'static [u8]>,
}

/// Leaks the host, because threads may use it when the test ends.
fn host() -> Ends {
    let ((reports, heard), (typed, input)) = (channel(), channel());
    let host = Box::leak(Box::new(Host {
        reports: Mutex::new(reports),
        input: Mutex::new(input),
    }));
    Ends { host, heard, typed }
}

/// # Safety
///
/// The data is a host.
unsafe fn report(data: *mut c_void, what: String) {
    // SAFETY: as the caller promises.
    let reports = unsafe { &(*data.cast::<Host>()).reports };
    // The test may have ended.
    let _ = reports.lock().expect("no thread panics").send(what);
}

unsafe extern "C" fn read(_: CDevice, to: *mut c_void, size: u64, data: *mut c_void) -> i64 {
    // SAFETY: the data is a host, and `to` has room for `size` bytes.
    unsafe {
        report(data, format!("read {size}"));
        let input = (*data.cast::<Host>())
            .input
            .lock()
            .expect("no thread panics");
        let Ok(typed) = input.recv() else { return -1 };
        to.cast::<u8>()
            .copy_from_nonoverlapping(typed.as_ptr(), typed.len());
        typed.len() as i64
    }
}

unsafe extern "C" fn write(
    device: CDevice,
    stream: c_int,
    from: *const c_void,
    size: u64,
    data: *mut c_void,
) -> i64 {
    // SAFETY: the data is a host, and `from` has `size` bytes.
    unsafe {
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), size as usize);
        let text = String::from_utf8_lossy(bytes);
        report(data, format!("write {} {stream} {text}", device.handle));
        // A result larger than `size` counts as `size`.
        if text.contains("much") { 1000 } else { -1 }
    }
}

unsafe extern "C" fn exit(device: CDevice, status: c_int, data: *mut c_void) {
    // SAFETY: the data is a host.
    unsafe { report(data, format!("exit {} {status}", device.handle)) }
}

unsafe extern "C" fn abort(device: CDevice, data: *mut c_void) {
    // SAFETY: the data is a host.
    unsafe { report(data, format!("abort {}", device.handle)) }
}

unsafe extern "C" fn malloc(device: CDevice, size: u64, data: *mut c_void) -> u64 {
    // SAFETY: the data is a host.
    unsafe { report(data, format!("malloc {} {size}", device.handle)) }
    0x7000 + size
}

unsafe extern "C" fn free(device: CDevice, address: u64, data: *mut c_void) {
    // SAFETY: the data is a host.
    unsafe { report(data, format!("free {} {address:#x}", device.handle)) }
}

unsafe extern "C" fn system(device: CDevice, command: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: the data is a host, and the command a string.
    unsafe {
        let command = CStr::from_ptr(command).to_string_lossy();
        report(data, format!("system {} {command}", device.handle));
    }
    -7
}

/// Arguments of a program.
#[repr(C, align(16))]
struct Arguments {
    letter: u8,
    numbers: [u64; 3],
}

unsafe extern "C" fn host_call(
    device: CDevice,
    function: u64,
    arguments: *mut c_void,
    size: u64,
    data: *mut c_void,
) -> u64 {
    let arguments = arguments.cast::<Arguments>();
    assert!(arguments.is_aligned());
    assert_eq!(size, size_of::<Arguments>() as u64);
    // SAFETY: the data is a host; the arguments have this size and alignment.
    unsafe {
        let handle = device.handle;
        report(data, format!("call {handle} {function:#x}"));
        u64::from((*arguments).letter) + (*arguments).numbers[2]
    }
}

unsafe extern "C" fn end(device: CDevice, data: *mut c_void) {
    // SAFETY: the data is a host.
    unsafe { report(data, format!("end {}", device.handle)) }
}

/// Options without any function.
fn all(host: &'static Host) -> LibcOptions {
    LibcOptions {
        read: Some(read),
        write: Some(write),
        exit: Some(exit),
        abort: Some(abort),
        malloc: Some(malloc),
        free: Some(free),
        system: Some(system),
        host_call: Some(host_call),
        release: Some(end),
        data: std::ptr::from_ref(host).cast_mut().cast(),
        ..none()
    }
}

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

#[test]
fn each_service_is_a_function_of_the_program() {
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

#[test]
fn services_without_functions_fail() {
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

#[test]
fn data_is_used_until_a_read_has_returned() {
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

#[test]
fn an_opcode_is_served_by_one() {
    unsafe extern "C" fn own(_: *mut Call, _: *mut c_void) {}
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
#[test]
fn a_callback_of_the_program_wins_in_either_order() {
    unsafe extern "C" fn own(buffer: *mut CBuffer, _: u32, _: *mut c_void) {
        // SAFETY: the buffer is valid.
        unsafe { (*buffer).data[0] += 5 }
    }
    for is_first in [true, false] {
        let Ends { host, heard, .. } = host();
        let server = Server::new();
        let register_own = || {
            // SAFETY: the server is valid.
            unsafe { gpurpc_register_request(server.0, opcode::MALLOC, Some(own), null_mut()) }
        };
        if is_first {
            assert_eq!(register_own(), SUCCESS);
        }
        assert_eq!(register(&server, &all(host)), SUCCESS);
        if !is_first {
            assert_eq!(register_own(), SUCCESS);
        }
        let options = options(1, 1);
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
    unsafe extern "C" fn own(_: *mut Call, _: *mut c_void) {}
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
