//! Words of a table.

/// Size of a symbol.
pub(super) const SYMBOL: u64 = 24;

/// Little-endian number at an offset of a table whose size was checked; 0 beyond its end.
pub(super) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    array(bytes, offset).map_or(0, u16::from_le_bytes)
}

/// As [`u16_at`], with 32 bits.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    array(bytes, offset).map_or(0, u32::from_le_bytes)
}

/// As [`u16_at`], with 64 bits.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    array(bytes, offset).map_or(0, u64::from_le_bytes)
}

fn array<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}
