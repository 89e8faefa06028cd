//! Linux, macOS and other Unix systems.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Whether a file is executable.
pub fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o100 != 0)
}

/// Grants execute permission to everyone with read permission.
///
/// # Errors
///
/// System errors.
pub fn make_program(file: &File) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    let mode = permissions.mode();
    permissions.set_mode(mode | (mode & 0o444) >> 2);
    file.set_permissions(permissions)
}

/// Lets the owner of a directory write to it.
///
/// # Errors
///
/// System errors.
pub fn make_writable(directory: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(directory)?.permissions();
    let mode = permissions.mode();
    if mode & 0o700 == 0o700 {
        return Ok(());
    }
    permissions.set_mode(mode | 0o700);
    fs::set_permissions(directory, permissions)
}

/// Writes the entries of a directory to the disk.
///
/// # Errors
///
/// System errors.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Whether the process with this number runs. `None`: the system has no `/proc`.
pub fn is_running(process: &str) -> Option<bool> {
    Path::new("/proc/self")
        .exists()
        .then(|| Path::new("/proc").join(process).exists())
}

/// Copies a symbolic link, unless the copy exists.
///
/// # Errors
///
/// System errors.
pub fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    let target = fs::read_link(from)?;
    match fs::read_link(to) {
        Ok(old_target) if old_target == target => return Ok(()),
        // A copy of the link as it was before.
        Ok(_) => fs::remove_file(to)?,
        Err(_) => {}
    }
    symlink(target, to)
}

/// Calls `clean_up` when a signal ends the process, which then ends by the signal: shells report 130 for Ctrl-C and 143 for
/// SIGTERM. A write beyond the limit of the file size returns an error.
pub fn clean_up_when_interrupted(clean_up: fn()) {
    // Without a handler the temporary files stay until the next run.
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let ignored = ignored_signals();
    let ending = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter();
    let Ok(mut signals) = Signals::new(ending.filter(|signal| ignored >> (signal - 1) & 1 == 0))
    else {
        return;
    };
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            clean_up();
            let _ = emulate_default_handler(signal);
        }
    });
}

/// Ends a process and, where the system has `/proc`, all that it started: cargo that is ended leaves its build scripts.
pub fn end_with_children(process: u32) {
    let mut processes = Vec::from_iter(i32::try_from(process));
    let mut next = 0;
    while let Some(process) = processes.get(next) {
        let threads = fs::read_dir(format!("/proc/{process}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            // proc_tid_children(5): their numbers, with spaces between.
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            processes.extend(children.split_whitespace().flat_map(str::parse::<i32>));
        }
        next += 1;
    }
    for process in processes {
        // SAFETY: the function has no precondition.
        let _ = unsafe { kill(process, SIGTERM) };
    }
}

// <signal.h>
unsafe extern "C" {
    fn kill(process: i32, signal: i32) -> i32;
}

/// Signals that the parent ignores, as a bit set: `nohup` ignores SIGHUP, and shells SIGINT of a background job
/// (proc_pid_status(5), `SigIgn`). 0 where the system does not say.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
