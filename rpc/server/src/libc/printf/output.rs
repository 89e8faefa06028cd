//! Output buffer of a limited size, and padding to a width.

use super::budgeted_buffer::BudgetedBuffer;
use super::parse::Flags;
use crate::server::Fault;

/// Reason why a text is refused.
pub const TOO_LONG: Fault = Fault::Other("printf: output exceeds the limit");

/// Text of a limited size.
#[derive(Debug)]
pub struct Output {
    text: BudgetedBuffer,
    limit: usize,
}

impl Output {
    pub fn new(empty: BudgetedBuffer, limit: usize) -> Self {
        let text = empty;
        Self { text, limit }
    }

    pub fn into_text(self) -> BudgetedBuffer {
        self.text
    }

    pub fn text(&mut self, text: &[u8]) -> Result<(), Fault> {
        self.check(text.len())?;
        self.text.append(text)
    }

    pub fn fill(&mut self, byte: u8, count: usize) -> Result<(), Fault> {
        self.check(count)?;
        self.text.fill(byte, count)
    }

    fn check(&self, more: usize) -> Result<(), Fault> {
        let size = self.text.bytes().len().checked_add(more);
        match size.filter(|size| *size <= self.limit) {
            Some(_) => Ok(()),
            None => Err(TOO_LONG),
        }
    }
}

/// Format of a value: a conversion with the values of its `*`.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub flags: Flags,
    pub width: usize,
    pub precision: Option<usize>,
}

/// Parts of a formatted number.
#[derive(Default, Debug)]
pub struct Number<'a> {
    /// Sign and base. Zeros that fill the width follow it.
    pub prefix: &'a [u8],
    /// Zeros before the digits, for a precision.
    pub zeros: usize,
    pub digits: &'a [u8],
    /// Zeros after the digits, for a precision.
    pub trailing: usize,
    /// An exponent.
    pub suffix: &'a [u8],
}

impl Field {
    /// The sign of a number.
    pub fn sign(&self, negative: bool) -> &'static [u8] {
        match (negative, self.flags.plus, self.flags.space) {
            (true, ..) => b"-",
            (false, true, _) => b"+",
            (false, false, true) => b" ",
            (false, false, false) => b"",
        }
    }

    /// Prints text, with spaces up to the width.
    pub fn text(&self, output: &mut Output, text: &[u8]) -> Result<(), Fault> {
        let number = Number {
            digits: text,
            ..Number::default()
        };
        self.print(output, &number, false)
    }

    /// Prints a number, padded to the width with spaces, or with zeros if requested and allowed.
    pub fn number(
        &self,
        output: &mut Output,
        number: &Number<'_>,
        may_have_zeros: bool,
    ) -> Result<(), Fault> {
        self.print(output, number, self.flags.zero && may_have_zeros)
    }

    fn print(&self, output: &mut Output, number: &Number<'_>, zeros: bool) -> Result<(), Fault> {
        let known = number.prefix.len() + number.digits.len() + number.suffix.len();
        let size = known
            .saturating_add(number.zeros)
            .saturating_add(number.trailing);
        let padding = self.width.saturating_sub(size);
        let (before, within, behind) = match (self.flags.left, zeros) {
            (true, _) => (0, 0, padding),
            (false, true) => (0, padding, 0),
            (false, false) => (padding, 0, 0),
        };
        output.fill(b' ', before)?;
        output.text(number.prefix)?;
        output.fill(b'0', within)?;
        output.fill(b'0', number.zeros)?;
        output.text(number.digits)?;
        output.fill(b'0', number.trailing)?;
        output.text(number.suffix)?;
        output.fill(b' ', behind)
    }
}
