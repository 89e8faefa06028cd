use alloc::string::String;
use alloc::vec::Vec;

use super::format::Format;
use super::parse::{Conversion, Count, Flags, Length, Piece, Pieces};
use crate::server::Fault;

fn size(text: &str, packed: bool) -> usize {
    Format::parse(text.as_bytes(), packed)
        .unwrap()
        .arguments_size()
}

/// An argument, as its bytes in a device's memory.
enum Argument {
    Int(u32),
    Long(u64),
}

use Argument::{Int, Long};

/// Arguments without padding, in the byte order of this host.
fn bytes(arguments: &[Argument]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for argument in arguments {
        match argument {
            Int(value) => bytes.extend(value.to_ne_bytes()),
            Long(value) => bytes.extend(value.to_ne_bytes()),
        }
    }
    bytes
}

fn printed(text: &str, arguments: &[Argument], strings: &[&[u8]]) -> Result<String, Fault> {
    let format = Format::parse(text.as_bytes(), true)?;
    let printed = format.print(&bytes(arguments), strings, 5000)?;
    Ok(String::from_utf8(printed).unwrap())
}

fn double(text: &str, value: f64) -> String {
    printed(text, &[Long(value.to_bits())], &[]).unwrap()
}

#[test]
fn a_conversion_has_its_parts() {
    let pieces: Vec<_> = Pieces(b"a%-+ #0*.7hhd%.*Lg%").collect();
    let all = Flags {
        left: true,
        plus: true,
        space: true,
        alternate: true,
        zero: true,
    };
    let conversion = Conversion {
        text: b"%-+ #0*.7hhd",
        flags: all,
        width: Count::Argument,
        precision: Some(Count::Literal(7)),
        length: Length::Char,
        specifier: b'd',
    };
    let second = Conversion {
        text: b"%.*Lg",
        flags: Flags::default(),
        width: Count::Literal(0),
        precision: Some(Count::Argument),
        length: Length::Long,
        specifier: b'g',
    };
    let third = Conversion {
        text: b"%",
        precision: None,
        length: Length::Int,
        specifier: 0,
        ..second
    };
    assert_eq!(
        pieces,
        [
            Piece::Text(b"a"),
            Piece::Conversion(conversion),
            Piece::Conversion(second),
            Piece::Conversion(third)
        ]
    );
}

/// Compares sizes with those of LLVM's parser.
#[test]
fn sizes_of_arguments() {
    for (text, padded, packed) in [
        ("", 0, 0),
        ("no %% conversion", 0, 0),
        ("%d%d", 8, 8),
        ("%hhd%hd%c%lc", 16, 16),
        ("%d%ld", 16, 12),
        ("%d%lld%d%jd%d%zu%d%td%d%qd%d%Lx", 96, 72),
        ("%d%s", 16, 12),
        ("%d%p%d%f", 32, 24),
        ("%d%Lf%d%hf", 32, 24),
        ("%*d%.*d%*.*d", 28, 28),
        ("%*.*f", 16, 16),
        ("%*f", 16, 12),
        // An unknown conversion consumes its stars, but no value.
        ("%y%*y%d", 8, 8),
        ("%**d", 4, 4),
        ("%5*d", 0, 0),
        ("%.*.5d", 4, 4),
        ("%1$d", 0, 0),
        ("%llld", 0, 0),
        ("%d%", 4, 4),
        ("%d%*", 8, 8),
        ("%d%l", 4, 4),
        ("%d%q%%d", 4, 4),
        ("%l%d", 4, 4),
        // After the end.
        ("%d\0%d", 4, 4),
    ] {
        assert_eq!(size(text, false), padded, "{text}");
        assert_eq!(size(text, true), packed, "{text} packed");
    }
}

#[test]
fn writing_to_memory_is_refused() {
    for text in ["%n", "%lln", "%5n", "%*n", "%d%hhn"] {
        let refused = Format::parse(text.as_bytes(), false).map(|_| ());
        assert_eq!(refused, Err(Fault::Other("printf: %n is not allowed")));
    }
    assert!(Format::parse(b"%%n\0%n", false).is_ok());
}

#[test]
fn strings_are_those_that_are_not_null() {
    let format = Format::parse(b"%s%*s%p%s", false).unwrap();
    // Padded: the offset of a pointer is a multiple of 8.
    let bytes = bytes(&[Long(1), Int(7), Int(0), Long(0), Long(3), Long(4)]);
    assert_eq!(format.strings(&bytes), [1, 4]);
    assert_eq!(format.strings(&bytes[..39]), [1]);
    let texts: &[&[u8]] = &[b"first\0behind", b"last"];
    let printed = format.print(&bytes, texts, 50).unwrap();
    assert_eq!(String::from_utf8_lossy(&printed), "first (null)0x3last");
    let missing = format.print(&bytes, &texts[..1], 50);
    assert_eq!(missing, Err(Fault::Other("printf: a string is missing")));
}

