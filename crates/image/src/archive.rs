//! Static libraries.

use object::read::archive::ArchiveFile;

use crate::error::{Error, Problem};
use crate::format::identify;

/// A file of an `ar` archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveMember<'d> {
    /// Name in the archive.
    pub name: &'d [u8],
    /// Contents.
    pub data: &'d [u8],
}

/// Iterates over the files of a static library (`.a`, `.rlib`), in order, up to the first error. A
/// thin archive, which only names files elsewhere, has none.
pub fn archive_members(
    bytes: &[u8],
) -> Result<impl Iterator<Item = Result<ArchiveMember<'_>, Error>>, Error> {
    if !bytes.starts_with(b"!<") {
        return Err(identify(bytes).into());
    }
    let archive = ArchiveFile::parse(bytes).map_err(|_| malformed_member())?;
    let members = (!archive.is_thin()).then(|| archive.members());
    Ok(members.into_iter().flatten().map(move |member| {
        let member = member.map_err(|_| malformed_member())?;
        Ok(ArchiveMember {
            name: member.name(),
            data: member.data(bytes).map_err(|_| malformed_member())?,
        })
    }))
}

fn malformed_member() -> Error {
    Problem::Malformed("archive member is cut off or has no header").into()
}
