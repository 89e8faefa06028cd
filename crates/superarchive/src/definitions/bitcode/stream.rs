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
    Info(Block),
    /// An abbreviation that the rest of the block may use.
    Definition,
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
    shared: usize,
    abbreviations: Vec<Abbreviation>,
}

/// A record.
#[derive(Default)]
pub struct Record<'d> {
    pub code: u64,
    /// Operands, or the first [`KEPT`] of them.
    pub operands: Vec<u64>,
    pub blob: Option<&'d [u8]>,
    /// Position of the size of the blob, in bits.
    pub blob_at: u64,
    /// Abbreviation of the record, if it has a blob.
    abbreviation: usize,
}

/// Maximum number of operands that are kept. No name is as long; only source text is, in records that
/// are not used here.
pub const KEPT: usize = 1 << 20;

/// Encoding of a record's operands.
struct Abbreviation {
    /// The first is the record's code.
    operands: Vec<Operand>,
    last: Last,
}

enum Last {
    None,
    Array(Operand),
    Blob,
}

/// A bitstream.
pub struct Stream<'d> {
    bits: Bits<'d>,
    /// Abbreviations in `BLOCKINFO` by the block's id.
    shared: HashMap<u64, Vec<Abbreviation>>,
    pub record: Record<'d>,
}

/// Maximum number of operands of an abbreviation. LLVM's have some twenty; literal operands take no
/// bits in records.
const MAX_OPERANDS: u64 = 64;

const BAD: Problem = Problem::Malformed("invalid bitcode abbreviation");

impl<'d> Stream<'d> {
    /// The stream after the four bytes of magic, and a block for the top level.
    pub fn new(bytes: &'d [u8]) -> Result<(Self, Block), Problem> {
        let mut bits = Bits::new(bytes);
        bits.seek(32)?;
        let outside = Block {
            id: u64::MAX,
            width: 2,
            end: bytes.len() as u64 * 8,
            shared: 0,
            abbreviations: Vec::new(),
        };
        let stream = Self {
            bits,
            shared: HashMap::new(),
            record: Record::default(),
        };
        Ok((stream, outside))
    }

    /// Whether the rest is too short for a block: some tools pad with zeros.
    pub fn is_over(&self) -> bool {
        self.bits.left() < 64
    }

    /// Clears the abbreviations of `BLOCKINFO`: each module has its own.
    pub fn forget(&mut self) {
        self.shared.clear();
    }

    /// Skips a block.
    pub fn skip(&mut self, block: &Block) -> Result<(), Problem> {
        self.bits.seek(block.end)
    }

    /// Reads the next entry of a block; a record is stored in `self.record`.
    pub fn next(&mut self, block: &mut Block) -> Result<Entry, Problem> {
        self.next_at(block).map(|(_, entry)| entry)
    }

    /// As [`Self::next`], with the position of the entry in bits.
    pub fn next_at(&mut self, block: &mut Block) -> Result<(u64, Entry), Problem> {
        loop {
            let at = self.position();
            match self.part(block)? {
                BlockPart::Entry(entry) => return Ok((at, entry)),
                BlockPart::Info(inner) => self.block_info(inner)?,
                BlockPart::Definition => {}
            }
        }
    }

    /// As [`Self::next`], including the parts that it skips.
    pub fn part(&mut self, block: &mut Block) -> Result<BlockPart, Problem> {
        Ok(match self.bits.fixed(block.width)? {
            next::END_BLOCK => {
                self.bits.align()?;
                BlockPart::Entry(Entry::End)
            }
            next::ENTER_SUBBLOCK => match self.enter()? {
                inner if inner.id == block::BLOCKINFO => BlockPart::Info(inner),
                inner => BlockPart::Entry(Entry::Block(inner)),
            },
            next::DEFINE_ABBREV => {
                block.abbreviations.push(self.define()?);
                BlockPart::Definition
            }
            next::UNABBREV_RECORD => {
                self.unabbreviated()?;
                BlockPart::Entry(Entry::Record)
            }
            number => {
                self.abbreviated(block, (number - next::FIRST_APPLICATION_ABBREV) as usize)?;
                BlockPart::Entry(Entry::Record)
            }
        })
    }

    /// Position of the next bit.
    pub fn position(&self) -> u64 {
        self.bits.position()
    }

