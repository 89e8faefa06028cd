//! The tables, and the archive that they describe.

use crate::bytes::Bytes;
use crate::format::{Header, Records};

/// Tables with a validated header.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    pub store: Store<'a>,
    /// Offset of the blob in the archive.
    pub blob_offset: u64,
    pub header: Header,
}

/// The parts that members are read from.
#[derive(Clone, Copy, Debug)]
pub struct Store<'a> {
    pub archive: Bytes<'a>,
    pub blob: Bytes<'a>,
    pub contents: Records,
    pub texts: Records,
}

impl<'a> Store<'a> {
    /// A text of the tables, whose offset and length are in the record.
    pub fn text(&self, record: u64) -> Option<&'a [u8]> {
        self.text_of(self.blob.u32(record)?, self.blob.u32(record + 4)?)
    }

    pub fn text_of(&self, offset: u32, length: u32) -> Option<&'a [u8]> {
        let text = self.texts.range(offset, length.into())?;
        Some(self.blob.get(text.offset, length.into())?.0)
    }
}
