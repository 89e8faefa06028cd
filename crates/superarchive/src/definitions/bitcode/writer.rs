//! Writes a bitstream: blocks, and records without abbreviations.

use super::codes::{encoding, next};

/// Width of abbreviation ids outside of all blocks.
pub const OUTSIDE: u32 = 2;

/// Bits, the lowest of each byte first.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
    /// Bits of an incomplete byte, and their number.
    pending: u64,
    pending_bits: u32,
}

/// Offset of the content of a block that is being written; its size precedes it.
pub struct OpenBlock(usize);

impl Writer {
    /// A writer that appends to these bytes, a multiple of four.
    pub fn with_prefix(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_owned(),
            ..Self::default()
        }
    }

    /// Number of whole bytes written.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes a number of `width` bits, at most 32.
    pub fn fixed(&mut self, number: u64, width: u32) {
        self.pending |= number << self.pending_bits;
        self.pending_bits += width;
        while self.pending_bits >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.pending_bits -= 8;
        }
    }

    /// Writes a number in digits of `width` bits, whose highest bit means that more follow.
    pub fn vbr(&mut self, mut number: u64, width: u32) {
        let continuation = 1 << (width - 1);
        while number >= continuation {
            self.fixed(number & (continuation - 1) | continuation, width);
            number >>= width - 1;
        }
        self.fixed(number, width);
    }

    /// Pads to the next multiple of 32 bits.
    pub fn align(&mut self) {
        if self.pending_bits > 0 {
            self.fixed(0, 8 - self.pending_bits);
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Begins a block, inside a block of width `outer_width`.
    pub fn enter(&mut self, outer_width: u32, id: u64, width: u32) -> OpenBlock {
        self.fixed(next::ENTER_SUBBLOCK, outer_width);
        self.vbr(id, 8);
        self.vbr(width.into(), 4);
        self.align();
        self.bytes.extend([0; 4]);
        OpenBlock(self.bytes.len())
    }

    /// Ends a block of this width.
    pub fn end(&mut self, block: OpenBlock, width: u32) {
        self.fixed(next::END_BLOCK, width);
        self.align();
        self.close(block);
    }

    fn close(&mut self, OpenBlock(start): OpenBlock) {
        let words = (self.bytes.len() - start) / 4;
        self.bytes[start - 4..start].copy_from_slice(&(words as u32).to_le_bytes());
    }

    /// Writes a block with the content of another stream, including its end.
    pub fn block(&mut self, outer_width: u32, id: u64, width: u32, content: &[u8]) {
        let block = self.enter(outer_width, id, width);
        self.bytes.extend(content);
        self.close(block);
    }

    /// Writes a block outside of all others, of records whose operands are bytes.
    pub fn plain(&mut self, id: u64, records: &[(u64, &[u8])]) {
        const WIDTH: u32 = 3;
        let block = self.enter(OUTSIDE, id, WIDTH);
        for (code, bytes) in records {
            let operands: Vec<u64> = bytes.iter().copied().map(u64::from).collect();
            self.record(WIDTH, *code, &operands);
        }
        self.end(block, WIDTH);
    }

    /// Writes a record, in a block of this width.
    pub fn record(&mut self, width: u32, code: u64, operands: &[u64]) {
        self.fixed(next::UNABBREV_RECORD, width);
        self.vbr(code, 6);
        self.vbr(operands.len() as u64, 6);
        for &operand in operands {
            self.vbr(operand, 6);
        }
    }

    /// Writes the blob at the end of a record, which its abbreviation declares.
    pub fn blob(&mut self, bytes: &[u8]) {
        self.vbr(bytes.len() as u64, 6);
        self.align();
        self.bytes.extend(bytes);
        self.align();
    }

    /// Defines an abbreviation for records of this code whose operands are bytes.
    pub fn define_text(&mut self, width: u32, code: u64) {
        self.fixed(next::DEFINE_ABBREV, width);
        // The code itself, an array, and its elements: numbers of eight bits.
        self.vbr(3, 5);
        self.fixed(1, 1);
        self.vbr(code, 8);
        self.fixed(0, 1);
        self.fixed(encoding::ARRAY, 3);
        self.fixed(0, 1);
        self.fixed(encoding::FIXED, 3);
        self.vbr(8, 5);
    }

    /// Defines an abbreviation for records of this code that are a blob.
    pub fn define_blob(&mut self, width: u32, code: u64) {
        self.fixed(next::DEFINE_ABBREV, width);
        self.vbr(2, 5);
        self.fixed(1, 1);
        self.vbr(code, 8);
        self.fixed(0, 1);
        self.fixed(encoding::BLOB, 3);
    }
}
