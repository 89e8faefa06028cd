//! Temporary files and directories of a run.

use std::io;
use std::path::Path;

use gpustub_check::read::scratch_cause;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::temporary::Temporary;
use tempfile::TempDir;

/// A temporary directory, which is removed when dropped, or when the run is interrupted.
pub struct Scratch {
    directory: TempDir,
    _temporary: Temporary,
}

impl Scratch {
    /// Path of the directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Creates a temporary directory.
pub fn scratch() -> Result<Scratch> {
    let created = Temporary::create(|| {
        let directory = tempfile::Builder::new().prefix("gpustub-").tempdir()?;
        Ok((directory.path().to_owned(), directory))
    });
    match created {
        Ok((temporary, directory)) => Ok(Scratch {
            directory,
            _temporary: temporary,
        }),
        Err(e) => Err(Error::new(format!(
            "could not create a temporary directory: {e}"
        ))),
    }
}

/// The error of a read of `path`, if it is one of a temporary file: `path` may have no fault.
pub fn scratch_error(path: &str, error: &io::Error) -> Option<Error> {
    let cause = scratch_cause(error)?;
    let directory = std::env::temp_dir();
    let directory = slashes(&directory);
    let message =
        format!("could not write a temporary file in `{directory}` for `{path}`: {cause}");
    Some(Error::new(message).help(match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space in the temporary directory, or name another one with TMPDIR"
        }
        io::ErrorKind::FileTooLarge => {
            "raise the limit of a file's size (`ulimit -f`), or name a directory of another file system with TMPDIR"
        }
        io::ErrorKind::OutOfMemory => "free memory, or raise the limit of it (`ulimit -v`)",
        _ => "name another directory with TMPDIR",
    }))
}
