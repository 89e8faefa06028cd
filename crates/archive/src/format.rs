//! Layout of the tables: `FORMAT.md` in code.

use crate::bytes::Bytes;
use crate::error::{Error, Part};

/// First bytes of the tables.
pub const MAGIC: [u8; 16] = *b"\x7fgpustub archive";

/// Last bytes of the archive's own index, if it contains the tables.
pub const TRAILER: [u8; 16] = *b"\x7fgpustub trailer";

/// Major version of the format. A reader rejects others, and ignores the additions of later minor
/// versions.
pub const MAJOR: u16 = 1;

/// Required feature: contents may be compressed.
pub const COMPRESSED: u32 = 1;
const KNOWN_FEATURES: u32 = COMPRESSED;

/// Size of the header, as far as this version knows it; the last 8 bytes are the hash.
pub const HEADER_SIZE: u64 = 120;

/// Sizes of the records of all parts, in the order of the file.
const RECORD_SIZES: [u32; 12] = [48, 32, 4, 32, 16, 4, 12, 16, 8, 8, 32, 1];

/// Consecutive records of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Records {
    /// Offset of the first one in the blob.
    pub offset: u64,
    pub count: u32,
    record_size: u32,
}

impl Records {
    /// Offset of the record of that index.
    pub fn get(self, index: u32) -> Option<u64> {
        (index < self.count).then(|| self.offset + u64::from(index) * u64::from(self.record_size))
    }

    /// The records from `first` on.
    pub fn range(self, first: u32, count: u64) -> Option<Self> {
        let end = u64::from(first).checked_add(count)?;
        (end <= self.count.into()).then(|| Self {
            offset: self.offset + u64::from(first) * u64::from(self.record_size),
            count: count as u32,
            ..self
        })
    }

    pub fn end(self) -> u64 {
        self.offset + u64::from(self.count) * u64::from(self.record_size)
    }
}

/// Validated header of the tables: each part is within them.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub blob_size: u64,
    /// End of the tables, where hidden contents begin.
    pub tables_size: u64,
    pub features: u32,
    /// The index of the default view, plus one; 0: none.
    pub default_plus_one: u32,
    /// Longest displacement of the directory.
    pub longest: u32,
    pub contents: Records,
    pub views: Records,
    pub directory: Records,
    pub dictionaries: Records,
    pub slots: Records,
    pub rows: Records,
    pub lists: Records,
    pub entries: Records,
    pub layer_lists: Records,
    pub layers: Records,
    pub extensions: Records,
    pub texts: Records,
}

impl Header {
    pub fn read(blob: Bytes<'_>) -> Result<Self, Error> {
        let malformed = Error::Malformed(Part::Header);
        let major = blob.u16(16).ok_or(malformed)?;
        if major != MAJOR {
            return Err(Error::UnsupportedVersion { major });
        }
        let unknown = blob.u32(24).ok_or(malformed)? & !KNOWN_FEATURES;
        if unknown != 0 {
            return Err(Error::UnsupportedFeatures { bits: unknown });
        }
        let header = Self::read_fields(blob).ok_or(malformed)?;
        let blob = blob.get(0, header.blob_size).ok_or(malformed)?;
        for index in 0..header.extensions.count {
            Extension::read(blob, &header, index)?;
        }
        Ok(header)
    }

    fn read_fields(blob: Bytes<'_>) -> Option<Self> {
        let header_size = u64::from(blob.u32(20)?);
        let tables_size = blob.u64(40)?;
        let mut parts = RECORD_SIZES.map(|record_size| Records {
            offset: 0,
            count: 0,
            record_size,
        });
        let mut part_offset = header_size;
        for (part, field) in parts.iter_mut().zip((56..).step_by(4)) {
            part.offset = part_offset;
            part.count = blob.u32(field)?;
            part_offset = part.end();
        }
        let [
            contents,
            views,
            directory,
            dictionaries,
            slots,
            rows,
            lists,
            entries,
            layer_lists,
            layers,
            extensions,
            texts,
        ] = parts;
        let header = Self {
            blob_size: blob.u64(32)?,
            tables_size,
            features: blob.u32(24)?,
            default_plus_one: blob.u32(48)?,
            longest: blob.u32(52)?,
            contents,
            views,
            directory,
            dictionaries,
            slots,
            rows,
            lists,
            entries,
            layer_lists,
            layers,
            extensions,
            texts,
        };
        let fits = header_size >= HEADER_SIZE
            && header.texts.end() <= tables_size
            && tables_size <= header.blob_size
            && header.blob_size <= blob.len()
            && header.default_plus_one <= header.views.count
            && header.longest <= header.directory.count;
        fits.then_some(header)
    }
}

/// Additional data of a later version.
#[derive(Clone, Copy, Debug)]
pub struct Extension<'a> {
    pub offset: u64,
    pub data: Bytes<'a>,
    pub hash: u64,
}

impl<'a> Extension<'a> {
    /// Refuses required extensions: no kind is known.
    pub fn read(blob: Bytes<'a>, header: &Header, index: u32) -> Result<Self, Error> {
        let malformed = Error::Malformed(Part::Extensions);
        let (kind, flags, extension) = Self::read_record(blob, header, index).ok_or(malformed)?;
        match flags {
            0 => Ok(extension),
            1 => Err(Error::UnsupportedExtension { kind }),
            _ => Err(malformed),
        }
    }

    /// The kind, the flags and the rest of the record.
    fn read_record(blob: Bytes<'a>, header: &Header, index: u32) -> Option<(u32, u32, Self)> {
        let record = header.extensions.get(index)?;
        let (offset, size) = (blob.u64(record + 8)?, blob.u64(record + 16)?);
        let extension = Self {
            offset,
            data: blob.get(offset, size)?,
            hash: blob.u64(record + 24)?,
        };
        Some((blob.u32(record)?, blob.u32(record + 4)?, extension))
    }
}
