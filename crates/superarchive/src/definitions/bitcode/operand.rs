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
            Self::Literal(literal) => (number == literal).then_some(()),
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
    position: u64,
}

impl Number {
    pub fn read(encoding: Operand, bits: &mut Bits<'_>) -> Result<Self, Problem> {
        let position = bits.position();
        let value = encoding.read(bits)?;
        Ok(Self {
            value,
            encoding,
            position,
        })
    }

    /// The number of a block, after the id that enters it. All known ones have one digit.
    pub fn of_block(position: u64) -> Self {
        Self {
            value: 0,
            encoding: Operand::Vbr(8),
            position,
        }
    }

    /// Writes a number over, in as many digits as the old one has; `None` if it does not fit.
    pub fn put(&self, out: &mut [u8], number: u64) -> Option<()> {
        match self.encoding {
            Operand::Literal(literal) => (number == literal).then_some(()),
            Operand::Fixed(width @ ..=63) if number >> width == 0 => {
                put_bits(out, self.position, number, width)
            }
            Operand::Vbr(width) => self.put_vbr(out, number, width),
            Operand::Fixed(_) | Operand::Character => None,
        }
    }

    fn put_vbr(&self, out: &mut [u8], mut number: u64, width: u32) -> Option<()> {
        let continuation = 1 << (width - 1);
        let (mut old, mut position) = (self.value, self.position);
        loop {
            old >>= width - 1;
            let digit = number & (continuation - 1) | if old != 0 { continuation } else { 0 };
            put_bits(out, position, digit, width)?;
            number >>= width - 1;
            position += u64::from(width);
            if old == 0 {
                return (number == 0).then_some(());
            }
        }
    }
}

/// Writes a number of `width` bits over those at a position.
fn put_bits(out: &mut [u8], position: u64, number: u64, width: u32) -> Option<()> {
    for bit in 0..u64::from(width) {
        let byte = out.get_mut(((position + bit) / 8) as usize)?;
        let mask = 1 << ((position + bit) % 8);
        *byte = *byte & !mask | if number >> bit & 1 == 1 { mask } else { 0 };
    }
    Some(())
}
