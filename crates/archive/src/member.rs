//! Members.

use crate::bytes::Bytes;
use crate::container::AR_HEADER_SIZE;
use crate::error::{Error, Part};
use crate::format::{HIDDEN, MEMBER_SIZE};
use crate::hash::hash_bytes;
use crate::tables::Tables;

/// A member: an object file, a module of bitcode, or anything else.
///
/// ```
/// # use gpustub_archive::SuperArchive;
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// # let archive = SuperArchive::parse(bytes)?;
/// let view = archive.view("gfx1100")?.expect("a view");
/// let member = view.find_symbol("scale")?.expect("a symbol");
/// assert_eq!(member.name(), b"scale.o");
/// assert!(!member.in_default_view());
/// assert!(member.data()?.starts_with(b"\x7fELF"));
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    archive: Bytes<'a>,
    index: u32,
    name: &'a [u8],
    /// Offset of the contents, in the blob or in the archive.
    at: u64,
    size: u64,
    contents_hash: u64,
    /// Hash of the header in the archive, if the member has one.
    header_hash: Option<u32>,
}

impl<'a> Member<'a> {
    pub(crate) fn read(tables: Tables<'a>, index: u32) -> Result<Self, Error> {
        let malformed = Error::Malformed(Part::Members);
        if index >= tables.header.members.count {
            return Err(malformed);
        }
        Self::fields(tables, index).ok_or(malformed)
    }

    fn fields(tables: Tables<'a>, index: u32) -> Option<Self> {
        let blob = tables.blob;
        let entry = tables.header.members.at + u64::from(index) * MEMBER_SIZE;
        let hidden = blob.u32(entry + 32)? & HIDDEN != 0;
        Some(Self {
            archive: if hidden { blob } else { tables.archive },
            index,
            name: tables.text(entry + 24)?,
            at: blob.u64(entry)?,
            size: blob.u64(entry + 8)?,
            contents_hash: blob.u64(entry + 16)?,
            header_hash: (!hidden).then_some(blob.u32(entry + 36)?),
        })
    }

    /// Index among the members of the archive. Two views share a member if the index is the same.
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// Name of its file in the original archive.
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether the member is in the default view, which ordinary tools read.
    pub fn in_default_view(&self) -> bool {
        self.header_hash.is_some()
    }

    /// Contents of the member.
    ///
    /// # Errors
    ///
    /// [`Error::MemberMoved`] if another tool has moved it, or its header is not as written.
    pub fn data(&self) -> Result<&'a [u8], Error> {
        let moved = Error::MemberMoved { member: self.index };
        if let Some(written) = self.header_hash {
            let header = self.at.checked_sub(AR_HEADER_SIZE).ok_or(moved)?;
            let header = self.archive.get(header, AR_HEADER_SIZE).ok_or(moved)?;
            if hash_bytes(header.0) as u32 != written {
                return Err(moved);
            }
        }
        let data = self.archive.get(self.at, self.size).ok_or(moved)?;
        Ok(data.0)
    }

    /// Checks the contents against their hash.
    pub(crate) fn verify(&self) -> Result<(), Error> {
        if hash_bytes(self.data()?) == self.contents_hash {
            Ok(())
        } else {
            Err(Error::HashMismatch { member: self.index })
        }
    }
}
