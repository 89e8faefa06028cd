//! Formats: size of the arguments, strings to request, output.

use alloc::vec::Vec;

use super::arguments::{ArgumentLayout, Arguments};
use super::budgeted_buffer::BudgetedBuffer;
use super::output::{Field, Output};
use super::parse::{Conversion, Count, Kind, Length, Piece, Pieces};
use super::{float, integer};
use crate::server::Fault;

/// A parsed format.
/// ```
/// use gpurpc::libc::printf::Format;
///
/// let format = Format::parse(b"%5.2f%%", false)?;
/// assert_eq!(format.arguments_size(), 8);
/// assert_eq!(format.print(&2.5_f64.to_ne_bytes(), &[], 16)?, b" 2.50%");
/// # Ok::<(), gpurpc::server::Fault>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Format<'t> {
    text: &'t [u8],
    packed: bool,
    arguments_size: usize,
    /// Number of conversions that print a string.
    strings: usize,
}

impl<'t> Format<'t> {
    /// Parses a format up to its first zero byte. The arguments are `packed`, or each is aligned to its size.
    ///
    /// # Errors
    ///
    /// [`Fault::Other`] if the format contains `%n`.
    pub fn parse(text: &'t [u8], packed: bool) -> Result<Self, Fault> {
        let text = until_nul(text);
        let mut layout = ArgumentLayout::new(packed);
        let mut strings = 0;
        for piece in Pieces(text) {
            let Piece::Conversion(conversion) = piece else {
                continue;
            };
            if conversion.kind() == Kind::WriteCount {
                return Err(Fault::Other("printf: %n is not allowed"));
            }
            let stars = [Some(conversion.width), conversion.precision];
            for _ in stars
                .iter()
                .filter(|count| **count == Some(Count::Argument))
            {
                layout.next_range(4);
            }
            conversion.value_size().map(|size| layout.next_range(size));
            strings += usize::from(conversion.kind() == Kind::String);
        }
        Ok(Self {
            text,
            packed,
            arguments_size: layout.end(),
            strings,
        })
    }

    /// Size in bytes of the arguments that a device sends for this format.
    pub fn arguments_size(&self) -> usize {
        self.arguments_size
    }

    /// Maximum number of addresses that [`Self::strings`] returns: each is an argument of 8 bytes.
    pub(super) fn max_strings(&self, arguments: &[u8]) -> usize {
        self.strings.min(arguments.len() / 8)
    }

    /// Device addresses of the non-null arguments of `%s`, in order. Missing arguments are skipped here and
    /// reported by [`Self::print`].
    pub fn strings(&self, arguments: &[u8]) -> Vec<u64> {
        let mut strings = Vec::with_capacity(self.max_strings(arguments));
        let mut arguments = Arguments::new(arguments, self.packed);
        for piece in Pieces(self.text) {
            let Piece::Conversion(conversion) = piece else {
                continue;
            };
            let Ok((_, value)) = values(&conversion, &mut arguments) else {
                break;
            };
            if conversion.kind() == Kind::String && value != 0 {
                strings.push(value);
            }
        }
        strings
    }

    /// Prints the text, with a string for each address of [`Self::strings`]. A string ends with its first zero
    /// byte, or with the slice.
    ///
    /// # Errors
    ///
    /// [`Fault::Other`] if arguments or strings are missing, or the text is longer than `limit` bytes, which
    /// bounds the allocated memory for any widths and precisions.
    pub fn print(
        &self,
        arguments: &[u8],
        strings: &[&[u8]],
        limit: usize,
    ) -> Result<Vec<u8>, Fault> {
        let strings = strings.iter().copied();
        let text = self.print_to(BudgetedBuffer::new(None), arguments, strings, limit)?;
        Ok(text.into_bytes())
    }

    /// Prints like [`Self::print`], into an empty buffer.
    pub(super) fn print_to<'s>(
        &self,
        empty: BudgetedBuffer,
        arguments: &[u8],
        mut strings: impl Iterator<Item = &'s [u8]>,
        limit: usize,
    ) -> Result<BudgetedBuffer, Fault> {
        let mut arguments = Arguments::new(arguments, self.packed);
        let mut output = Output::new(empty, limit);
        for piece in Pieces(self.text) {
            match piece {
                Piece::Text(text) => output.text(text)?,
                Piece::Conversion(conversion) => {
                    let (field, value) = values(&conversion, &mut arguments)?;
                    let string = match (conversion.kind(), value) {
                        (Kind::String, 1..) => {
                            let missing = Fault::Other("printf: a string is missing");
                            Some(until_nul(strings.next().ok_or(missing)?))
                        }
                        _ => None,
                    };
                    print(&mut output, &conversion, &field, value, string)?;
                }
            }
        }
        Ok(output.into_text())
    }
}

/// The number without its sign, saturated to `usize`.
fn saturating_size(count: i64) -> usize {
    usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX)
}

/// Reads the values of the `*` of a conversion, and the bits of its value.
fn values(
    conversion: &Conversion<'_>,
    arguments: &mut Arguments<'_>,
) -> Result<(Field, u64), Fault> {
    let mut count = |count| -> Result<i64, Fault> {
        Ok(match count {
            Count::Literal(count) => i64::try_from(count).unwrap_or(i64::MAX),
            Count::Argument => i64::from(arguments.int()? as i32),
        })
    };
    let width = count(conversion.width)?;
    let precision = conversion.precision.map(count).transpose()?;
    let mut flags = conversion.flags;
    // A negative width is a flag and a width; a negative precision counts as absent.
    flags.left |= width < 0;
    let field = Field {
        flags,
        width: saturating_size(width),
        precision: precision
            .filter(|precision| *precision >= 0)
            .map(saturating_size),
    };
    let value = match conversion.value_size() {
        Some(4) => arguments.int()?.into(),
        Some(_) => arguments.long()?,
        None => 0,
    };
    Ok((field, value))
}

/// Prints a value.
fn print(
    output: &mut Output,
    conversion: &Conversion<'_>,
    field: &Field,
    value: u64,
    string: Option<&[u8]>,
) -> Result<(), Fault> {
    match conversion.kind() {
        Kind::Int => integer::print(output, field, conversion, value),
        Kind::Double => {
            let value = f64::from_bits(value);
            float::print(output, field, conversion.specifier, value)
        }
        Kind::Pointer => integer::pointer(output, field, value),
        Kind::Char if conversion.length == Length::Long => {
            let char = char::from_u32(value as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            field.text(output, char.encode_utf8(&mut [0; 4]).as_bytes())
        }
        Kind::Char => field.text(output, &[value as u8]),
        Kind::String => {
            let size = field.precision.unwrap_or(usize::MAX);
            let text = match string {
                Some(string) => &string[..string.len().min(size)],
                // Printed in full or not at all, as in glibc.
                None if size >= 6 => b"(null)",
                None => b"",
            };
            field.text(output, text)
        }
        Kind::Percent => output.text(b"%"),
        Kind::WriteCount | Kind::Unknown => output.text(conversion.text),
    }
}

/// The bytes before the first zero byte.
pub(super) fn until_nul(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == 0);
    &text[..end.unwrap_or(text.len())]
}
