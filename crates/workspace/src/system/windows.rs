//! Windows.

use std::fs::{self, File};
use std::io;
use std::os::windows::fs::{symlink_dir, symlink_file};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::path::Path;
use std::sync::OnceLock;

/// True: Windows has no execute permission.
pub fn is_program(_path: &Path) -> bool {
    true
}

/// Does nothing: Windows has no execute permission.
///
/// # Errors
///
/// None.
pub fn make_program(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Does nothing: Windows ignores the attribute of directories.
///
/// # Errors
///
/// None.
pub fn make_writable(_directory: &Path) -> io::Result<()> {
    Ok(())
}

/// Does nothing: a directory cannot be opened for that.
///
/// # Errors
///
/// None.
pub fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether the process with this number runs. `None`: the text is no number of a process.
pub fn is_running(process: &str) -> Option<bool> {
    let number = process.parse().ok()?;
    // SAFETY: the function has no precondition.
    let handle = unsafe { OpenProcess(SYNCHRONIZE, 0, number) };
    if handle.is_null() {
        return Some(io::Error::last_os_error().raw_os_error() != Some(ERROR_INVALID_PARAMETER));
    }
    // SAFETY: the handle was opened here.
    let process = unsafe { OwnedHandle::from_raw_handle(handle) };
    // Handles of other processes keep a process that has ended.
    // SAFETY: the handle is open.
    Some(unsafe { WaitForSingleObject(process.as_raw_handle(), 0) } == WAIT_TIMEOUT)
}

/// Copies a symbolic link, unless the copy exists. That needs the developer mode or an administrator's rights.
///
/// # Errors
///
/// System errors.
pub fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    let target = fs::read_link(from)?;
    match fs::read_link(to) {
        Ok(old_target) if old_target == target => Ok(()),
        _ if from.is_dir() => symlink_dir(target, to),
        _ => symlink_file(target, to),
    }
}

static CLEAN_UP: OnceLock<fn()> = OnceLock::new();

/// Calls `clean_up` when Ctrl-C, Ctrl-Break or the end of the console ends the process, with status 0xC000013A.
pub fn clean_up_when_interrupted(clean_up: fn()) {
    if CLEAN_UP.set(clean_up).is_ok() {
        // Without a handler the temporary files stay until the next run.
        // SAFETY: the handler is a function without state, for any thread.
        let _ = unsafe { SetConsoleCtrlHandler(handle, 1) };
    }
}

/// Does nothing: the console tells all its processes of what ends this one.
pub fn end_with_children(_process: u32) {}

/// A handler of the console (HandlerRoutine): 0 calls the next one, which ends the process.
extern "system" fn handle(_event: u32) -> i32 {
    if let Some(clean_up) = CLEAN_UP.get() {
        clean_up();
    }
    0
}

// <winnt.h>, <winerror.h>
const SYNCHRONIZE: u32 = 0x0010_0000;
const ERROR_INVALID_PARAMETER: i32 = 87;
const WAIT_TIMEOUT: u32 = 258;

// <processthreadsapi.h>, <synchapi.h>, <consoleapi.h>
#[link(name = "kernel32")]
unsafe extern "system" {
    fn OpenProcess(access: u32, inherits: i32, process: u32) -> RawHandle;
    fn WaitForSingleObject(object: RawHandle, milliseconds: u32) -> u32;
    fn SetConsoleCtrlHandler(handler: extern "system" fn(u32) -> i32, add: i32) -> i32;
}
