//! Mapped input files: only the pages that are read are loaded.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::error::{Error, Problem};

/// Maps a file.
pub fn map_file(path: &Path) -> Result<Mmap, Error> {
    let unreadable = |reason: String| Error::from(Problem::Unreadable(reason)).in_file(path);
    let file = File::open(path).map_err(|e| unreadable(e.to_string()))?;
    let metadata = file.metadata().map_err(|e| unreadable(e.to_string()))?;
    if !metadata.is_file() {
        return Err(unreadable("not a regular file".into()));
    }
    // SAFETY: the map is private and read-only. If another process truncates the file while it is
    // read, this one receives SIGBUS, as does every loader or linker that maps libraries; other
    // changes result in other bytes, and no code here trusts the bytes.
    unsafe { Mmap::map(&file) }.map_err(|e| unreadable(e.to_string()))
}
