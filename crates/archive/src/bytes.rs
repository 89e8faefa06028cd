//! Unaligned, untrusted byte access.

/// Little-endian numbers in unvalidated bytes. Offsets are 64 bits wide on every host.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn len(self) -> u64 {
        self.0.len() as u64
    }

    /// The `size` bytes at an offset.
    pub fn get(self, at: u64, size: u64) -> Option<Self> {
        let at = usize::try_from(at).ok()?;
        let end = at.checked_add(usize::try_from(size).ok()?)?;
        self.0.get(at..end).map(Bytes)
    }

    fn array<const N: usize>(self, at: u64) -> Option<[u8; N]> {
        let bytes = self.get(at, N as u64)?;
        bytes.0.try_into().ok()
    }

    pub fn u16(self, at: u64) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    pub fn u32(self, at: u64) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    pub fn u64(self, at: u64) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }
}
