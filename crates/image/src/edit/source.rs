//! Bytes to read from: the original, or an edited image that is not written yet.

use std::borrow::Cow;

/// A file's bytes.
pub(super) trait Source {
    /// Size of the file.
    fn len(&self) -> u64;

    /// The bytes of a range; `None` if it reaches beyond the file. Copied only where the range is not
    /// contiguous in memory.
    fn bytes(&self, offset: u64, size: u64) -> Option<Cow<'_, [u8]>>;
}

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn bytes(&self, offset: u64, size: u64) -> Option<Cow<'_, [u8]>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        self.get(start..end).map(Cow::Borrowed)
    }
}

/// Little-endian number at an offset of a table whose size was checked; 0 beyond its end.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    array(bytes, at).map_or(0, u16::from_le_bytes)
}

/// As [`u16_at`], with 32 bits.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    array(bytes, at).map_or(0, u32::from_le_bytes)
}

/// As [`u16_at`], with 64 bits.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    array(bytes, at).map_or(0, u64::from_le_bytes)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
