//! Damaged archives produce flaws, without panics or endless loops.

mod archive;
// Mutations shared with the tests of the object file readers.
#[path = "../../image/tests/support/damage.rs"]
mod damage;

use std::sync::LazyLock;

use archive::{entry, gzip, library, static_library, tar, zip};
use damage::{changes, overwritten as damaged};
use gpustub_check::fuzz::file;
use proptest::prelude::*;

/// Small archives of each kind; most of their bytes are headers.
static SEEDS: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let mut stored = entry("demo/_core.so", library());
    stored.method = 0;
    let mut link = entry("demo/link", "x.so");
    link.mode = 0o120777;
    let inner = zip(&[entry("x.so", "\x7fELF")]);
    let wheel = zip(&[
        entry("demo/", ""),
        entry("demo/x.py", "import x"),
        stored,
        link,
        entry("x.whl", inner),
        entry("demo-1.dist-info/METADATA", "Name: demo\n"),
    ]);
    let plain = tar(&[
        ("x-1/Cargo.toml", b"[package]"),
        ("x-1/x.so", &library()[..700]),
        ("x-1/y", b"y"),
    ]);
    let seeds = vec![
        ("x.whl", wheel),
        ("x.tar", plain.clone()),
        ("x.crate", gzip(&plain)),
        ("libx.a", static_library(directory.path())),
        ("x.so", library()),
    ];
    for (name, bytes) in &seeds {
        assert!(file(bytes, name) > 0, "undamaged, {name} is readable");
    }
    seeds
});

fn seed() -> impl Strategy<Value = usize> {
    0..SEEDS.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn overwritten(seed in seed(), changes in changes()) {
        let (name, bytes) = &SEEDS[seed];
        file(&damaged(bytes, &changes), name);
    }

    #[test]
    fn cut_and_glued(seed in seed(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), length in 0_usize..4096) {
        let (name, bytes) = &SEEDS[seed];
        let mut bytes = bytes.clone();
        let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
        let piece = bytes[from..(from + length).min(bytes.len())].to_vec();
        bytes.splice(to..to, piece);
        file(&bytes, name);
        bytes.truncate(to);
        file(&bytes, name);
    }
}

/// Mutates each byte of a wheel's headers in turn: the last kilobyte is its directory.
#[test]
fn each_byte_of_a_wheels_directory() {
    let (name, bytes) = &SEEDS[0];
    let mut bytes = bytes.clone();
    for offset in (0..64).chain(bytes.len() - 512..bytes.len()) {
        let original = bytes[offset];
        for byte in [0, 1, 0x7f, 0xff, original ^ 1, original.wrapping_add(1)] {
            bytes[offset] = byte;
            file(&bytes, name);
        }
        bytes[offset] = original;
    }
}
