//! String tables: blobs that contain the names of a file.

use super::codes::BLOB;
use super::stream::{Block, Entry, Stream};
use crate::error::Problem;

/// Reads the blob of a block.
pub fn read_blob<'d>(stream: &mut Stream<'d>, mut outer: Block) -> Result<&'d [u8], Problem> {
    let mut found = &[][..];
    loop {
        match stream.next(&mut outer)? {
            Entry::End => return Ok(found),
            Entry::Block(inner) => stream.skip(&inner)?,
            Entry::Record if stream.record.code == BLOB => {
                found = stream.record.blob.unwrap_or_default();
            }
            Entry::Record => {}
        }
    }
}

/// The string at this offset, of this size.
pub fn string_at(texts: &[u8], (at, size): (u64, u64)) -> Result<&[u8], Problem> {
    let found = (|| {
        let (at, end) = (usize::try_from(at).ok()?, at.checked_add(size)?);
        texts.get(at..usize::try_from(end).ok()?)
    })();
    found.ok_or(Problem::Malformed(
        "symbol name is outside the string table",
    ))
}
