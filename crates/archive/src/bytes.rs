//! Unaligned, untrusted byte access.

/// Little-endian numbers in unvalidated bytes. Offsets are 64 bits wide on every host.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn len(self) -> u64 {
        self.0.len() as u64
    }

    /// The `size` bytes at an offset.
    pub fn get(self, offset: u64, size: u64) -> Option<Self> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        self.0.get(start..end).map(Bytes)
    }

    /// The `N` bytes at an offset.
    pub fn array<const N: usize>(self, offset: u64) -> Option<&'a [u8; N]> {
        self.0.get(usize::try_from(offset).ok()?..)?.first_chunk()
    }

    pub fn u16(self, offset: u64) -> Option<u16> {
        self.array(offset).map(|bytes| u16::from_le_bytes(*bytes))
    }

    pub fn u32(self, offset: u64) -> Option<u32> {
        self.array(offset).map(|bytes| u32::from_le_bytes(*bytes))
    }

    pub fn u64(self, offset: u64) -> Option<u64> {
        self.array(offset).map(|bytes| u64::from_le_bytes(*bytes))
    }
}

/// The number of 32 bits at an offset of a record.
pub fn word<const N: usize>(record: &[u8; N], offset: usize) -> u32 {
    u32::from_le_bytes([
        record[offset],
        record[offset + 1],
        record[offset + 2],
        record[offset + 3],
    ])
}

/// The number of 64 bits at an offset of a record.
pub fn long<const N: usize>(record: &[u8; N], offset: usize) -> u64 {
    u64::from(word(record, offset)) | u64::from(word(record, offset + 4)) << 32
}
