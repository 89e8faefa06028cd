//! Deflate blocks of an unpacked member. Where an edit keeps the bytes of an image, and the window before them, its blocks
//! are copied as they are compressed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;

use zlib_rs::{Inflate, InflateFlush, Status};

use super::deflate::WINDOW_SIZE;
use super::section::copy_range;

/// Least distance of recorded blocks, which bounds their number.
const MIN_DISTANCE: u64 = 16 << 10;

/// Most bytes that are inflated, and results of it, to find the bit at which a block begins.
const MAX_INFLATED: u64 = 1 << 20;

/// Most blocks of which the first bit is searched. Every second one begins at an even place in its byte.
const MAX_SEARCHED: usize = 64;

/// Least number of bytes that are worth two interruptions of the compression.
const MIN_REUSED: u64 = 256 << 10;

/// An empty block with fixed codes (RFC 1951, 3.2.6) has ten bits. It moves what follows by two bits in a byte.
const EMPTY_FIXED: u32 = 0b10;
const EMPTY_FIXED_BITS: u32 = 10;

/// The rest of an empty stored block, after its three bits.
const EMPTY_STORED: [u8; 4] = [0, 0, 0xff, 0xff];

/// Beginnings of blocks in a compressed member, in their order.
#[derive(Debug, Default)]
pub struct Blocks(Vec<Block>);

#[derive(Debug, Clone, Copy)]
struct Block {
    /// Offset of its contents in the member.
    offset: u64,
    /// Offset in the archive, after the byte with the last bit of the block before.
    compressed: u64,
}

/// Reader that inflates and records blocks.
pub(super) struct BlockReader<'a, R> {
    input: R,
    /// Offset of the compressed data in the archive.
    start: u64,
    buffer: Vec<u8>,
    unread: Range<usize>,
    inflate: Inflate,
    blocks: &'a mut Blocks,
}

impl<'a, R: Read> BlockReader<'a, R> {
    pub(super) fn new(input: R, start: u64, blocks: &'a mut Blocks) -> Self {
        Self {
            input,
            start,
            buffer: vec![0; 64 << 10],
            unread: 0..0,
            inflate: raw_inflate(),
            blocks,
        }
    }
}

fn raw_inflate() -> Inflate {
    Inflate::new(false, 15)
}

impl<R: Read> Read for BlockReader<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.unread.is_empty() {
                self.unread = 0..self.input.read(&mut self.buffer)?;
            }
            let is_end = self.unread.is_empty();
            let before = (self.inflate.total_in(), self.inflate.total_out());
            // `Block` stops after each block.
            let input = &self.buffer[self.unread.clone()];
            let status = (self.inflate.decompress(input, out, InflateFlush::Block))
                .map_err(|_| io::ErrorKind::InvalidData)?;
            let (total_in, offset) = (self.inflate.total_in(), self.inflate.total_out());
            self.unread.start += (total_in - before.0) as usize;
            let count = (offset - before.1) as usize;
            let last = self.blocks.0.last().map_or(0, |block| block.offset);
            if status == Status::Ok
                && !self.unread.is_empty()
                && count < out.len()
                && offset >= last + MIN_DISTANCE
            {
                self.blocks.0.push(Block {
                    offset,
                    compressed: self.start + total_in,
                });
            }
            if count > 0 || is_end || out.is_empty() || status == Status::StreamEnd {
                return Ok(count);
            }
        }
    }
}

/// Blocks that can be copied.
#[derive(Debug)]
pub(super) struct Reused {
    /// Their contents in the member.
    pub(super) range: Range<u64>,
    start: Bit,
    end: Bit,
}

/// A bit of the archive.
#[derive(Debug, Clone, Copy)]
struct Bit {
    /// Offset after the bits before it, in whole bytes.
    offset: u64,
    /// Number of bits before it in its byte; 0 at the beginning of a byte.
    phase: u32,
}

impl Blocks {
    /// The blocks of a range of the member, after a window. `image` is the member, unpacked.
    pub(super) fn reused(
        &self,
        archive: &File,
        image: &File,
        range: &Range<u64>,
    ) -> io::Result<Option<Reused>> {
        let begin = range.start + WINDOW_SIZE as u64;
        let first = self.0.partition_point(|block| block.offset < begin);
        let end = self.0.partition_point(|block| block.offset <= range.end);
        let Some((start_offset, start)) = self.first_begin(first..end, (archive, image))? else {
            return Ok(None);
        };
        let Some((end_offset, end)) = self.first_begin((first..end).rev(), (archive, image))?
        else {
            return Ok(None);
        };
        if start_offset + MIN_REUSED > end_offset {
            return Ok(None);
        }
        let before_end = self.0.partition_point(|block| block.offset < end_offset);
        let tail = self.first_begin((first..before_end).rev(), (archive, image))?;
        let between = |start_offset, start| Reused {
            range: start_offset..end_offset,
            start,
            end,
        };
        // The first blocks were inflated as they are written.
        let is_exact = match tail {
            Some((offset, start)) => between(offset, start).is_exact(archive, image)?,
            None => false,
        };
        Ok(is_exact.then(|| between(start_offset, start)))
    }

