//! Rewrites a block with some of its records changed.

use super::bits::Bits;
use super::stream::{Block, BlockPart, Entry, KEPT, Record, Stream};
use super::writer::Writer;
use crate::definitions::not_canonical::NotCanonical;
use crate::error::Problem;

/// Edit of a record.
pub enum Edit {
    /// Keeps the record unchanged.
    Keep,
    /// Drops the record.
    Drop,
    /// Writes the record with these operands.
    Write(Vec<u64>),
    /// Writes the record with these operands and this blob.
    WriteBlob(Vec<u64>, Vec<u8>),
}

/// The input, with its bytes for copies.
pub struct Source<'d> {
    pub data: &'d [u8],
    pub stream: Stream<'d>,
}

impl<'d> Source<'d> {
    /// Bytes of a block that has just been entered.
    pub fn content(&self, block: &Block) -> Result<&'d [u8], Problem> {
        let (from, to) = (self.stream.position() / 8, block.end / 8);
        let content = self.data.get(from as usize..to as usize);
        content.ok_or(Problem::Truncated("last block of bitcode"))
    }

    /// Limits the output: abbreviations of damaged files can expand three bits to a hundred bytes.
    pub fn limit(&self, out: &Writer) -> Result<(), NotCanonical> {
        if out.len() > 2 * self.data.len() {
            return Err(NotCanonical::UnsupportedForm(
                "abbreviations shorten too much",
            ));
        }
        Ok(())
    }

    /// Copies the bits read since this position.
    pub fn copy(&self, out: &mut Writer, from: u64) -> Result<(), Problem> {
        self.copy_to(out, from, self.stream.position())
    }

    fn copy_to(&self, out: &mut Writer, from: u64, to: u64) -> Result<(), Problem> {
        let mut bits = Bits::new(self.data);
        bits.seek(from)?;
        while bits.position() < to {
            let width = (to - bits.position()).min(32) as u32;
            out.fixed(bits.fixed(width)?, width);
        }
        Ok(())
    }
}

/// Writes a block of records, inside a block of this width.
pub fn records(
    source: &mut Source<'_>,
    out: &mut Writer,
    outer: u32,
    mut block: Block,
    mut edit: impl FnMut(&Record<'_>) -> Result<Edit, NotCanonical>,
) -> Result<(), NotCanonical> {
    let width = block.width;
    let open = out.enter(outer, block.id, width);
    loop {
        source.limit(out)?;
        let from = source.stream.position();
        match source.stream.part(&mut block)? {
            BlockPart::Entry(Entry::End) => break,
            BlockPart::Definition => source.copy(out, from)?,
            BlockPart::Entry(Entry::Record) => {
                let record = &source.stream.record;
                match (edit(record)?, record.blob) {
                    (Edit::Keep, None) => source.copy(out, from)?,
                    // Not copied: a blob is aligned, and its new position may need other padding.
                    (Edit::Keep, Some(blob)) => {
                        source.copy_to(out, from, record.blob_at)?;
                        out.blob(blob);
                    }
                    (Edit::Drop, _) => {}
                    (Edit::Write(operands), None) if record.operands.len() < KEPT => {
                        out.record(width, record.code, &operands);
                    }
                    (Edit::WriteBlob(operands, blob), Some(_)) => {
                        let written = source.stream.write(&block, &operands, &blob, out);
                        written.ok_or(NotCanonical::UnsupportedForm(
                            "abbreviations have no room for a change",
                        ))?;
                    }
                    (Edit::Write(_) | Edit::WriteBlob(..), _) => {
                        return Err(NotCanonical::UnsupportedForm("record too long"));
                    }
                }
            }
            BlockPart::Info(_) | BlockPart::Entry(Entry::Block(_)) => {
                return Err(NotCanonical::UnsupportedForm("unknown block in the module"));
            }
        }
    }
    out.end(open, width);
    Ok(())
}