#[test]
fn missing_arguments_are_a_fault() {
    let few = Err(Fault::Other("printf: missing arguments"));
    for (text, size) in [("%d", 3), ("%d%s", 12), ("%*.*f", 7), ("%y%*", 0)] {
        let format = Format::parse(text.as_bytes(), false).unwrap();
        assert_eq!(format.print(&[0; 16][..size], &[], 100), few, "{text}");
    }
}

#[test]
fn unknown_conversions_are_printed_verbatim() {
    for text in [
        "%Z%q%v", "%y", "100%", "%-05.3q", "%1$d", "%'d", "%m", "%S", "%5*d",
    ] {
        assert_eq!(printed(text, &[], &[]).as_deref(), Ok(text));
    }
    assert_eq!(printed("%*y|%x", &[Int(5), Int(7)], &[]).unwrap(), "%*y|7");
}

#[test]
fn text_has_a_limit() {
    let longer = Err(Fault::Other("printf: output exceeds the limit"));
    for text in [
        "%999999999d",
        "%-99999999999999999999999d",
        "%.99999999999999999999999d",
        "%099999999999f",
        "%.18446744073709551615e",
        "%#.99999999999999999999g",
        "%.99999999999999999999a",
        "%9999c",
    ] {
        // An argument of 8 bytes is enough for any of them.
        assert_eq!(printed(text, &[Long(1)], &[]), longer, "{text}");
    }
    // None of these formats requests so much text.
    assert_eq!(double("%.99999999999999999999g", 0.5), "0.5");
    let texts: &[&[u8]] = &[b"text"];
    let printed_text = printed("%.99999999999999999999s", &[Long(1)], texts);
    assert_eq!(printed_text.as_deref(), Ok("text"));
    let stars = [Int(i32::MIN as u32), Int(u32::MAX), Int(1)];
    assert_eq!(printed("%*.*d", &stars, &[]), longer);
    let exact = Format::parse(b"%3d", false).unwrap();
    assert!(exact.print(&bytes(&[Int(1)]), &[], 3).is_ok());
    assert!(exact.print(&bytes(&[Int(1)]), &[], 2).is_err());
}

#[test]
fn numbers() {
    assert_eq!(
        printed("%#b %#B", &[Int(5), Int(0)], &[]).as_deref(),
        Ok("0b101 0")
    );
    assert_eq!(printed("%hhd", &[Int(0x1ff)], &[]).as_deref(), Ok("-1"));
    assert_eq!(printed("%+.0ld|", &[Long(0)], &[]).as_deref(), Ok("+|"));
    assert_eq!(printed("%#.0lo|", &[Long(0)], &[]).as_deref(), Ok("0|"));
    assert_eq!(printed("%#.3lo|", &[Long(8)], &[]).as_deref(), Ok("010|"));
    assert_eq!(
        printed("%08.3ld|", &[Long(5)], &[]).as_deref(),
        Ok("     005|")
    );
    assert_eq!(
        printed("%p %8p", &[Long(1), Long(0)], &[]).as_deref(),
        Ok("0x1    (nil)")
    );
    let chars = [Int(0xe9), Int(0xd800)];
    assert_eq!(printed("%lc%lc", &chars, &[]).as_deref(), Ok("é\u{fffd}"));
    assert_eq!(double("%.0f", 2.5), "2");
    assert_eq!(double("%.0f", 3.5), "4");
    assert_eq!(double("%e", 0.0), "0.000000e+00");
    assert_eq!(double("%G", 1e-5), "1E-05");
    assert_eq!(double("%g", 100_000.0), "100000");
    assert_eq!(double("%g", 999_999.5), "1e+06");
    // As C specifies; glibc omits the zeros.
    assert_eq!(double("%#.3g", 999.6), "1.00e+03");
    assert_eq!(double("%a", 1.0), "0x1p+0");
    assert_eq!(double("%.0a", 1.5), "0x2p+0");
    assert_eq!(double("%A", 5e-324), "0X0.0000000000001P-1022");
    assert_eq!(double("%06.1f", -f64::INFINITY), "  -inf");
    assert_eq!(double("%F", f64::NAN), "NAN");
}
