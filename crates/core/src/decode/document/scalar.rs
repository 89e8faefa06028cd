//! Strings, numbers, dates, `true` and `false`.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::{Data, Read, Reader, is_control, wrong};

impl<'t> Reader<'t> {
    /// How many of these quotes come next, as far as it matters: two and the three that close.
    pub fn quotes(&self, quote: u8) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        rest.iter()
            .take(5)
            .take_while(|byte| **byte == quote)
            .count()
    }

    /// "String": all four kinds. Whether it is basic or literal is the quote's to say.
    pub fn string(&mut self, quote: u8) -> Read<Cow<'t, str>> {
        let open = self.at;
        let delimiter = if self.quotes(quote) >= 3 { 3 } else { 1 };
        let multi_line = delimiter == 3;
        self.at += delimiter;
        // "A newline immediately following the opening delimiter will be trimmed."
        if multi_line && matches!(self.peek(), Some(b'\n' | b'\r')) {
            self.newline()?;
        }
        let mut text = Cow::Borrowed("");
        // What is not in `text` yet.
        let mut start = self.at;
        loop {
            match self.peek() {
                Some(byte) if byte == quote => {
                    let quotes = self.quotes(quote);
                    if quotes < delimiter {
                        self.at += quotes;
                        continue;
                    }
                    // Up to two quotes may stand just before the three that close.
                    let end = self.at + if multi_line { quotes - 3 } else { 0 };
                    self.at = end + delimiter;
                    text += &self.text[start..end];
                    return Ok(text);
                }
                Some(b'\\') if quote == b'"' => {
                    text += &self.text[start..self.at];
                    self.escape(&mut text, multi_line)?;
                    start = self.at;
                }
                Some(b'\n' | b'\r') if multi_line => self.newline()?,
                None if multi_line => {
                    let message = match quote {
                        b'"' => "unclosed string, expected `\"\"\"`",
                        _ => "unclosed string, expected `'''`",
                    };
                    return wrong(message, open..open + delimiter);
                }
                None | Some(b'\n' | b'\r') => {
                    return self.wrong_here(match quote {
                        b'"' => "unclosed string, expected `\"`",
                        _ => "unclosed string, expected `'`",
                    });
                }
                Some(byte) if is_control(byte) => {
                    let message = "control character in a string, expected `\\u` and its number";
                    return self.wrong_character(message);
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// What a backslash begins.
    fn escape(&mut self, text: &mut Cow<'t, str>, multi_line: bool) -> Read<()> {
        let start = self.at;
        self.at += 1;
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
            // "line ending backslash": it goes, with all white space up to the next character.
            Some(b' ' | b'\t' | b'\n' | b'\r') if multi_line => {
                self.spaces();
                return match self.peek() {
                    Some(b'\n' | b'\r') => self.lines(false),
                    _ => wrong(
                        "backslash before a space, expected `\\\\`",
                        start..start + 1,
                    ),
                };
            }
            _ => {
                let message = "unknown escape, expected b, t, n, f, r, e, \", x, u, U, \
                               or `\\\\` for a backslash";
                return wrong(message, start..start + 1);
            }
        };
        self.at += 1;
        text.to_mut().push(character);
        Ok(())
    }

    /// The hexadecimal digits after `x`, `u` or `U`, up to before the last.
    fn code_point(&mut self, digits: u32) -> Read<char> {
        let start = self.at - 1;
        let mut number = 0;
        for _ in 0..digits {
            self.at += 1;
            match self.peek().and_then(|byte| char::from(byte).to_digit(16)) {
                Some(digit) => number = number << 4 | digit,
                None => {
                    let message = "incomplete escape, expected 2 hexadecimal digits after `\\x`, \
                                   4 after `\\u`, 8 after `\\U`, or `\\\\` for a backslash";
                    return wrong(message, start..self.at);
                }
            }
        }
        match char::from_u32(number) {
            Some(character) => Ok(character),
            // "any Unicode scalar value"
            None => wrong(
                "no such character, expected a Unicode scalar value",
                start..self.at + 1,
            ),
        }
    }

    /// A value without quotes or brackets.
    pub fn bare(&mut self) -> Read<Data<'t>> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        while let Some(byte) = self.peek() {
            match byte {
                // The one space that may be in a value stands between a date and a time.
                b' ' if self.at == start + "1979-05-27".len()
                    && bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit)
                    && date_time(&bytes[start..self.at]).is_some() => {}
                b' ' | b'\t' | b'\n' | b'\r' | b'#' | b'=' | b',' => break,
                b'[' | b']' | b'{' | b'}' | b'"' | b'\'' => break,
                _ => {}
            }
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        let data = match word.as_bytes() {
            b"true" => Some(Data::Boolean(true)),
            b"false" => Some(Data::Boolean(false)),
            bytes => match date_time(bytes) {
                Some(()) => Some(Data::Date),
                None => number(word),
            },
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
        wrong(message, start..self.at)
    }
}