    /// Operands of the record that begins at a position, with their positions. Continues after the record.
    pub fn numbers(&mut self, block: &Block, from: u64) -> Result<Vec<Number>, Problem> {
        self.bits.seek(from)?;
        let mut numbers = Vec::new();
        let number = self.bits.fixed(block.width)?;
        if number == next::UNABBREV_RECORD {
            self.bits.vbr(6)?;
            for _ in 0..self.bits.vbr(6)? {
                numbers.push(Number::read(Operand::Vbr(6), &mut self.bits)?);
            }
            return Ok(numbers);
        }
        let number = number
            .checked_sub(next::FIRST_APPLICATION_ABBREV)
            .ok_or(BAD)?;
        let abbreviation = abbreviation(&self.shared, block, number as usize).ok_or(BAD)?;
        let (code, operands) = abbreviation.operands.split_first().ok_or(BAD)?;
        code.read(&mut self.bits)?;
        for &operand in operands {
            numbers.push(Number::read(operand, &mut self.bits)?);
        }
        match abbreviation.last {
            Last::None => {}
            Last::Array(element) => {
                for _ in 0..self.bits.vbr(6)? {
                    numbers.push(Number::read(element, &mut self.bits)?);
                }
            }
            Last::Blob => return Err(BAD),
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
            shared: self.shared.get(&id).map_or(0, Vec::len),
            abbreviations: Vec::new(),
        })
    }

    /// Reads the block of abbreviations for other blocks.
    pub fn block_info(&mut self, block: Block) -> Result<(), Problem> {
        let mut of = None;
        loop {
            match self.bits.fixed(block.width)? {
                next::END_BLOCK => return self.bits.align(),
                next::DEFINE_ABBREV => {
                    let abbreviation = self.define()?;
                    let id = of.ok_or(BAD)?;
                    self.shared.entry(id).or_default().push(abbreviation);
                }
                next::UNABBREV_RECORD => {
                    self.unabbreviated()?;
                    if self.record.code == block_info::SETBID {
                        of = self.record.operands.first().copied();
                    }
                }
                _ => return Err(BAD),
            }
        }
    }

    fn define(&mut self) -> Result<Abbreviation, Problem> {
        let count = self.bits.vbr(5)?;
        let mut abbreviation = Abbreviation {
            operands: Vec::new(),
            last: Last::None,
        };
        if count > MAX_OPERANDS {
            return Err(BAD);
        }
        for left in (0..count).rev() {
            let operand = match self.operand()? {
                Encoding::Operand(operand) => operand,
                Encoding::Array if left == 1 => {
                    let Encoding::Operand(element) = self.operand()? else {
                        return Err(BAD);
                    };
                    // An element of no bits could be repeated indefinitely.
                    if matches!(element, Operand::Literal(_)) {
                        return Err(BAD);
                    }
                    abbreviation.last = Last::Array(element);
                    break;
                }
                Encoding::Blob if left == 0 => {
                    abbreviation.last = Last::Blob;
                    break;
                }
                _ => return Err(BAD),
            };
            abbreviation.operands.push(operand);
        }
        if abbreviation.operands.is_empty() {
            return Err(BAD);
        }
        Ok(abbreviation)
    }

    fn operand(&mut self) -> Result<Encoding, Problem> {
        if self.bits.fixed(1)? == 1 {
            return Ok(Encoding::Operand(Operand::Literal(self.bits.vbr(8)?)));
        }
        let operand = match self.bits.fixed(3)? {
            kind @ (encoding::FIXED | encoding::VBR) => match (self.bits.vbr(5)?, kind) {
                (0, _) => Operand::Literal(0),
                (width @ ..=64, encoding::FIXED) => Operand::Fixed(width as u32),
                (width @ 2..=32, _) => Operand::Vbr(width as u32),
                _ => return Err(BAD),
            },
            encoding::ARRAY => return Ok(Encoding::Array),
            encoding::CHAR6 => Operand::Character,
            encoding::BLOB => return Ok(Encoding::Blob),
            _ => return Err(BAD),
        };
        Ok(Encoding::Operand(operand))
    }

    /// Writes the last record, which has a blob, with other operands and another blob; `None` if its
    /// abbreviation cannot encode them.
    pub fn write(
        &self,
        block: &Block,
        operands: &[u64],
        blob: &[u8],
        out: &mut Writer,
    ) -> Option<()> {
        let number = self.record.abbreviation;
        let abbreviation = abbreviation(&self.shared, block, number)?;
        out.fixed(next::FIRST_APPLICATION_ABBREV + number as u64, block.width);
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

    fn unabbreviated(&mut self) -> Result<(), Problem> {
        let (bits, record) = (&mut self.bits, &mut self.record);
        record.begin(bits.vbr(6)?);
        for _ in 0..bits.vbr(6)? {
            record.push(bits.vbr(6)?);
        }
        Ok(())
    }

    fn abbreviated(&mut self, block: &Block, number: usize) -> Result<(), Problem> {
        let abbreviation = abbreviation(&self.shared, block, number).ok_or(BAD)?;
        let (bits, record) = (&mut self.bits, &mut self.record);
        let (code, operands) = abbreviation.operands.split_first().ok_or(BAD)?;
        record.begin(code.read(bits)?);
        for operand in operands {
            record.push(operand.read(bits)?);
        }
        match abbreviation.last {
            Last::None => {}
            Last::Array(element) => {
                for _ in 0..bits.vbr(6)? {
                    record.push(element.read(bits)?);
                }
            }
            Last::Blob => {
                record.blob_at = bits.position();
                record.abbreviation = number;
                let size = bits.vbr(6)?;
                bits.align()?;
                record.blob = Some(bits.bytes(size)?);
                bits.align()?;
            }
        }
        Ok(())
    }
}

/// An abbreviation of a block, `shared` with others or its own.
fn abbreviation<'a>(
    shared: &'a HashMap<u64, Vec<Abbreviation>>,
    block: &'a Block,
    number: usize,
) -> Option<&'a Abbreviation> {
    match number.checked_sub(block.shared) {
        None => shared.get(&block.id)?.get(number),
        Some(own) => block.abbreviations.get(own),
    }
}

/// Encoding of an operand in an abbreviation.
enum Encoding {
    Operand(Operand),
    Array,
    Blob,
}

impl Block {
    /// Record code of the newest abbreviation, if it has a fixed one.
    pub fn defined(&self) -> Option<u64> {
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
        if self.operands.len() < KEPT {
            self.operands.push(operand);
        }
    }

    /// Operands from index `from` on, as text.
    pub fn text(&self, from: usize) -> Result<Vec<u8>, Problem> {
        if self.operands.len() == KEPT {
            return Err(Problem::Malformed("bitcode name is too long"));
        }
        let characters = self.operands.get(from..).unwrap_or_default();
        Ok(characters
            .iter()
            .map(|&character| character as u8)
            .collect())
    }

    /// The operand at an index.
    pub fn operand(&self, at: usize) -> Result<u64, Problem> {
        let missing = Problem::Malformed("bitcode record is too short");
        self.operands.get(at).copied().ok_or(missing)
    }
}
