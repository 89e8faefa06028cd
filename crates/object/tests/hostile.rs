//! Damaged and hostile files give an error or a list: never a panic, never endless work.

mod library;

use std::sync::OnceLock;

use gpustub_object::fuzz::check;
use library::{KINDS, build};
use proptest::prelude::*;

/// A real library, small enough that most of its bytes are headers and tables.
fn small() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let flags = ["-DVERSIONED", "-DIFUNC", "-Wl,--hash-style=both", "-s"];
        let bytes = std::fs::read(build(directory.path(), &["cc"], KINDS, &flags)).unwrap();
        assert!(check(&bytes), "undamaged, it is readable");
        bytes
    })
}

/// Values that break arithmetic more often than random ones do.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::from(u32::MAX)),
        Just(u64::MAX),
        Just(1 << 63),
        0..0x1_0000_u64,
        any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn overwritten(changes in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4, value()), 1..6)) {
        let mut bytes = small().to_vec();
        for (at, size, value) in changes {
            let size = 1 << size;
            let at = at.index(bytes.len() - size);
            bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        check(&bytes);
    }

    #[test]
    fn cut_and_glued(from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), length in 0_usize..4096) {
        let mut bytes = small().to_vec();
        let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
        let piece = bytes[from..(from + length).min(bytes.len())].to_vec();
        bytes.splice(to..to, piece);
        check(&bytes);
    }

    #[test]
    fn anything_after_the_magic(tail in prop::collection::vec(any::<u8>(), 0..512)) {
        let mut bytes = b"\x7fELF".to_vec();
        bytes.extend(tail);
        check(&bytes);
    }
}

/// Each byte of the headers and the dynamic section, one after the other, at its extremes.
#[test]
fn each_byte_at_its_extremes() {
    let mut bytes = small().to_vec();
    for at in 0..bytes.len().min(4096) {
        let was = bytes[at];
        for value in [0, 1, 0x7f, 0xff, was ^ 1, was.wrapping_add(1)] {
            bytes[at] = value;
            check(&bytes);
        }
        bytes[at] = was;
    }
}
