//! C's `printf` over arguments of a device.
//!
//! A device sends a format and the bytes of its arguments; strings are asked for by their addresses. All of
//! that may be anything. So nothing here uses the host's `printf`: the format is interpreted, and
//! `%n`, which would write to memory, is refused.
//!
//! Text comes out as glibc prints it in its `C` locale, but for `%#g` of a number that rounds up to the
//! power of ten at which an exponent is due: it has all its zeros, as C says. What C leaves undefined:
//!
//! - A conversion that is not known, or that the format ends in, is printed as it stands. Its `*` have
//!   arguments, it has none.
//! - `%ls` is `%s`, as devices send the bytes up to the first that is 0. `%lc` prints UTF-8.
//! - `%Lf` is `%f`: devices have no `long double`. Other length modifiers mean nothing where they do not
//!   belong.

mod arguments;
mod call;
mod counted;
mod float;
mod integer;
mod output;
mod parse;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use self::arguments::{Arguments, Places};
pub use self::call::{Received, Texts, finish, receive};
use self::counted::Counted;
use self::output::{Field, Output};
use self::parse::{Conversion, Count, Kind, Piece, Pieces};
use crate::server::Fault;

/// A format.
#[derive(Clone, Copy, Debug)]
pub struct Format<'t> {
    text: &'t [u8],
    packed: bool,
    arguments_size: usize,
    /// How many conversions print a string.
    strings: usize,
}

impl<'t> Format<'t> {
    /// Reads a format, up to its first byte that is 0. The arguments are `packed`, or padded so that each
    /// lies at a multiple of its size.
    ///
    /// # Errors
    ///
    /// If it has `%n`.
    pub fn parse(text: &'t [u8], packed: bool) -> Result<Self, Fault> {
        let text = until_nul(text);
        let mut places = Places::new(packed);
        let mut strings = 0;
        for piece in Pieces(text) {
            let Piece::Conversion(conversion) = piece else {
                continue;
            };
            if conversion.kind() == Kind::Written {
                return Err(Fault::Other("printf: %n is not allowed"));
            }
            let stars = [Some(conversion.width), conversion.precision];
            for _ in stars
                .iter()
                .filter(|count| **count == Some(Count::Argument))
            {
                places.next(4);
            }
            conversion.value_size().map(|size| places.next(size));
            strings += usize::from(conversion.kind() == Kind::String);
        }
        Ok(Self {
            text,
            packed,
            arguments_size: places.end(),
            strings,
        })
    }

    /// How many bytes of arguments a device sends for this format.
    pub fn arguments_size(&self) -> usize {
        self.arguments_size
    }

    /// How many addresses [`Self::strings`] gives at most: each is an argument of 8 bytes.
    fn most_strings(&self, arguments: &[u8]) -> usize {
        self.strings.min(arguments.len() / 8)
    }

    /// The addresses, on the device, of the arguments of `%s` that are not null, in order. If there are
    /// too few arguments, of those that there are; [`Self::print`] finds it.
    pub fn strings(&self, arguments: &[u8]) -> Vec<u64> {
        let mut strings = Vec::with_capacity(self.most_strings(arguments));
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

    /// The text that is printed: with a string for each address of [`Self::strings`], which ends with its
    /// first byte that is 0, or with the slice.
    ///
    /// # Errors
    ///
    /// If there are too few arguments or strings, or the text is longer than `limit` bytes. No more
    /// than that is allocated, whatever widths and precisions say.
    pub fn print(
        &self,
        arguments: &[u8],
        strings: &[&[u8]],
        limit: usize,
    ) -> Result<Vec<u8>, Fault> {
        let strings = strings.iter().copied();
        let text = self.print_to(Counted::new(None), arguments, strings, limit)?;
        Ok(text.into_bytes())
    }

    /// As [`Self::print`], into what is empty yet.
    fn print_to<'s>(
        &self,
        empty: Counted,
        arguments: &[u8],
        mut strings: impl Iterator<Item = &'s [u8]>,
        limit: usize,
    ) -> Result<Counted, Fault> {
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

/// What the `*` of a conversion are, and the bits of its value.
fn values(
    conversion: &Conversion<'_>,
    arguments: &mut Arguments<'_>,
) -> Result<(Field, u64), Fault> {
    let mut count = |count| -> Result<i64, Fault> {
        Ok(match count {
            Count::Given(count) => i64::try_from(count).unwrap_or(i64::MAX),
            Count::Argument => i64::from(arguments.int()? as i32),
        })
    };
    let width = count(conversion.width)?;
    let precision = conversion.precision.map(count).transpose()?;
    let size = |count: i64| usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let mut flags = conversion.flags;
    // A negative width is a flag and a width, a negative precision is none.
    flags.left |= width < 0;
    let field = Field {
        flags,
        width: size(width),
        precision: precision.filter(|precision| *precision >= 0).map(size),
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
        Kind::Char if conversion.length == parse::Length::Long => {
            let char = char::from_u32(value as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            field.text(output, char.encode_utf8(&mut [0; 4]).as_bytes())
        }
        Kind::Char => field.text(output, &[value as u8]),
        Kind::String => {
            let size = field.precision.unwrap_or(usize::MAX);
            let text = match string {
                Some(string) => &string[..string.len().min(size)],
                // Whole or not at all, as glibc has it.
                None if size >= 6 => b"(null)",
                None => b"",
            };
            field.text(output, text)
        }
        Kind::Percent => output.text(b"%"),
        Kind::Written | Kind::Unknown => output.text(conversion.text),
    }
}

fn until_nul(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == 0);
    &text[..end.unwrap_or(text.len())]
}
