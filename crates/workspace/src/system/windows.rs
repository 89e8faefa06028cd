//! Windows.

use std::fs::{self, File};
use std::io;
use std::os::windows::fs::{symlink_dir, symlink_file};
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

/// Does nothing: a directory cannot be opened for that.
///
/// # Errors
///
/// None.
pub fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}

/// `None`: the number of a process that has ended is used again at once.
pub fn is_running(_process: &str) -> Option<bool> {
    None
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

/// A handler of the console (HandlerRoutine): 0 calls the next one, which ends the process.
extern "system" fn handle(_event: u32) -> i32 {
    if let Some(clean_up) = CLEAN_UP.get() {
        clean_up();
    }
    0
}

// <consoleapi.h>
#[link(name = "kernel32")]
unsafe extern "system" {
    fn SetConsoleCtrlHandler(handler: extern "system" fn(u32) -> i32, add: i32) -> i32;
}
