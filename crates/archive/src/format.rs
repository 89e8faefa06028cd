//! Layout of the tables: `FORMAT.md` in code.

use crate::bytes::Bytes;
use crate::error::{Error, Part};

/// First bytes of the tables.
pub const MAGIC: [u8; 16] = *b"\x7fgpustub archive";

/// Last bytes of the archive's own index, if it contains the tables.
pub const TRAILER: [u8; 16] = *b"\x7fgpustub trailer";

/// Number of bytes that a symbol's name may have regardless of sharing: see `FORMAT.md`.
pub const MAX_SHARED_NAME: u64 = 4096;

/// Major version of the format. A reader rejects others, and ignores the additions of later minor
/// versions.
pub const MAJOR: u16 = 1;

pub const HEADER_SIZE: u64 = 96;
pub const MEMBER_SIZE: u64 = 40;
pub const VIEW_SIZE: u64 = 40;
pub const SLOT_SIZE: u64 = 16;
pub const ENTRY_SIZE: u64 = 8;
pub const LAYER_SIZE: u64 = 8;

/// Flag of a hidden member, which follows the tables instead of being a member of the archive.
pub const HIDDEN: u32 = 1;

/// A table: its offset in the blob, and its number of entries (for texts: bytes).
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub at: u64,
    pub count: u32,
}

impl Table {
    pub fn read(blob: Bytes<'_>, at: u64, size: u64, within: u64) -> Option<Self> {
        let table = Self {
            at: blob.u32(at)?.into(),
            count: blob.u32(at + 4)?,
        };
        let end = table.at + u64::from(table.count) * size;
        (end <= within).then_some(table)
    }
}

/// A hash table whose number of slots is a power of two.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    pub at: u64,
    bits: u32,
}

impl Slots {
    pub fn read(blob: Bytes<'_>, at: u64, size: u64, within: u64) -> Option<Self> {
        let slots = Self {
            at: blob.u32(at)?.into(),
            bits: blob.u32(at + 4)?,
        };
        if slots.bits > 31 {
            return None;
        }
        let end = slots.at + u64::from(slots.slots()) * size;
        (end <= within).then_some(slots)
    }

    pub fn slots(self) -> u32 {
        1 << self.bits
    }

    pub fn mask(self) -> u32 {
        self.slots() - 1
    }
}

/// Validated header of the tables: each table is within them.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub blob_size: u64,
    pub archive_size: u64,
    /// End of the tables, where hidden members begin.
    pub tables_size: u64,
    pub tables_hash: u64,
    pub members: Table,
    pub views: Table,
    pub directory: Slots,
    pub texts: Table,
    /// The index of the default view, plus one; 0: none.
    pub default: u32,
}

impl Header {
    pub fn read(blob: Bytes<'_>) -> Result<Self, Error> {
        let major = blob.u16(16).ok_or(Error::Malformed(Part::Header))?;
        if major != MAJOR {
            return Err(Error::UnsupportedVersion { major });
        }
        Self::fields(blob).ok_or(Error::Malformed(Part::Header))
    }

    fn fields(blob: Bytes<'_>) -> Option<Self> {
        let tables_size = blob.u64(80)?;
        let header = Self {
            blob_size: blob.u64(24)?,
            archive_size: blob.u64(32)?,
            tables_size,
            tables_hash: blob.u64(88)?,
            members: Table::read(blob, 40, MEMBER_SIZE, tables_size)?,
            views: Table::read(blob, 48, VIEW_SIZE, tables_size)?,
            directory: Slots::read(blob, 56, 4, tables_size)?,
            texts: Table::read(blob, 64, 1, tables_size)?,
            default: blob.u32(72)?,
        };
        let fits = header.tables_size <= header.blob_size
            && header.blob_size <= blob.len()
            && header.default <= header.views.count;
        fits.then_some(header)
    }
}
