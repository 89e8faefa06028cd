//! Strings, numbers, dates, `true` and `false`.

use std::borrow::Cow;

use super::reader::{Reader, is_control};
use super::tree::{Data, ParseResult, syntax_error};

impl<'t> Reader<'t> {
    /// Number of these quotes that come next, up to the two and the three that end a string.
    pub(super) fn quotes(&self, quote: u8) -> usize {
        let mut count = 0;
        while count < 5 && self.text.as_bytes().get(self.position + count) == Some(&quote) {
            count += 1;
        }
        count
    }

    /// "String": all four kinds. The quote determines whether it is basic or literal.
    pub(super) fn string(&mut self, quote: u8) -> ParseResult<Cow<'t, str>> {
        let open = self.position;
        let delimiter = if self.quotes(quote) >= 3 { 3 } else { 1 };
        let is_multi_line = delimiter == 3;
        self.position += delimiter;
        // "A newline immediately following the opening delimiter will be trimmed."
        if is_multi_line && matches!(self.peek(), Some(b'\n' | b'\r')) {
            self.newline()?;
        }
        let mut text = Cow::Borrowed("");
        // Start of the part that is not in `text` yet.
        let mut start = self.position;
        loop {
            match self.peek() {
                Some(byte) if byte == quote => {
                    let quotes = self.quotes(quote);
                    if quotes < delimiter {
                        self.position += quotes;
                        continue;
                    }
                    // Up to two quotes may precede the three that close.
                    let end = self.position + if is_multi_line { quotes - 3 } else { 0 };
                    self.position = end + delimiter;
                    text += &self.text[start..end];
                    return Ok(text);
                }
                Some(b'\\') if quote == b'"' => {
                    text += &self.text[start..self.position];
                    self.escape(&mut text, is_multi_line)?;
                    start = self.position;
                }
                Some(b'\n' | b'\r') if is_multi_line => self.newline()?,
                None if is_multi_line => {
                    let message = match quote {
                        b'"' => "unclosed string, expected `\"\"\"`",
                        _ => "unclosed string, expected `'''`",
                    };
                    return syntax_error(message, open..open + delimiter);
                }
                None | Some(b'\n' | b'\r') => {
                    return self.error_here(match quote {
                        b'"' => "unclosed string, expected `\"`",
                        _ => "unclosed string, expected `'`",
                    });
                }
                Some(byte) if is_control(byte) => {
                    let message = "control character in a string, expected `\\u` and its number";
                    return self.error_in_character(message);
                }
                Some(_) => self.position += 1,
            }
        }
    }

    /// An escape sequence.
    fn escape(&mut self, text: &mut Cow<'t, str>, is_multi_line: bool) -> ParseResult<()> {
        let start = self.position;
        self.position += 1;
        let character = match self.peek() {
            Some(b'b') => '\u{8}',
            Some(b't') => '\t',
            Some(b'n') => '\n',
            Some(b'f') => '\u{c}',
            Some(b'r') => '\r',
            Some(b'e') => '\u{1b}',
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'x') => self.code_point(2)?,
            Some(b'u') => self.code_point(4)?,
            Some(b'U') => self.code_point(8)?,
            // "line ending backslash": removed together with all white space up to the next character.
            Some(b' ' | b'\t' | b'\n' | b'\r') if is_multi_line => {
                self.spaces();
                return match self.peek() {
                    Some(b'\n' | b'\r') => self.lines(false),
                    _ => syntax_error(
                        "backslash before a space, expected `\\\\`",
                        start..start + 1,
                    ),
                };
            }
            _ => {
                let message = "unknown escape, expected b, t, n, f, r, e, \", x, u, U, or `\\\\` for a backslash";
                return syntax_error(message, start..start + 1);
            }
        };
        self.position += 1;
        text.to_mut().push(character);
        Ok(())
    }

    /// The hexadecimal digits after `x`, `u` or `U`, up to the last but one.
    fn code_point(&mut self, digits: u32) -> ParseResult<char> {
        let start = self.position - 1;
        let mut number = 0;
        for _ in 0..digits {
            self.position += 1;
            match self.peek().and_then(|byte| char::from(byte).to_digit(16)) {
                Some(digit) => number = number << 4 | digit,
                None => {
                    let message = "incomplete escape, expected 2 hexadecimal digits after `\\x`, \
                                   4 after `\\u`, 8 after `\\U`, or `\\\\` for a backslash";
                    return syntax_error(message, start..self.position);
                }
            }
        }
        match char::from_u32(number) {
            Some(character) => Ok(character),
            None => syntax_error(
                "no such character, expected a Unicode scalar value",
                start..self.position + 1,
            ),
        }
    }

    /// A value without quotes and brackets.
    pub(super) fn bare(&mut self) -> ParseResult<Data<'t>> {
        let start = self.position;
        loop {
            while self.peek().is_some_and(is_bare) {
                self.position += 1;
            }
            // A space may separate a date from its time.
            let rest = &self.text.as_bytes()[self.position..];
            match rest {
                [b' ', b'0'..=b'9', ..] if is_date(&self.text[start..self.position]) => {
                    self.position += 1;
                }
                _ => break,
            }
        }
        let word = &self.text[start..self.position];
        let data = match word {
            "true" => Some(Data::Boolean(true)),
            "false" => Some(Data::Boolean(false)),
            _ if is_date_time(word) => Some(Data::Date),
            _ => number(word),
        };
        if let Some(data) = data {
            return Ok(data);
        }
        let message = match word.as_bytes() {
            [] => "missing value, expected a number, a quote, `[`, `{`, `true` or `false`",
            [b'0', b'0'..=b'9' | b'_', ..] | [b'+' | b'-', b'0', b'0'..=b'9' | b'_', ..] => {
                "invalid number, expected no zero before it, or quotes around it"
            }
            [b'0'..=b'9' | b'+' | b'-' | b'.' | b'_', ..] => {
                "neither a number nor a date, expected quotes around it"
            }
            _ => "text without quotes, expected `\"` on each side, or `true` or `false`",
        };
        syntax_error(message, start..self.position)
    }
}

