//! Mapped files: only the pages that are read are loaded.

use std::fs::{self, File};
use std::path::Path;

use gpustub_core::symbols::SymbolList;
use memmap2::Mmap;

use crate::error::{Error, Problem};
use crate::link_facts::{LinkFacts, read_link_facts};
use crate::symbols::{SymbolRequirements, read_symbols};

/// [`read_symbols`] of a file; the error has its path.
pub fn read_symbols_file(
    path: &Path,
    options: SymbolRequirements<'_>,
) -> Result<SymbolList, Error> {
    with_file(path, |bytes| read_symbols(bytes, options))
}

/// [`read_link_facts`] of a file; the error has its path.
pub fn read_link_facts_file(path: &Path) -> Result<LinkFacts, Error> {
    with_file(path, read_link_facts)
}

pub(crate) fn with_file<T>(
    path: &Path,
    read: impl FnOnce(&[u8]) -> Result<T, Error>,
) -> Result<T, Error> {
    let map = map_file(path)?;
    if map.is_empty() {
        return Err(Error::from(Problem::Empty).in_file(path));
    }
    read(&map).map_err(|error| error.in_file(path))
}

/// Maps a file.
fn map_file(path: &Path) -> Result<Mmap, Error> {
    // Before it is opened: that of a pipe waits for a writer.
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if !metadata.is_file() {
        return Err(unreadable(path, "not a regular file"));
    }
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    // SAFETY: the map is private and read-only. If another process truncates the file while it is
    // read, this one receives SIGBUS, as does every loader or linker that maps libraries; other
    // changes result in other bytes, and no code here trusts the bytes.
    unsafe { Mmap::map(&file) }.map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, reason: impl ToString) -> Error {
    Error::from(Problem::Unreadable(reason.to_string())).in_file(path)
}
