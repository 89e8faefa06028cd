//! Temporary files for large members of archives. Their errors concern the machine, not the archive.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};

use memmap2::Mmap;

/// An unnamed temporary file.
pub struct Scratch(File);

impl Scratch {
    /// Creates the file.
    ///
    /// # Errors
    ///
    /// If the directory for temporary files is missing or full.
    pub fn new() -> io::Result<Self> {
        tempfile::tempfile().map(Self).map_err(scratch_error)
    }

    /// The file.
    pub fn into_file(self) -> File {
        self.0
    }

    /// Maps the file, which is complete.
    pub(super) fn map(self) -> io::Result<Mmap> {
        // SAFETY: the file has no name and only this process has it open.
        unsafe { Mmap::map(&self.0) }.map_err(scratch_error)
    }
}

impl Write for Scratch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(scratch_error)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(scratch_error)
    }
}

/// An error of a temporary file.
#[derive(Debug)]
struct ScratchError(io::Error);

impl fmt::Display for ScratchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "temporary file for a member: {}", self.0)
    }
}

impl std::error::Error for ScratchError {}

fn scratch_error(error: io::Error) -> io::Error {
    match error.kind() {
        // Repeated by the standard library's functions.
        io::ErrorKind::Interrupted => error,
        _ => io::Error::other(ScratchError(error)),
    }
}

/// The cause of a read's error, if it is one of a temporary file: the file that is read may have no fault.
pub fn scratch_cause(error: &io::Error) -> Option<&io::Error> {
    let inner = error.get_ref()?.downcast_ref::<ScratchError>()?;
    Some(&inner.0)
}

/// Whether the error of a read is one of a temporary file.
pub(super) fn is_scratch_error(error: &io::Error) -> bool {
    scratch_cause(error).is_some()
}
