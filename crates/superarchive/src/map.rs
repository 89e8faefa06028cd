//! Mapped input files: only the pages that are read are loaded.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::error::Error;

/// Maps a file.
pub fn map_file(path: &Path) -> Result<Mmap, Error> {
    let file = File::open(path).map_err(|error| Error::unreadable(path, error))?;
    let metadata = file
        .metadata()
        .map_err(|error| Error::unreadable(path, error))?;
    if !metadata.is_file() {
        return Err(Error::unreadable(path, "not a regular file"));
    }
    // SAFETY: the map is private and read-only. If another process truncates the file while it is
    // read, this one receives SIGBUS, as does every loader or linker that maps libraries; other
    // changes result in other bytes, and no code here trusts the bytes.
    unsafe { Mmap::map(&file) }.map_err(|error| Error::unreadable(path, error))
}
