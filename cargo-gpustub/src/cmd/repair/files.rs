//! Files of the output.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use gpustub_image::edit::{Patch, Piece};
use gpustub_workspace::error::Result;
use gpustub_workspace::stream;

use super::job::Job;

/// Writes one file, edited if it has an edit.
pub fn write_file(job: &Job, member: &str, from: &Path, to: &Path) -> Result<()> {
    stream::write(to, Some(from), |out| match job.patches.get(member) {
        Some((file, patch)) => write_patch(file, patch, out),
        None => io::copy(&mut File::open(from)?, out).map(drop),
    })
}

/// Writes an edited image. Ranges of the original are read from its file, not from its map, whose pages would be
/// resident.
pub fn write_patch(mut file: &File, patch: &Patch, out: &mut dyn Write) -> io::Result<()> {
    for piece in patch.pieces() {
        match piece {
            Piece::New(bytes) => out.write_all(bytes)?,
            Piece::Copy(range) => {
                file.seek(SeekFrom::Start(range.start))?;
                let length = range.end - range.start;
                if io::copy(&mut file.take(length), out)? != length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
    Ok(())
}
