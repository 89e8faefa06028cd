//! Formats are printed as by glibc, which is part of this process.
#![cfg(all(
    feature = "std",
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64"
))]

use std::ffi::{CString, c_char, c_int, c_void};

use gpurpc::libc::printf::Format;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

unsafe extern "C" {
    fn snprintf(buffer: *mut c_char, size: usize, format: *const c_char, ...) -> c_int;
}

/// A conversion with its arguments, of which the last is the value.
#[derive(Clone, Debug)]
struct Case {
    text: String,
    stars: Vec<i32>,
    value: Value,
}

#[derive(Clone, Debug)]
enum Value {
    None,
    Int(u32),
    Long(u64),
    Double(f64),
    Pointer(u64),
    String(Option<Vec<u8>>),
}

/// Output of glibc.
fn expected(case: &Case) -> Vec<u8> {
    // `long double` is not available here.
    let text = match case.value {
        Value::Double(_) => case.text.replace('L', ""),
        _ => case.text.clone(),
    };
    let text = CString::new(text).unwrap();
    let string = match &case.value {
        Value::String(Some(bytes)) => Some(CString::new(bytes.clone()).unwrap()),
        _ => None,
    };
    let mut buffer = vec![0_u8; 1 << 14];
    macro_rules! call {
        ($($star:expr),*) => {{
            let (to, size) = (buffer.as_mut_ptr().cast::<c_char>(), buffer.len());
            // SAFETY: the buffer has this size, and the arguments match the format.
            unsafe {
                match case.value {
                    Value::None => snprintf(to, size, text.as_ptr() $(, $star)*),
                    Value::Int(value) => snprintf(to, size, text.as_ptr() $(, $star)*, value),
                    Value::Long(value) => snprintf(to, size, text.as_ptr() $(, $star)*, value),
                    Value::Double(value) => snprintf(to, size, text.as_ptr() $(, $star)*, value),
                    Value::Pointer(value) => {
                        snprintf(to, size, text.as_ptr() $(, $star)*, value as *const c_void)
                    }
                    Value::String(_) => {
                        let string = string.as_ref().map_or(std::ptr::null(), |s| s.as_ptr());
                        snprintf(to, size, text.as_ptr() $(, $star)*, string)
                    }
                }
            }
        }};
    }
    let size = match case.stars[..] {
        [] => call!(),
        [first] => call!(first),
        [first, second, ..] => call!(first, second),
    };
    let size = usize::try_from(size).expect("the C library prints it");
    assert!(size < buffer.len(), "{case:?}");
    buffer.truncate(size);
    buffer
}

/// Whether glibc deviates from C: `%#.3g` of 999.6 is `1.00e+03`, glibc prints `1.e+03`.
fn drops_zeros(case: &Case) -> bool {
    let Value::Double(value) = case.value else {
        return false;
    };
    let exponent = |digits: usize| {
        let text = format!("{value:.digits$e}");
        let exponent = text.split_once('e').map(|(_, exponent)| exponent.parse());
        exponent.map_or(0, |exponent: Result<i64, _>| exponent.unwrap())
    };
    let precision = match case.text.split_once('.') {
        None => 6,
        Some((_, text)) if text.starts_with('*') => {
            let given = i64::from(case.stars[case.stars.len() - 1]);
            if given < 0 { 6 } else { given }
        }
        Some((_, text)) => {
            let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap();
            text[..digits].parse().unwrap_or(0)
        }
    };
    let digits = precision.max(1);
    case.text.contains('#')
        && case.text.ends_with(['g', 'G'])
        && exponent(digits as usize - 1) == digits
        && exponent(1100) < digits
}

/// Output of this library for alternating text and conversions, whose strings have made-up addresses.
fn printed(pieces: &[(String, Case)], packed: bool) -> Vec<u8> {
    let mut arguments = Vec::new();
    let mut put = |bytes: &[u8]| {
        while !packed && arguments.len() % bytes.len() != 0 {
            arguments.push(0xa5);
        }
        arguments.extend_from_slice(bytes);
    };
    let mut format = String::new();
    let (mut strings, mut addresses) = (Vec::new(), Vec::new());
    for (text, case) in pieces {
        format.push_str(text);
        format.push_str(&case.text);
        for star in &case.stars {
            put(&star.to_ne_bytes());
        }
        match &case.value {
            Value::None => {}
            Value::Int(value) => put(&value.to_ne_bytes()),
            Value::Long(value) | Value::Pointer(value) => put(&value.to_ne_bytes()),
            Value::Double(value) => put(&value.to_ne_bytes()),
            Value::String(None) => put(&0_u64.to_ne_bytes()),
            Value::String(Some(string)) => {
                let address = 0x7f00_0000_0000 + strings.len() as u64;
                put(&address.to_ne_bytes());
                addresses.push(address);
                strings.push([&string[..], b"\0behind"].concat());
            }
        }
    }
    let format = Format::parse(format.as_bytes(), packed).unwrap();
    assert_eq!(format.arguments_size(), arguments.len());
    assert_eq!(format.strings(&arguments), addresses);
    let strings: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
    format.print(&arguments, &strings, 1 << 20).unwrap()
}

