//! Large files, which are written in one step without being held in memory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::Path;

use crate::error::{Error, Result};
use crate::ops::{directory_of, neighbour, remove_leftovers};

/// Size of the buffer.
const BUFFER: usize = 1 << 16;

/// Writes a file by `write`, to a hidden neighbour that replaces the file when it is complete. The file gets the
/// permissions of `model`.
///
/// # Errors
///
/// If the file cannot be written, or `write` fails. The neighbour is removed.
pub fn write(
    path: &Path,
    model: Option<&Path>,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let directory = directory_of(path);
    fs::create_dir_all(directory).map_err(|e| Error::io("create", directory, &e))?;
    remove_leftovers(path);
    let neighbour = neighbour(path);
    let replace = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(&neighbour)?;
        let mut out = BufWriter::with_capacity(BUFFER, file);
        write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Some(model) = model {
            file.set_permissions(fs::metadata(model)?.permissions())?;
        }
        file.sync_all()?;
        drop(file);
        fs::rename(&neighbour, path)
    };
    replace().map_err(|e| {
        let _ = fs::remove_file(&neighbour);
        Error::io("write", path, &e)
    })
}
