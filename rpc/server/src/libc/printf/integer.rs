//! Integers and pointers.

use super::output::{Field, Number, Output};
use super::parse::{Conversion, Length};
use crate::server::Fault;

/// Prints an integer, truncated to the size of the conversion.
pub fn print(
    output: &mut Output,
    field: &Field,
    conversion: &Conversion<'_>,
    value: u64,
) -> Result<(), Fault> {
    let specifier = conversion.specifier;
    if matches!(specifier, b'd' | b'i') {
        let value = match conversion.length {
            Length::Char => i64::from(value as i8),
            Length::Short => i64::from(value as i16),
            Length::Int => i64::from(value as i32),
            Length::Long => value as i64,
        };
        let sign = field.sign(value < 0);
        return digits(output, field, sign, b'd', value.unsigned_abs());
    }
    let value = match conversion.length {
        Length::Char => u64::from(value as u8),
        Length::Short => u64::from(value as u16),
        Length::Int => u64::from(value as u32),
        Length::Long => value,
    };
    let base: &[u8] = match (specifier, field.flags.alternate && value != 0) {
        (b'x', true) => b"0x",
        (b'X', true) => b"0X",
        (b'b', true) => b"0b",
        (b'B', true) => b"0B",
        _ => b"",
    };
    digits(output, field, base, specifier, value)
}

/// Prints a pointer as glibc does: in hexadecimal, with a sign if there is a flag for it, or `(nil)`.
pub fn pointer(output: &mut Output, field: &Field, value: u64) -> Result<(), Fault> {
    if value == 0 {
        return field.text(output, b"(nil)");
    }
    let prefix = [field.sign(false), b"0x"].concat();
    digits(output, field, &prefix, b'x', value)
}

fn digits(
    output: &mut Output,
    field: &Field,
    prefix: &[u8],
    specifier: u8,
    value: u64,
) -> Result<(), Fault> {
    let (base, letters) = match specifier {
        b'b' | b'B' => (2, b'a'),
        b'o' => (8, b'a'),
        b'x' => (16, b'a'),
        b'X' => (16, b'A'),
        _ => (10, b'a'),
    };
    let mut buffer = [0; 64];
    let mut start = buffer.len();
    let mut quotient = value;
    // A precision of 0 prints no digit of a 0.
    while quotient != 0 || (start == buffer.len() && field.precision != Some(0)) {
        let digit = (quotient % base) as u8;
        quotient /= base;
        start -= 1;
        buffer[start] = match digit {
            0..=9 => b'0' + digit,
            _ => letters + (digit - 10),
        };
    }
    let digits = &buffer[start..];
    let mut zeros = field.precision.unwrap_or(0).saturating_sub(digits.len());
    // `#` requires 0 as the first digit of an octal number.
    if specifier == b'o' && field.flags.alternate && zeros == 0 && digits.first() != Some(&b'0') {
        zeros = 1;
    }
    let number = Number {
        prefix,
        zeros,
        digits,
        ..Number::default()
    };
    // A precision determines the number of zeros.
    field.number(output, &number, field.precision.is_none())
}