    /// Offset and first bit of the first of these blocks that has one for [`Self::begin`].
    fn first_begin(
        &self,
        indices: impl Iterator<Item = usize>,
        (archive, image): (&File, &File),
    ) -> io::Result<Option<(u64, Bit)>> {
        for index in indices.take(MAX_SEARCHED) {
            if let Some(bit) = self.begin(index, archive, image)? {
                return Ok(Some((self.0[index].offset, bit)));
            }
        }
        Ok(None)
    }

    /// The first bit of a block, if it is at an even place in its byte: inflated from there, the block has the bytes of
    /// the image. Zero bits around the header of a stored block may be read as that header, too (`ending`).
    fn begin(&self, index: usize, archive: &File, image: &File) -> io::Result<Option<Bit>> {
        let block = self.0[index];
        let after = (self.0[index..].iter())
            .find(|after| after.offset - block.offset >= WINDOW_SIZE as u64);
        // Empty blocks have a size, and no contents.
        let is_short = |after: &&Block| {
            (after.offset - block.offset).max(after.compressed - block.compressed) <= MAX_INFLATED
        };
        let Some(after) = after.filter(is_short) else {
            return Ok(None);
        };
        let window = block.offset.saturating_sub(WINDOW_SIZE as u64);
        let bytes = read_range(image, window..after.offset)?;
        let (window, expected) = bytes.split_at((block.offset - window) as usize);
        for phase in [0, 2, 4, 6] {
            let bit = Bit {
                offset: block.compressed,
                phase,
            };
            let mut compressed = bit.beginning(archive)?;
            compressed.extend(read_range(archive, block.compressed..after.compressed)?);
            if is_inflated_to(&compressed, window, expected) {
                return Ok(Some(bit));
            }
        }
        Ok(None)
    }
}

impl Bit {
    /// The byte that the bit is in, unless it is the first one in it.
    fn byte(self, archive: &File) -> io::Result<u8> {
        Ok(read_range(archive, self.offset - 1..self.offset)?[0])
    }

    /// Empty blocks from the beginning of a byte to this place in a byte, and the rest of the byte.
    fn beginning(self, archive: &File) -> io::Result<Vec<u8>> {
        if self.phase == 0 {
            return Ok(Vec::new());
        }
        let count = self.phase / 2;
        let blocks = (0..count).fold(0, |bits, index| {
            bits | EMPTY_FIXED << (index * EMPTY_FIXED_BITS)
        });
        let mut bytes = blocks.to_le_bytes();
        let last = (count * EMPTY_FIXED_BITS / 8) as usize;
        bytes[last] |= self.byte(archive)? & (0xff << self.phase);
        Ok(bytes[..=last].to_vec())
    }

    /// The bits before this one in its byte, and an empty block up to the end of a byte.
    fn ending(self, archive: &File) -> io::Result<Vec<u8>> {
        if self.phase == 0 {
            // The header of a stored block may begin in the byte before, with zeros.
            return Ok([&[0], &EMPTY_STORED[..]].concat());
        }
        let mut bytes = vec![self.byte(archive)? & !(0xff << self.phase)];
        if self.phase + 3 > 8 {
            bytes.push(0);
        }
        bytes.extend(EMPTY_STORED);
        Ok(bytes)
    }
}

impl Reused {
    /// Writes the blocks, from the beginning of a byte to the end of one.
    pub(super) fn write(&self, archive: &File, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.start.beginning(archive)?)?;
        let end = self.end.offset - u64::from(self.end.phase > 0);
        copy_range(archive, &(self.start.offset..end), out)?;
        out.write_all(&self.end.ending(archive)?)
    }

    /// Whether the blocks, inflated as they are written, have the bytes of the image. False if they are too large for that.
    fn is_exact(&self, archive: &File, image: &File) -> io::Result<bool> {
        let size = (self.range.end - self.range.start).max(self.end.offset - self.start.offset);
        if size > MAX_INFLATED {
            return Ok(false);
        }
        let window = self.range.start.saturating_sub(WINDOW_SIZE as u64);
        let bytes = read_range(image, window..self.range.end)?;
        let (window, expected) = bytes.split_at((self.range.start - window) as usize);
        let mut compressed = Vec::new();
        self.write(archive, &mut compressed)?;
        Ok(is_inflated_to(&compressed, window, expected))
    }
}

/// Whether whole blocks, none of them the last of a stream, have these contents after a window.
fn is_inflated_to(compressed: &[u8], window: &[u8], expected: &[u8]) -> bool {
    let mut unpacked = vec![0; expected.len() + 1];
    let mut inflate = raw_inflate();
    // The last block of a stream begins with 1, as the code before a stored block may end.
    inflate.set_dictionary(window).is_ok()
        && (inflate.decompress(compressed, &mut unpacked, InflateFlush::NoFlush))
            .is_ok_and(|status| status != Status::StreamEnd)
        && inflate.total_in() == compressed.len() as u64
        && inflate.total_out() == expected.len() as u64
        && unpacked.starts_with(expected)
}

fn read_range(file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    copy_range(file, &range, &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
