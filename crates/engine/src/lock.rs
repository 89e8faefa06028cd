//! Lock of a directory, which ends with the process that holds it.

use std::fs::File;
use std::path::Path;

/// A lock that this process holds.
pub(crate) struct Lock {
    _dir: File,
}

impl Lock {
    /// Waits for the lock. `None`: the system or the file system has none.
    pub(crate) fn wait(dir: &Path) -> Option<Self> {
        let dir = File::open(dir).ok()?;
        wait_for(&dir).then_some(Self { _dir: dir })
    }
}

/// `File::lock` needs Rust 1.89. Solaris has no `flock`.
#[cfg(all(unix, not(target_os = "solaris")))]
fn wait_for(file: &File) -> bool {
    use std::ffi::c_int;
    use std::os::fd::AsRawFd;

    unsafe extern "C" {
        fn flock(descriptor: c_int, operation: c_int) -> c_int;
    }
    const LOCK_EX: c_int = 2;

    // SAFETY: the descriptor is open, and flock accesses no memory.
    unsafe { flock(file.as_raw_fd(), LOCK_EX) == 0 }
}

#[cfg(not(all(unix, not(target_os = "solaris"))))]
fn wait_for(_: &File) -> bool {
    false
}
