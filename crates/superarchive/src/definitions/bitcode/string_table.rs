//! String tables: blobs that contain the names of a file.

use super::codes::BLOB;
use super::stream::{Block, Entry, Stream};
use crate::error::Problem;

/// Reads the blob of a block.
pub fn read_blob<'d>(stream: &mut Stream<'d>, mut outer: Block) -> Result<&'d [u8], Problem> {
    let mut blob = &[][..];
    loop {
        match stream.next(&mut outer)? {
            Entry::End => return Ok(blob),
            Entry::Block(inner) => stream.skip(&inner)?,
            Entry::Record if stream.record.code == BLOB => {
                blob = stream.record.blob.unwrap_or_default();
            }
            Entry::Record => {}
        }
    }
}

/// The string at this offset, of this size.
pub fn string_at(strings: &[u8], (offset, size): (u64, u64)) -> Result<&[u8], Problem> {
    offset
        .checked_add(size)
        .and_then(|end| {
            let (offset, end) = (usize::try_from(offset).ok()?, usize::try_from(end).ok()?);
            strings.get(offset..end)
        })
        .ok_or(Problem::Malformed(
            "symbol name is outside the string table",
        ))
}
