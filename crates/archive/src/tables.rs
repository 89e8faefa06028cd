//! The tables, and the archive that they describe.

use crate::bytes::Bytes;
use crate::format::Header;

/// Tables with a validated header.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    pub archive: Bytes<'a>,
    pub blob: Bytes<'a>,
    pub header: Header,
}

impl<'a> Tables<'a> {
    /// A text of the tables, whose offset and length are at `at`.
    pub fn text(&self, at: u64) -> Option<&'a [u8]> {
        let (offset, length) = (self.blob.u32(at)?, self.blob.u32(at.checked_add(4)?)?);
        let texts = self.header.texts;
        let end = u64::from(offset).checked_add(u64::from(length))?;
        if end > u64::from(texts.count) {
            return None;
        }
        let text = self.blob.get(texts.at + u64::from(offset), length.into())?;
        Some(text.0)
    }
}
