//! Blocks, abbreviations and records of a bitstream (LLVM's `docs/BitCodeFormat.rst`).
//!
//! Reading is not recursive, and the cost of each bit of the file is bounded.

use std::collections::HashMap;

use super::bits::Bits;
use super::codes::{block, block_info, encoding, next};
use super::operand::{Number, Operand};
use super::writer::Writer;
use crate::error::Problem;

/// Next part of a block, including those that [`Stream::next`] hides.
pub enum BlockPart {
    /// An entry for callers.
    Entry(Entry),
    /// The block of abbreviations for other blocks, not read yet.
    BlockInfo(Block),
    /// An abbreviation that the rest of the block may use.
    Abbreviation,
}

/// Next entry of a block.
pub enum Entry {
    /// The end of the block.
    End,
    /// A nested block, to be entered or skipped.
    Block(Block),
    /// A record.
    Record,
}

/// A block that is being read.
pub struct Block {
    pub id: u64,
    /// Width of the abbreviation ids that start each entry.
    pub width: u32,
    /// Position of the end, in bits.
    pub end: u64,
    /// Number of abbreviations from `BLOCKINFO` when the block was entered.
    shared_count: usize,
    abbreviations: Vec<Abbreviation>,
}

/// A record.
#[derive(Default)]
pub struct Record<'d> {
    pub code: u64,
    /// Operands, or the first [`MAX_KEPT_OPERANDS`] of them.
    pub operands: Vec<u64>,
    pub blob: Option<&'d [u8]>,
    /// Position of the size of the blob, in bits.
    pub blob_position: u64,
    /// Index of the abbreviation of the record, if it has a blob.
    abbreviation_index: usize,
}

/// Maximum number of operands that are kept. No name is as long; only source text is, in records that
/// are not used here.
pub const MAX_KEPT_OPERANDS: usize = 1 << 20;

/// Encoding of a record's operands.
struct Abbreviation {
    /// The first is the record's code.
    operands: Vec<Operand>,
    tail: Tail,
}

/// Operands after those of fixed number.
enum Tail {
    None,
    Array(Operand),
    Blob,
}

/// A bitstream.
pub struct Stream<'d> {
    bits: Bits<'d>,
    /// Abbreviations in `BLOCKINFO` by the block's id.
    shared_abbreviations: HashMap<u64, Vec<Abbreviation>>,
    pub record: Record<'d>,
}

/// Maximum number of operands of an abbreviation. LLVM's have some twenty; literal operands take no
/// bits in records.
const MAX_ABBREVIATION_OPERANDS: u64 = 64;

const INVALID_ABBREVIATION: Problem = Problem::Malformed("invalid bitcode abbreviation");

impl<'d> Stream<'d> {
    /// The stream after the four bytes of magic, and a block for the top level.
    pub fn new(bytes: &'d [u8]) -> Result<(Self, Block), Problem> {
        let mut bits = Bits::new(bytes);
        bits.seek(32)?;
        let outside = Block {
            id: u64::MAX,
            width: 2,
            end: bytes.len() as u64 * 8,
            shared_count: 0,
            abbreviations: Vec::new(),
        };
        let stream = Self {
            bits,
            shared_abbreviations: HashMap::new(),
            record: Record::default(),
        };
        Ok((stream, outside))
    }

    /// Whether the rest is too short for a block: some tools pad with zeros.
    pub fn is_at_end(&self) -> bool {
        self.bits.remaining() < 64
    }

    /// Clears the abbreviations of `BLOCKINFO`: each module has its own.
    pub fn clear_block_info(&mut self) {
        self.shared_abbreviations.clear();
    }

    /// Skips a block.
    pub fn skip(&mut self, block: &Block) -> Result<(), Problem> {
        self.bits.seek(block.end)
    }

    /// Reads the next entry of a block; a record is stored in `self.record`.
    pub fn next(&mut self, block: &mut Block) -> Result<Entry, Problem> {
        self.next_with_position(block).map(|(_, entry)| entry)
    }

    /// As [`Self::next`], with the position of the entry in bits.
    pub fn next_with_position(&mut self, block: &mut Block) -> Result<(u64, Entry), Problem> {
        loop {
            let position = self.position();
            match self.next_part(block)? {
                BlockPart::Entry(entry) => return Ok((position, entry)),
                BlockPart::BlockInfo(inner) => self.read_block_info(inner)?,
                BlockPart::Abbreviation => {}
            }
        }
    }

    /// As [`Self::next`], including the parts that it skips.
    pub fn next_part(&mut self, block: &mut Block) -> Result<BlockPart, Problem> {
        Ok(match self.bits.fixed(block.width)? {
            next::END_BLOCK => {
                self.bits.align()?;
                BlockPart::Entry(Entry::End)
            }
            next::ENTER_SUBBLOCK => match self.enter()? {
                inner if inner.id == block::BLOCKINFO => BlockPart::BlockInfo(inner),
                inner => BlockPart::Entry(Entry::Block(inner)),
            },
            next::DEFINE_ABBREV => {
                block.abbreviations.push(self.read_abbreviation()?);
                BlockPart::Abbreviation
            }
            next::UNABBREV_RECORD => {
                self.read_unabbreviated_record()?;
                BlockPart::Entry(Entry::Record)
            }
            id => {
                let index = (id - next::FIRST_APPLICATION_ABBREV) as usize;
                self.read_abbreviated_record(block, index)?;
                BlockPart::Entry(Entry::Record)
            }
        })
    }

