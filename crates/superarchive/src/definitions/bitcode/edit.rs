//! Rewrites a block with some of its records changed.

use super::bits::Bits;
use super::stream::{Block, BlockPart, Entry, MAX_KEPT_OPERANDS, Record, Stream};
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
pub struct BitcodeInput<'d> {
    pub data: &'d [u8],
    pub stream: Stream<'d>,
}

impl<'d> BitcodeInput<'d> {
    /// Bytes of a block that has just been entered.
    pub fn content(&self, block: &Block) -> Result<&'d [u8], Problem> {
        let (start, end) = (self.stream.position() / 8, block.end / 8);
        self.data
            .get(start as usize..end as usize)
            .ok_or(Problem::Truncated("last block of bitcode"))
    }

    /// Limits the output: abbreviations of damaged files can expand three bits to a hundred bytes.
    pub fn check_output_size(&self, out: &Writer) -> Result<(), NotCanonical> {
        if out.len() > 2 * self.data.len() {
            return Err(NotCanonical::UnsupportedForm(
                "abbreviations shorten too much",
            ));
        }
        Ok(())
    }

    /// Copies the bits read since this position.
    pub fn copy(&self, out: &mut Writer, start: u64) -> Result<(), Problem> {
        self.copy_range(out, start, self.stream.position())
    }

    fn copy_range(&self, out: &mut Writer, start: u64, end: u64) -> Result<(), Problem> {
        let mut bits = Bits::new(self.data);
        bits.seek(start)?;
        while bits.position() < end {
            let width = (end - bits.position()).min(32) as u32;
            out.fixed(bits.fixed(width)?, width);
        }
        Ok(())
    }
}

/// Writes a block of records, inside a block of width `outer_width`.
pub fn edit_records(
    input: &mut BitcodeInput<'_>,
    out: &mut Writer,
    outer_width: u32,
    mut block: Block,
    mut edit: impl FnMut(&Record<'_>) -> Result<Edit, NotCanonical>,
) -> Result<(), NotCanonical> {
    let open_block = out.enter(outer_width, block.id, block.width);
    loop {
        input.check_output_size(out)?;
        let start = input.stream.position();
        match input.stream.next_part(&mut block)? {
            BlockPart::Entry(Entry::End) => break,
            BlockPart::Abbreviation => input.copy(out, start)?,
            BlockPart::Entry(Entry::Record) => {
                let record_edit = edit(&input.stream.record)?;
                write_record(input, out, &block, start, record_edit)?;
            }
            BlockPart::BlockInfo(_) | BlockPart::Entry(Entry::Block(_)) => {
                return Err(NotCanonical::UnsupportedForm("unknown block in the module"));
            }
        }
    }
    out.end(open_block, block.width);
    Ok(())
}

/// Writes the edited form of the record that begins at `start`.
fn write_record(
    input: &BitcodeInput<'_>,
    out: &mut Writer,
    block: &Block,
    start: u64,
    edit: Edit,
) -> Result<(), NotCanonical> {
    let record = &input.stream.record;
    match (edit, record.blob) {
        (Edit::Keep, None) => input.copy(out, start)?,
        // Not copied: a blob is aligned, and its new position may need other padding.
        (Edit::Keep, Some(blob)) => {
            input.copy_range(out, start, record.blob_position)?;
            out.blob(blob);
        }
        (Edit::Drop, _) => {}
        (Edit::Write(operands), None) if record.operands.len() < MAX_KEPT_OPERANDS => {
            out.record(block.width, record.code, &operands);
        }
        (Edit::WriteBlob(operands, blob), Some(_)) => {
            input.stream.write(block, &operands, &blob, out).ok_or(
                NotCanonical::UnsupportedForm("abbreviations have no room for a change"),
            )?
        }
        (Edit::Write(_) | Edit::WriteBlob(..), _) => {
            return Err(NotCanonical::UnsupportedForm("record too long"));
        }
    }
    Ok(())
}
