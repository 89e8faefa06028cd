//! Numbers of a bitstream: of any width, from the lowest bit of each byte on.

use crate::error::Problem;

const CUT: Problem = Problem::Truncated("last block of bitcode");

/// Bytes, and the position of the next bit to read.
#[derive(Debug, Clone)]
pub struct Bits<'d> {
    bytes: &'d [u8],
    /// In bits.
    at: u64,
}

impl<'d> Bits<'d> {
    pub fn new(bytes: &'d [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Number of unread bits.
    pub fn left(&self) -> u64 {
        (self.bytes.len() as u64 * 8).saturating_sub(self.at)
    }

    /// Position of the next bit.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Seeks to a bit, which is in the bytes or at their end.
    pub fn seek(&mut self, at: u64) -> Result<(), Problem> {
        if at > self.bytes.len() as u64 * 8 {
            return Err(CUT);
        }
        self.at = at;
        Ok(())
    }

    /// Reads a number of `width` bits, at most 64.
    pub fn fixed(&mut self, width: u32) -> Result<u64, Problem> {
        if u64::from(width) > self.left() {
            return Err(CUT);
        }
        let first = (self.at / 8) as usize;
        let mut window = [0; 16];
        let part = &self.bytes[first..self.bytes.len().min(first + 9)];
        window[..part.len()].copy_from_slice(part);
        let number = u128::from_le_bytes(window) >> (self.at % 8) & ((1 << width) - 1);
        self.at += u64::from(width);
        Ok(number as u64)
    }

    /// Reads a number in parts of `width` bits, whose highest bit means that more follow.
    pub fn vbr(&mut self, width: u32) -> Result<u64, Problem> {
        let more = 1 << (width - 1);
        let (mut number, mut shift) = (0, 0);
        loop {
            let part = self.fixed(width)?;
            if shift >= u64::BITS {
                return Err(Problem::Malformed("a number in bitcode is too large"));
            }
            number |= (part & (more - 1)) << shift;
            shift += width - 1;
            if part & more == 0 {
                return Ok(number);
            }
        }
    }

    /// Seeks to the next multiple of 32 bits.
    pub fn align(&mut self) -> Result<(), Problem> {
        self.seek(self.at.next_multiple_of(32))
    }

    /// Reads whole bytes at an aligned position.
    pub fn bytes(&mut self, count: u64) -> Result<&'d [u8], Problem> {
        let end = count
            .checked_mul(8)
            .and_then(|bits| bits.checked_add(self.at));
        let first = (self.at / 8) as usize;
        self.seek(end.ok_or(CUT)?)?;
        Ok(&self.bytes[first..(self.at / 8) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_width() {
        let bytes: Vec<u8> = (1..=20).collect();
        let all = bytes
            .iter()
            .rev()
            .fold(String::new(), |text, byte| text + &format!("{byte:08b}"));
        for width in 0..=64 {
            for at in 0..80 {
                let mut bits = Bits::new(&bytes);
                bits.seek(at).unwrap();
                let end = all.len() - at as usize;
                let text = &all[end - width..end];
                let expected = u64::from_str_radix(&format!("0{text}"), 2).unwrap();
                assert_eq!(bits.fixed(width as u32), Ok(expected), "{width} at {at}");
            }
        }
    }

    #[test]
    fn numbers_in_parts() {
        // 0b101_0 of width 4 in two parts: 1010 (more, 2), then 0001: 2 + 1 * 8.
        let mut bits = Bits::new(&[0b0001_1010, 0xFF, 0xFF]);
        assert_eq!(bits.vbr(4), Ok(10));
        assert_eq!(bits.vbr(4), Err(CUT), "more follows, and nothing does");
        let long = [0xFF; 64];
        let too_large = Problem::Malformed("a number in bitcode is too large");
        assert_eq!(Bits::new(&long).vbr(6), Err(too_large));
    }

    #[test]
    fn reading_beyond_the_end_is_an_error() {
        let mut bits = Bits::new(&[1, 2, 3]);
        assert_eq!(bits.fixed(25), Err(CUT));
        assert_eq!(bits.fixed(1), Ok(1));
        assert_eq!(bits.align(), Err(CUT));
        assert_eq!(bits.bytes(u64::MAX), Err(CUT));
        bits.seek(24).unwrap();
        assert_eq!(
            (bits.left(), bits.bytes(0), bits.fixed(0)),
            (0, Ok(&[][..]), Ok(0))
        );
        assert_eq!(bits.fixed(1), Err(CUT));
    }
}