    /// Position of the next bit.
    pub fn position(&self) -> u64 {
        self.bits.position()
    }

    /// Operands of the record that begins at a position, with their positions. Continues after the record.
    pub fn numbers(&mut self, block: &Block, position: u64) -> Result<Vec<Number>, Problem> {
        self.bits.seek(position)?;
        let mut numbers = Vec::new();
        let id = self.bits.fixed(block.width)?;
        if id == next::UNABBREV_RECORD {
            self.bits.vbr(6)?;
            for _ in 0..self.bits.vbr(6)? {
                numbers.push(Number::read(Operand::Vbr(6), &mut self.bits)?);
            }
            return Ok(numbers);
        }
        let index = id
            .checked_sub(next::FIRST_APPLICATION_ABBREV)
            .ok_or(INVALID_ABBREVIATION)?;
        let abbreviation = find_abbreviation(&self.shared_abbreviations, block, index as usize)
            .ok_or(INVALID_ABBREVIATION)?;
        let (code, operands) = abbreviation
            .operands
            .split_first()
            .ok_or(INVALID_ABBREVIATION)?;
        code.read(&mut self.bits)?;
        for &operand in operands {
            numbers.push(Number::read(operand, &mut self.bits)?);
        }
        match abbreviation.tail {
            Tail::None => {}
            Tail::Array(element) => {
                for _ in 0..self.bits.vbr(6)? {
                    numbers.push(Number::read(element, &mut self.bits)?);
                }
            }
            Tail::Blob => return Err(INVALID_ABBREVIATION),
        }
        Ok(numbers)
    }

    fn enter(&mut self) -> Result<Block, Problem> {
        let id = self.bits.vbr(8)?;
        let width = self.bits.vbr(4)?;
        self.bits.align()?;
        let words = self.bits.fixed(32)?;
        let end = self.bits.position() + words * 32;
        if !(2..=32).contains(&width) {
            return Err(Problem::Malformed("bitcode block without a width"));
        }
        Ok(Block {
            id,
            width: width as u32,
            end,
            shared_count: self.shared_abbreviations.get(&id).map_or(0, Vec::len),
            abbreviations: Vec::new(),
        })
    }

    /// Reads the block of abbreviations for other blocks.
    pub fn read_block_info(&mut self, block: Block) -> Result<(), Problem> {
        let mut block_id = None;
        loop {
            match self.bits.fixed(block.width)? {
                next::END_BLOCK => return self.bits.align(),
                next::DEFINE_ABBREV => {
                    let abbreviation = self.read_abbreviation()?;
                    let id = block_id.ok_or(INVALID_ABBREVIATION)?;
                    self.shared_abbreviations
                        .entry(id)
                        .or_default()
                        .push(abbreviation);
                }
                next::UNABBREV_RECORD => {
                    self.read_unabbreviated_record()?;
                    if self.record.code == block_info::SETBID {
                        block_id = self.record.operands.first().copied();
                    }
                }
                _ => return Err(INVALID_ABBREVIATION),
            }
        }
    }

    fn read_abbreviation(&mut self) -> Result<Abbreviation, Problem> {
        let count = self.bits.vbr(5)?;
        if count > MAX_ABBREVIATION_OPERANDS {
            return Err(INVALID_ABBREVIATION);
        }
        let mut abbreviation = Abbreviation {
            operands: Vec::new(),
            tail: Tail::None,
        };
        for remaining in (0..count).rev() {
            let operand = match self.read_abbreviation_operand()? {
                AbbreviationOperand::Single(operand) => operand,
                AbbreviationOperand::Array if remaining == 1 => {
                    abbreviation.tail = Tail::Array(self.read_array_element()?);
                    break;
                }
                AbbreviationOperand::Blob if remaining == 0 => {
                    abbreviation.tail = Tail::Blob;
                    break;
                }
                _ => return Err(INVALID_ABBREVIATION),
            };
            abbreviation.operands.push(operand);
        }
        if abbreviation.operands.is_empty() {
            return Err(INVALID_ABBREVIATION);
        }
        Ok(abbreviation)
    }

    fn read_array_element(&mut self) -> Result<Operand, Problem> {
        match self.read_abbreviation_operand()? {
            // An element of no bits could be repeated indefinitely.
            AbbreviationOperand::Single(Operand::Literal(_)) => Err(INVALID_ABBREVIATION),
            AbbreviationOperand::Single(element) => Ok(element),
            AbbreviationOperand::Array | AbbreviationOperand::Blob => Err(INVALID_ABBREVIATION),
        }
    }