/// "Integer" and "Float".
fn number(word: &str) -> Option<Data<'_>> {
    let (digits, radix) = match word.as_bytes() {
        [b'0', b'x', ..] => (&word[2..], 16),
        [b'0', b'o', ..] => (&word[2..], 8),
        [b'0', b'b', ..] => (&word[2..], 2),
        _ => (word, 10),
    };
    let text = match digits.contains('_') {
        true => Cow::Owned(digits.replace('_', "")),
        false => Cow::Borrowed(digits),
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
    let leading_zero = whole[0] == b'0' && whole.len() - rest.len() > 1;
    if leading_zero && radix == 10 {
        return None;
    }
    if rest.is_empty() {
        return Some(Data::Integer {
            digits: text,
            radix,
        });
    }
    if let [b'.', fraction @ ..] = rest {
        rest = after_digits(fraction, 10)?;
    }
    if let [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] = rest {
        rest = after_digits(exponent, 10)?;
    }
    (rest.is_empty() && radix == 10).then_some(Data::Float(text))
}

/// What follows the digits, of which there is at least one: "each underscore must be surrounded by
/// at least one digit on each side".
fn after_digits(text: &[u8], radix: u32) -> Option<&[u8]> {
    let digit = |byte: u8| char::from(byte).is_digit(radix);
    let mut rest = text;
    loop {
        rest = match rest {
            [byte, rest @ ..] if digit(*byte) => rest,
            [b'_', byte, after @ ..] if digit(*byte) && rest.len() < text.len() => after,
            _ if rest.len() == text.len() => return None,
            _ => return Some(rest),
        }
    }
}

/// "Offset Date-Time", "Local Date-Time", "Local Date" and "Local Time".
fn date_time(text: &[u8]) -> Option<()> {
    let (century, rest) = two_digits(text, 0..=99)?;
    if let [b':', ..] = rest {
        return time(text)?.is_empty().then_some(());
    }
    let (year, rest) = two_digits(rest, 0..=99)?;
    let (month, rest) = two_digits(rest.strip_prefix(b"-")?, 1..=12)?;
    let leap = year % 4 == 0 && (year != 0 || century % 4 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let (_, rest) = two_digits(rest.strip_prefix(b"-")?, 1..=days)?;
    let [b'T' | b't' | b' ', rest @ ..] = rest else {
        return rest.is_empty().then_some(());
    };
    match time(rest)? {
        [] | b"Z" | b"z" => Some(()),
        [b'+' | b'-', offset @ ..] => {
            let (_, rest) = two_digits(offset, 0..=23)?;
            let (_, rest) = two_digits(rest.strip_prefix(b":")?, 0..=59)?;
            rest.is_empty().then_some(())
        }
        _ => None,
    }
}

/// What follows a time. TOML 1.1: it may have no seconds.
fn time(text: &[u8]) -> Option<&[u8]> {
    let (_, rest) = two_digits(text, 0..=23)?;
    let (_, rest) = two_digits(rest.strip_prefix(b":")?, 0..=59)?;
    let [b':', rest @ ..] = rest else {
        return Some(rest);
    };
    // RFC 3339: 60 is a leap second.
    let (_, rest) = two_digits(rest, 0..=60)?;
    let [b'.', fraction @ ..] = rest else {
        return Some(rest);
    };
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    (digits > 0).then(|| &fraction[digits..])
}

/// Two digits, their number, and what follows.
fn two_digits(text: &[u8], range: RangeInclusive<u8>) -> Option<(u8, &[u8])> {
    let [tens @ b'0'..=b'9', ones @ b'0'..=b'9', rest @ ..] = text else {
        return None;
    };
    let number = (tens - b'0') * 10 + (ones - b'0');
    range.contains(&number).then_some((number, rest))
}
