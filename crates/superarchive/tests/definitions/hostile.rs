//! Damaged members result in an error or definitions: never a panic, never an endless loop.

use std::sync::LazyLock;

use gpustub_superarchive::fuzz::definitions;
use proptest::prelude::*;

use super::*;
use crate::damage::{changes, overwritten};

/// Bitcode, raw and wrapped, and an object of each kind.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let mut seeds = Vec::new();
    for (target, flags) in [
        ("x86_64-linux-gnu", &["-emit-llvm"][..]),
        ("arm64-apple-macos11", &["-emit-llvm"]),
        ("x86_64-linux-gnu", &[]),
        ("powerpc-linux-gnu", &[]),
        ("arm64-apple-macos11", &[]),
        ("armv7-apple-ios9", &[]),
        ("x86_64-pc-windows-msvc", &[]),
    ] {
        seeds.push(fs::read(compile(&dir, target, flags, "c", "seed")).unwrap());
    }
    // `IMPORT_OBJECT_HEADER` of `winnt.h`: for x86-64, code, by name.
    let mut import = vec![
        0, 0, 0xFF, 0xFF, 0, 0, 0x64, 0x86, 0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 4, 0,
    ];
    import.extend(b"call\0x.dll\0");
    seeds.push(import);
    for seed in &seeds {
        assert!(definitions(seed) > 0, "undamaged, it is readable");
    }
    seeds
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 8192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged(
        // Bitcode more often than others: its reader is part of this crate.
        seed in prop_oneof![0_usize..2, 0_usize..8],
        changes in changes(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = overwritten(&SEEDS[seed], &changes);
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        definitions(&bytes);
    }

    #[test]
    fn anything_after_the_magic(tail in prop::collection::vec(any::<u8>(), 0..512)) {
        definitions(&[b"BC\xC0\xDE", &tail[..]].concat());
    }
}

/// Flips each bit of bitcode, and sets each byte of the others to extreme values.
#[test]
fn each_bit_and_byte() {
    for (index, seed) in SEEDS.iter().enumerate() {
        let mut bytes = seed.clone();
        for offset in 0..bytes.len().min(4096) {
            let original = seed[offset];
            let extremes = [0, 1, 0x7F, 0xFF, original.wrapping_add(1)];
            let flipped = [0, 1, 2, 3, 4, 5, 6, 7].map(|bit| original ^ 1 << bit);
            for &byte in if index < 2 { &flipped[..] } else { &extremes } {
                bytes[offset] = byte;
                definitions(&bytes);
            }
            bytes[offset] = original;
        }
    }
}