    fn read_abbreviation_operand(&mut self) -> Result<AbbreviationOperand, Problem> {
        if self.bits.fixed(1)? == 1 {
            let literal = Operand::Literal(self.bits.vbr(8)?);
            return Ok(AbbreviationOperand::Single(literal));
        }
        let operand = match self.bits.fixed(3)? {
            kind @ (encoding::FIXED | encoding::VBR) => match (self.bits.vbr(5)?, kind) {
                (0, _) => Operand::Literal(0),
                (width @ ..=64, encoding::FIXED) => Operand::Fixed(width as u32),
                (width @ 2..=32, _) => Operand::Vbr(width as u32),
                _ => return Err(INVALID_ABBREVIATION),
            },
            encoding::ARRAY => return Ok(AbbreviationOperand::Array),
            encoding::CHAR6 => Operand::Character,
            encoding::BLOB => return Ok(AbbreviationOperand::Blob),
            _ => return Err(INVALID_ABBREVIATION),
        };
        Ok(AbbreviationOperand::Single(operand))
    }

    /// Writes the latest record, which has a blob, with other operands and another blob; `None` if its
    /// abbreviation cannot encode them.
    pub fn write(
        &self,
        block: &Block,
        operands: &[u64],
        blob: &[u8],
        out: &mut Writer,
    ) -> Option<()> {
        let index = self.record.abbreviation_index;
        let abbreviation = find_abbreviation(&self.shared_abbreviations, block, index)?;
        out.fixed(next::FIRST_APPLICATION_ABBREV + index as u64, block.width);
        if abbreviation.operands.len() != 1 + operands.len() {
            return None;
        }
        let numbers = std::iter::once(&self.record.code).chain(operands);
        for (operand, number) in abbreviation.operands.iter().zip(numbers) {
            operand.write(*number, out)?;
        }
        out.blob(blob);
        Some(())
    }

    fn read_unabbreviated_record(&mut self) -> Result<(), Problem> {
        let (bits, record) = (&mut self.bits, &mut self.record);
        record.begin(bits.vbr(6)?);
        for _ in 0..bits.vbr(6)? {
            record.push(bits.vbr(6)?);
        }
        Ok(())
    }

    fn read_abbreviated_record(&mut self, block: &Block, index: usize) -> Result<(), Problem> {
        let abbreviation = find_abbreviation(&self.shared_abbreviations, block, index)
            .ok_or(INVALID_ABBREVIATION)?;
        let (bits, record) = (&mut self.bits, &mut self.record);
        let (code, operands) = abbreviation
            .operands
            .split_first()
            .ok_or(INVALID_ABBREVIATION)?;
        record.begin(code.read(bits)?);
        for operand in operands {
            record.push(operand.read(bits)?);
        }
        match abbreviation.tail {
            Tail::None => {}
            Tail::Array(element) => {
                for _ in 0..bits.vbr(6)? {
                    record.push(element.read(bits)?);
                }
            }
            Tail::Blob => {
                record.blob_position = bits.position();
                record.abbreviation_index = index;
                let size = bits.vbr(6)?;
                bits.align()?;
                record.blob = Some(bits.bytes(size)?);
                bits.align()?;
            }
        }
        Ok(())
    }
}

/// An abbreviation that a block shares with others, or of the block itself.
fn find_abbreviation<'a>(
    shared_abbreviations: &'a HashMap<u64, Vec<Abbreviation>>,
    block: &'a Block,
    index: usize,
) -> Option<&'a Abbreviation> {
    match index.checked_sub(block.shared_count) {
        None => shared_abbreviations.get(&block.id)?.get(index),
        Some(block_index) => block.abbreviations.get(block_index),
    }
}

/// An operand in the definition of an abbreviation.
enum AbbreviationOperand {
    Single(Operand),
    /// The operand after it is the encoding of the elements.
    Array,
    Blob,
}

impl Block {
    /// Record code of the newest abbreviation, if it has a fixed one.
    pub fn newest_abbreviation_code(&self) -> Option<u64> {
        match self.abbreviations.last()?.operands.first()? {
            Operand::Literal(code) => Some(*code),
            _ => None,
        }
    }
}

impl Record<'_> {
    fn begin(&mut self, code: u64) {
        self.code = code;
        self.operands.clear();
        self.blob = None;
    }

    fn push(&mut self, operand: u64) {
        if self.operands.len() < MAX_KEPT_OPERANDS {
            self.operands.push(operand);
        }
    }

    /// Operands from an index on, as text.
    pub fn text(&self, start: usize) -> Result<Vec<u8>, Problem> {
        if self.operands.len() == MAX_KEPT_OPERANDS {
            return Err(Problem::Malformed("bitcode name is too long"));
        }
        let characters = self.operands.get(start..).unwrap_or_default();
        Ok(characters
            .iter()
            .map(|&character| character as u8)
            .collect())
    }

    /// The operand at an index.
    pub fn operand(&self, index: usize) -> Result<u64, Problem> {
        self.operands
            .get(index)
            .copied()
            .ok_or(Problem::Malformed("bitcode record is too short"))
    }
}
