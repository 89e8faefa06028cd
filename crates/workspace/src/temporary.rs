//! Temporary files and directories of this process, which an interrupted run removes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn paths() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file or directory that [`remove_all`] removes, until this value is dropped.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// Creates a file or directory by `create`, which returns its path. No path is created after [`remove_all`].
    ///
    /// # Errors
    ///
    /// The error of `create`.
    pub fn create<T>(create: impl FnOnce() -> io::Result<(PathBuf, T)>) -> io::Result<(Self, T)> {
        let mut paths = paths();
        let (path, value) = create()?;
        paths.insert(path.clone());
        Ok((Self(path), value))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        paths().remove(&self.0);
    }
}

/// Removes all temporary files and directories of a process that ends now: a thread that creates or drops one waits
/// for ever.
pub fn remove_all() {
    let paths = paths();
    for path in paths.iter() {
        // One of both fails.
        let _ = fs::remove_file(path);
        let _ = fs::remove_dir_all(path);
    }
    mem::forget(paths);
}
