//! What a member of an archive defines for others: what the index of an archive is made of.

mod elf;

use crate::error::Error;
use crate::superarchive::Definition;

/// The symbols of an object file that others can be linked with, in its own order. Of anything else
/// there are none: archives may hold any files.
///
/// # Errors
///
/// If it is an object file, and damaged.
pub fn definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Error> {
    let found = match data {
        [0x7F, b'E', b'L', b'F', ..] => elf::definitions(data),
        _ => Ok(Vec::new()),
    };
    Ok(found?)
}
