//! Floating-point numbers. The standard library computes the digits, exact for any precision, ties to even;
//! this module formats them as C does.

use alloc::format;
use alloc::string::String;

use super::output::{Field, Number, Output};
use crate::server::Fault;

/// Maximum number of decimal places, and of digits, that are not all 0: a larger precision only adds
/// zeros.
const EXACT: usize = 1074;

/// Number of hexadecimal places of a number.
const HEX: usize = 13;

/// A number without its sign.
struct Parts {
    /// Digits before the point.
    integer: String,
    /// Digits after the point.
    fraction: String,
    /// Number of zeros after the fraction.
    zeros: usize,
    exponent: String,
}

/// Prints a number by the letter of its conversion.
pub fn print(output: &mut Output, field: &Field, specifier: u8, value: f64) -> Result<(), Fault> {
    let upper = specifier.is_ascii_uppercase();
    let sign = field.sign(value.is_sign_negative());
    if !value.is_finite() {
        let name: &[u8] = match (value.is_nan(), upper) {
            (true, false) => b"nan",
            (true, true) => b"NAN",
            (false, false) => b"inf",
            (false, true) => b"INF",
        };
        return field.text(output, &[sign, name].concat());
    }
    let magnitude = value.abs();
    let mut base: &[u8] = b"";
    let parts = match specifier.to_ascii_lowercase() {
        b'f' => fixed(magnitude, field.precision.unwrap_or(6)),
        b'e' => exponential(magnitude, field.precision.unwrap_or(6)),
        b'g' => general(magnitude, field),
        _ => {
            base = if upper { b"0X" } else { b"0x" };
            hexadecimal(magnitude, field.precision)
        }
    };
    let mut digits = parts.integer;
    if field.flags.alternate || parts.zeros > 0 || !parts.fraction.is_empty() {
        digits.push('.');
    }
    digits.push_str(&parts.fraction);
    let mut exponent = parts.exponent;
    if upper {
        digits.make_ascii_uppercase();
        exponent.make_ascii_uppercase();
    }
    let number = Number {
        prefix: &[sign, base].concat(),
        digits: digits.as_bytes(),
        trailing: parts.zeros,
        suffix: exponent.as_bytes(),
        ..Number::default()
    };
    field.number(output, &number, true)
}

fn fixed(value: f64, precision: usize) -> Parts {
    let known = precision.min(EXACT);
    let text = format!("{value:.known$}");
    let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
    Parts {
        integer: integer.into(),
        fraction: fraction.into(),
        zeros: precision - known,
        exponent: String::new(),
    }
}

fn exponential(value: f64, precision: usize) -> Parts {
    let known = precision.min(EXACT);
    let (digits, exponent) = scientific(value, known);
    let (integer, fraction) = digits.split_at(1);
    Parts {
        integer: integer.into(),
        fraction: fraction.into(),
        zeros: precision - known,
        exponent: decimal_exponent(exponent),
    }
}

/// Formats as many significant digits as the precision, without an exponent if that is small.
fn general(value: f64, field: &Field) -> Parts {
    let precision = field.precision.unwrap_or(6).max(1);
    let known = precision.min(EXACT);
    let (mut digits, exponent) = scientific(value, known - 1);
    let mut zeros = precision - known;
    if !field.flags.alternate {
        zeros = 0;
        digits.truncate(digits.trim_end_matches('0').len().max(1));
    }
    // Number of digits before the point.
    let integer_width = match usize::try_from(exponent) {
        Ok(exponent) if exponent < precision => exponent + 1,
        Err(_) if exponent >= -4 => 0,
        _ => {
            let (integer, fraction) = digits.split_at(1);
            return Parts {
                integer: integer.into(),
                fraction: fraction.into(),
                zeros,
                exponent: decimal_exponent(exponent),
            };
        }
    };
    let (integer, fraction) = if integer_width > 0 {
        // Restores zeros that were cut off above.
        let digits = format!("{digits:0<integer_width$}");
        let (integer, fraction) = digits.split_at(integer_width);
        (integer.into(), fraction.into())
    } else {
        let width = digits.len() + exponent.unsigned_abs() as usize - 1;
        (String::from("0"), format!("{digits:0>width$}"))
    };
    Parts {
        integer,
        fraction,
        zeros,
        exponent: String::new(),
    }
}

fn hexadecimal(value: f64, precision: Option<usize>) -> Parts {
    let fraction_bits = 4 * HEX as u32;
    let bits = value.to_bits();
    let fraction = bits & ((1 << fraction_bits) - 1);
    let (mantissa, exponent) = match (bits >> fraction_bits, fraction) {
        (0, 0) => (0, 0),
        // Subnormal: the digit before the point is 0.
        (0, fraction) => (fraction, -1022),
        (exponent, fraction) => (1 << fraction_bits | fraction, exponent as i32 - 1023),
    };
    let kept = precision.unwrap_or(HEX).min(HEX);
    let mantissa = round(mantissa, 4 * (HEX - kept) as u32);
    let integer = mantissa >> fraction_bits;
    let fraction = mantissa & ((1 << fraction_bits) - 1);
    let mut fraction = format!("{fraction:0HEX$x}");
    fraction.truncate(match precision {
        Some(_) => kept,
        None => fraction.trim_end_matches('0').len(),
    });
    Parts {
        integer: format!("{integer}"),
        fraction,
        zeros: precision.unwrap_or(0).saturating_sub(HEX),
        exponent: format!("p{exponent:+}"),
    }
}

/// Rounds so that the last bits are 0, ties to even.
fn round(value: u64, bits: u32) -> u64 {
    if bits == 0 {
        return value;
    }
    let unit = 1 << bits;
    let rest = value & (unit - 1);
    let below = value - rest;
    let up = rest > unit / 2 || (rest == unit / 2 && below & unit != 0);
    if up { below + unit } else { below }
}

/// All digits, one of them before the point, and the power of ten.
fn scientific(value: f64, fraction: usize) -> (String, i32) {
    let text = format!("{value:.fraction$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.replace('.', "");
    (digits, exponent.parse().unwrap_or(0))
}

fn decimal_exponent(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.unsigned_abs())
}