/// Whether a value without quotes continues.
fn is_bare(byte: u8) -> bool {
    !matches!(
        byte,
        b' ' | b'\t'
            | b'\n'
            | b'\r'
            | b'#'
            | b'='
            | b','
            | b'['
            | b']'
            | b'{'
            | b'}'
            | b'"'
            | b'\''
    )
}

/// "Local Date" by its form.
fn is_date(word: &str) -> bool {
    word.len() == "1979-05-27".len() && is_date_time(word)
}

/// A date, a time or both by their form: no key takes one, so that nothing reads the numbers.
fn is_date_time(word: &str) -> bool {
    let bytes = word.as_bytes();
    let starts_with_number = |digits: usize, separator: u8| {
        bytes.get(digits) == Some(&separator) && bytes[..digits].iter().all(u8::is_ascii_digit)
    };
    starts_with_number(4, b'-') || starts_with_number(2, b':')
}

/// "Integer" and "Float".
fn number(word: &str) -> Option<Data<'_>> {
    let (digits, radix) = match word.as_bytes() {
        [b'0', b'x', ..] => (&word[2..], 16),
        [b'0', b'o', ..] => (&word[2..], 8),
        [b'0', b'b', ..] => (&word[2..], 2),
        _ => (word, 10),
    };
    let text = if digits.contains("_") {
        Cow::Owned(digits.replace("_", ""))
    } else {
        Cow::Borrowed(digits)
    };
    let mut rest = digits.as_bytes();
    if radix == 10 {
        if let [b'+' | b'-', unsigned @ ..] = rest {
            rest = unsigned;
        }
        if let b"inf" | b"nan" = rest {
            return Some(Data::Float(text));
        }
    }
    let whole = rest;
    rest = after_digits(rest, radix)?;
    let has_leading_zero = whole[0] == b'0' && whole.len() - rest.len() > 1;
    if has_leading_zero && radix == 10 {
        return None;
    }
    if rest.is_empty() {
        let digits = text;
        return Some(Data::Integer { digits, radix });
    }
    if let [b'.', fraction @ ..] = rest {
        rest = after_digits(fraction, 10)?;
    }
    if let [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] = rest {
        rest = after_digits(exponent, 10)?;
    }
    (rest.is_empty() && radix == 10).then_some(Data::Float(text))
}

/// The text after the digits, of which there is at least one: "each underscore must be surrounded by at least
/// one digit on each side".
fn after_digits(text: &[u8], radix: u32) -> Option<&[u8]> {
    let is_digit = |byte: u8| char::from(byte).is_digit(radix);
    let mut rest = text;
    loop {
        rest = match rest {
            [byte, rest @ ..] if is_digit(*byte) => rest,
            [b'_', byte, after @ ..] if is_digit(*byte) && rest.len() < text.len() => after,
            _ if rest.len() == text.len() => return None,
            _ => return Some(rest),
        }
    }
}