/// Spelling of a width or precision, and its argument.
fn count(from: i32) -> impl Strategy<Value = (String, Option<i32>)> {
    prop_oneof![
        3 => (1..40).prop_map(|count: i32| (count.to_string(), None)),
        2 => (from..40).prop_map(|count| (String::from("*"), Some(count))),
        1 => (40..1200).prop_map(|count: i32| (count.to_string(), None)),
    ]
}

fn width() -> impl Strategy<Value = (String, Option<i32>)> {
    prop_oneof![Just((String::new(), None)), count(-40)]
}

fn precision() -> impl Strategy<Value = (String, Option<i32>)> {
    let given = prop_oneof![
        1 => Just((String::new(), None)),
        1 => Just((String::from("0"), None)),
        4 => count(-3),
    ];
    let given = given.prop_map(|(text, star)| (format!(".{text}"), star));
    prop_oneof![Just((String::new(), None)), given]
}

fn integer() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..20_u64,
        (0..64_u32, any::<u64>()).prop_map(|(shift, bits)| bits >> shift),
        (0..64_u32, 0..3_u64).prop_map(|(shift, off)| (1_u64 << shift).wrapping_sub(off)),
    ]
}

fn double() -> impl Strategy<Value = f64> {
    let positive = prop_oneof![
        4 => any::<u64>().prop_map(f64::from_bits),
        // Ties.
        4 => (0..100_000_u32, 0..20).prop_map(|(n, shift)| f64::from(n) / f64::from(1 << shift)),
        // Near powers of ten.
        4 => (-320..309_i32, -2..3_i64).prop_map(|(exponent, off)| {
            let value: f64 = format!("1e{exponent}").parse().unwrap();
            f64::from_bits(value.to_bits().saturating_add_signed(off))
        }),
        2 => (1..10_000_u32, -30..30_i32)
            .prop_map(|(n, exponent)| format!("{n}e{exponent}").parse().unwrap()),
        // Subnormal.
        1 => (0..1_u64 << 52).prop_map(f64::from_bits),
        1 => select(vec![0.0, 0.5, 1.0, 9.5, 99.5, 999_999.5, f64::MAX, f64::MIN_POSITIVE,
            f64::INFINITY, f64::NAN, 5e-324, 0.000_1, 0.000_099_999_95]),
    ];
    (positive, any::<bool>()).prop_map(|(value, negative)| if negative { -value } else { value })
}

/// The end of a conversion, with its value.
fn value() -> impl Strategy<Value = (String, Value)> {
    let short = select(vec!["", "h", "hh"]);
    let long = select(vec!["l", "ll", "j", "z", "t", "q", "L"]);
    let letters = || select(vec!["d", "i", "u", "o", "x", "X", "b", "B"]);
    let doubles = select(vec!["f", "F", "e", "E", "g", "G", "a", "A"]);
    prop_oneof![
        4 => (short, letters(), integer())
            .prop_map(|(l, c, value)| (format!("{l}{c}"), Value::Int(value as u32))),
        4 => (long, letters(), integer())
            .prop_map(|(l, c, value)| (format!("{l}{c}"), Value::Long(value))),
        8 => (select(vec!["", "l", "L"]), doubles, double())
            .prop_map(|(l, c, value)| (format!("{l}{c}"), Value::Double(value))),
        1 => integer().prop_map(|value| (String::from("p"), Value::Pointer(value))),
        1 => any::<u32>().prop_map(|value| (String::from("c"), Value::Int(value))),
        2 => proptest::option::of(vec(1..=255_u8, 0..20))
            .prop_map(|string| (String::from("s"), Value::String(string))),
        1 => Just((String::from("%"), Value::None)),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let case = ("[-+ #0]{0,4}", width(), precision(), value()).prop_map(
        |(flags, width, precision, (end, value))| Case {
            text: format!("%{flags}{}{}{end}", width.0, precision.0),
            stars: width.1.into_iter().chain(precision.1).collect(),
            value,
        },
    );
    case.prop_filter("glibc deviates from C", |case| !drops_zeros(case))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_conversion_is_printed_as_glibc_does(case in case()) {
        let expected = expected(&case);
        let printed = printed(&[(String::new(), case)], false);
        prop_assert_eq!(String::from_utf8_lossy(&printed), String::from_utf8_lossy(&expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arguments_are_found_in_any_order(
        pieces in vec(("[a-z ]{0,5}", case()), 0..8),
        packed in any::<bool>(),
    ) {
        let expected = pieces.iter().flat_map(|(text, case)| {
            [text.as_bytes(), &expected(case)].concat()
        });
        let expected: Vec<u8> = expected.collect();
        let printed = printed(&pieces, packed);
        prop_assert_eq!(String::from_utf8_lossy(&printed), String::from_utf8_lossy(&expected));
    }
}
