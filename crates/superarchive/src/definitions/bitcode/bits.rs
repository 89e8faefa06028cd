//! Numbers of a bitstream: of any width, from the lowest bit of each byte on.

use crate::error::Problem;

const TRUNCATED: Problem = Problem::Truncated("last block of bitcode");

/// Bytes, and the position of the next bit to read.
#[derive(Debug, Clone)]
pub struct Bits<'d> {
    bytes: &'d [u8],
    /// In bits.
    position: u64,
}

impl<'d> Bits<'d> {
    pub fn new(bytes: &'d [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Number of unread bits.
    pub fn remaining(&self) -> u64 {
        (self.bytes.len() as u64 * 8).saturating_sub(self.position)
    }

    /// Position of the next bit.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Seeks to a bit, which is in the bytes or at their end.
    pub fn seek(&mut self, position: u64) -> Result<(), Problem> {
        if position > self.bytes.len() as u64 * 8 {
            return Err(TRUNCATED);
        }
        self.position = position;
        Ok(())
    }

    /// Reads a number of `width` bits, at most 64.
    pub fn fixed(&mut self, width: u32) -> Result<u64, Problem> {
        if u64::from(width) > self.remaining() {
            return Err(TRUNCATED);
        }
        let first = (self.position / 8) as usize;
        let bytes = &self.bytes[first..self.bytes.len().min(first + 9)];
        let mut window = [0; 16];
        window[..bytes.len()].copy_from_slice(bytes);
        let number = u128::from_le_bytes(window) >> (self.position % 8) & ((1 << width) - 1);
        self.position += u64::from(width);
        Ok(number as u64)
    }

    /// Reads a number in digits of `width` bits, whose highest bit means that more follow.
    pub fn vbr(&mut self, width: u32) -> Result<u64, Problem> {
        let continuation = 1 << (width - 1);
        let (mut number, mut shift) = (0, 0);
        loop {
            let digit = self.fixed(width)?;
            if shift >= u64::BITS {
                return Err(Problem::Malformed("a number in bitcode is too large"));
            }
            number |= (digit & (continuation - 1)) << shift;
            shift += width - 1;
            if digit & continuation == 0 {
                return Ok(number);
            }
        }
    }

    /// Seeks to the next multiple of 32 bits.
    pub fn align(&mut self) -> Result<(), Problem> {
        self.seek(self.position.next_multiple_of(32))
    }

    /// Reads whole bytes at an aligned position.
    pub fn bytes(&mut self, count: u64) -> Result<&'d [u8], Problem> {
        let first = (self.position / 8) as usize;
        let end = count
            .checked_mul(8)
            .and_then(|bits| bits.checked_add(self.position))
            .ok_or(TRUNCATED)?;
        self.seek(end)?;
        Ok(&self.bytes[first..(self.position / 8) as usize])
    }
}

/// The number of 32 bits at an offset in bytes.
pub fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let word = bytes.get(offset..offset + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_width() {
        let bytes: Vec<u8> = (1..=20).collect();
        let binary = bytes
            .iter()
            .rev()
            .fold(String::new(), |text, byte| text + &format!("{byte:08b}"));
        for width in 0..=64 {
            for position in 0..80 {
                let mut bits = Bits::new(&bytes);
                bits.seek(position).unwrap();
                let end = binary.len() - position as usize;
                let digits = &binary[end - width..end];
                let number = u64::from_str_radix(&format!("0{digits}"), 2).unwrap();
                assert_eq!(
                    bits.fixed(width as u32),
                    Ok(number),
                    "{width} at {position}"
                );
            }
        }
    }

    #[test]
    fn numbers_in_parts() {
        // 0b101_0 of width 4 in two digits: 1010 (more, 2), then 0001: 2 + 1 * 8.
        let mut bits = Bits::new(&[0b0001_1010, 0xFF, 0xFF]);
        assert_eq!(bits.vbr(4), Ok(10));
        assert_eq!(
            bits.vbr(4),
            Err(TRUNCATED),
            "more follows, and nothing does"
        );
        let long = [0xFF; 64];
        let too_large = Problem::Malformed("a number in bitcode is too large");
        assert_eq!(Bits::new(&long).vbr(6), Err(too_large));
    }

    #[test]
    fn reading_beyond_the_end_is_an_error() {
        let mut bits = Bits::new(&[1, 2, 3]);
        assert_eq!(bits.fixed(25), Err(TRUNCATED));
        assert_eq!(bits.fixed(1), Ok(1));
        assert_eq!(bits.align(), Err(TRUNCATED));
        assert_eq!(bits.bytes(u64::MAX), Err(TRUNCATED));
        bits.seek(24).unwrap();
        assert_eq!(
            (bits.remaining(), bits.bytes(0), bits.fixed(0)),
            (0, Ok(&[][..]), Ok(0))
        );
        assert_eq!(bits.fixed(1), Err(TRUNCATED));
    }
}
