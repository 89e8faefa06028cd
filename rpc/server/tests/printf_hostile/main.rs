//! Arbitrary formats and arguments.
#![cfg(feature = "std")]

mod play;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use play::printf;

/// Formats in which most bytes have a meaning.
fn format() -> impl Strategy<Value = Vec<u8>> {
    let meant = select(&b"%%%%%%**.-+ #0123456789hlqLjztdiuoxXbBcspfFeEgGaAn"[..]);
    vec(prop_oneof![20 => meant, 1 => any::<u8>()], 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_printed_or_refused(format in format(), rest in vec(any::<u8>(), 0..40)) {
        printf(&[&format[..], b"\0", &rest].concat());
    }
}

#[test]
fn some_data_is_printed_and_some_rejected() {
    assert!(printf(b"%d %s %*.*f"));
    assert!(printf(b"%s|%s\0text"));
    assert!(!printf(b"%n"));
    assert!(!printf(b"%999999999d"));
}
