//! Temporary files and directories of this process, which an interrupted run removes.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
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
    paths.iter().for_each(|path| remove(path));
    mem::forget(paths);
}

/// Most attempts to remove a directory while another thread, or a compiler, writes into it.
const MAX_ATTEMPTS: u32 = 100;

fn remove(path: &Path) {
    if fs::remove_file(path).is_ok() {
        return;
    }
    // Nobody finds the directory by its new name, and a file in its place keeps threads from making it again. A compiler
    // that runs in it still writes.
    let mut renamed = path.as_os_str().to_owned();
    renamed.push(".removed");
    let renamed = Path::new(&renamed);
    for _ in 0..MAX_ATTEMPTS {
        if fs::rename(path, renamed).is_ok() {
            let _ = File::create_new(path);
        }
        let _ = fs::remove_dir_all(renamed);
        if !renamed.exists() && !path.is_dir() {
            break;
        }
    }
    // One of both fails. Windows does not rename a directory with open files.
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn directories_that_are_being_filled_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("directory");
        for _ in 0..20 {
            fs::create_dir(&directory).unwrap();
            let is_removed = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    for index in 0.. {
                        let _ = fs::write(directory.join(index.to_string()), []);
                        if is_removed.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
                remove(&directory);
                is_removed.store(true, Ordering::Relaxed);
            });
            assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        }
    }
}
