//! Operands of records: their encodings, and numbers that are written over.

use super::bits::Bits;
use super::writer::Writer;
use crate::error::Problem;

/// Encoding of an operand.
#[derive(Clone, Copy)]
pub enum Operand {
    Literal(u64),
    Fixed(u32),
    Vbr(u32),
    Character,
}

impl Operand {
    pub fn read(self, bits: &mut Bits<'_>) -> Result<u64, Problem> {
        const CHARACTERS: &[u8; 64] =
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
        match self {
            Self::Literal(number) => Ok(number),
            Self::Fixed(width) => bits.fixed(width),
            Self::Vbr(width) => bits.vbr(width),
            Self::Character => Ok(CHARACTERS[bits.fixed(6)? as usize].into()),
        }
    }

    /// Writes a number, if the encoding can represent it.
    pub fn write(self, number: u64, out: &mut Writer) -> Option<()> {
        match self {
            Self::Literal(only) => (number == only).then_some(()),
            Self::Fixed(width @ ..=32) if number >> width == 0 => {
                out.fixed(number, width);
                Some(())
            }
            Self::Vbr(width) => {
                out.vbr(number, width);
                Some(())
            }
            Self::Fixed(_) | Self::Character => None,
        }
    }
}

/// A number of the stream, which can be written over.
pub struct Number {
    pub value: u64,
    encoding: Operand,
    /// Position in bits.
    at: u64,
}

impl Number {
    pub fn read(encoding: Operand, bits: &mut Bits<'_>) -> Result<Self, Problem> {
        let at = bits.position();
        let value = encoding.read(bits)?;
        Ok(Self {
            value,
            encoding,
            at,
        })
    }

    /// The number of a block, after the id that enters it. All known ones have one digit.
    pub fn of_block(at: u64) -> Self {
        Self {
            value: 0,
            encoding: Operand::Vbr(8),
            at,
        }
    }

    /// Writes a number over, in as many digits as the old one has; `None` if it does not fit.
    pub fn put(&self, out: &mut [u8], number: u64) -> Option<()> {
        let mut write = |at: u64, number: u64, width: u32| {
            for bit in 0..u64::from(width) {
                let byte = out.get_mut(((at + bit) / 8) as usize)?;
                let mask = 1 << ((at + bit) % 8);
                *byte = *byte & !mask | if number >> bit & 1 == 1 { mask } else { 0 };
            }
            Some(())
        };
        match self.encoding {
            Operand::Literal(only) => (number == only).then_some(()),
            Operand::Fixed(width @ ..=63) if number >> width == 0 => write(self.at, number, width),
            Operand::Vbr(width) => {
                let more = 1 << (width - 1);
                let (mut old, mut rest, mut at) = (self.value, number, self.at);
                loop {
                    old >>= width - 1;
                    let digit = rest & (more - 1) | if old != 0 { more } else { 0 };
                    write(at, digit, width)?;
                    rest >>= width - 1;
                    at += u64::from(width);
                    if old == 0 {
                        return (rest == 0).then_some(());
                    }
                }
            }
            Operand::Fixed(_) | Operand::Character => None,
        }
    }
}
