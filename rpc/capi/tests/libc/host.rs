//! A program whose functions report their calls.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use gpurpc_capi::*;

use crate::support::none;

/// Reports of the program's functions, and the source of the standard input.
pub struct Host {
    reports: Mutex<Sender<String>>,
    input: Mutex<Receiver<&'static [u8]>>,
}

pub struct Ends {
    pub host: &'static Host,
    pub heard: Receiver<String>,
    pub typed: Sender<&'static [u8]>,
}

/// Leaks the host, because threads may use it when the test ends.
pub fn host() -> Ends {
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

pub unsafe extern "C" fn read(_: CDevice, to: *mut c_void, size: u64, data: *mut c_void) -> i64 {
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

pub unsafe extern "C" fn write(
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

pub unsafe extern "C" fn exit(device: CDevice, status: c_int, data: *mut c_void) {
    // SAFETY: the data is a host.
    unsafe { report(data, format!("exit {} {status}", device.handle)) }
}

pub unsafe extern "C" fn abort(device: CDevice, data: *mut c_void) {
    // SAFETY: the data is a host.
    unsafe { report(data, format!("abort {}", device.handle)) }
}

pub unsafe extern "C" fn malloc(device: CDevice, size: u64, data: *mut c_void) -> u64 {
    // SAFETY: the data is a host.
    unsafe { report(data, format!("malloc {} {size}", device.handle)) }
    0x7000 + size
}

pub unsafe extern "C" fn free(device: CDevice, address: u64, data: *mut c_void) {
    // SAFETY: the data is a host.
    unsafe { report(data, format!("free {} {address:#x}", device.handle)) }
}

pub unsafe extern "C" fn system(
    device: CDevice,
    command: *const c_char,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the data is a host, and the command a string.
    unsafe {
        let command = CStr::from_ptr(command).to_string_lossy();
        report(data, format!("system {} {command}", device.handle));
    }
    -7
}

/// Arguments of a program.
#[repr(C, align(16))]
pub struct Arguments {
    pub letter: u8,
    pub numbers: [u64; 3],
}

pub unsafe extern "C" fn host_call(
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

pub unsafe extern "C" fn end(device: CDevice, data: *mut c_void) {
    // SAFETY: the data is a host.
    unsafe { report(data, format!("end {}", device.handle)) }
}

/// Options with all functions.
pub fn all(host: &'static Host) -> LibcOptions {
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
