//! Damaged tables that glibc rejects, or that end the process: each is refused, with the reason.

use std::path::Path;
use std::process::Command;

use gpustub_image::edit::{Problem, inspect};

/// Tables, relocations against functions and data, an initializer, thread-local data and versions.
const SOURCE: &str = r#"
#include <stdlib.h>
static int x; int *p = &x; static __thread int t = 1;
__attribute__((constructor)) static void construct(void) { x = 1; t = 2; }
int f(void) { return getenv("X") ? t : abs(*p); }
"#;

/// Tags of the dynamic section (gABI; LSB for the last three).
const SYMTAB: u64 = 6;
const RELA: u64 = 7;
const JMPREL: u64 = 23;
const INIT_ARRAY: u64 = 25;
const GNU_HASH: u64 = 0x6fff_fef5;
const VERSYM: u64 = 0x6fff_fff0;
const VERNEED: u64 = 0x6fff_fffe;

/// Types of program headers.
const TLS: u32 = 7;
const RELRO: u32 = 0x6474_e552;

/// Place that is overwritten.
#[derive(Debug, Clone, Copy)]
enum At {
    /// A place in the table of a tag.
    Table(u64, usize),
    /// The tag itself, or with 8 its value.
    Entry(u64, usize),
    /// A place in a program header.
    Segment(u32, usize),
}

const CASES: &[(At, &[u8], &str)] = &[
    (At::Table(JMPREL, 8), &[0x63], "unknown type of relocation"),
    (
        At::Table(JMPREL, 8),
        &[0],
        "unexpected kind of PLT relocations",
    ),
    (
        At::Table(JMPREL, 0),
        &[0x01],
        "address in no slot of its own",
    ),
    (
        At::Table(JMPREL, 12),
        &[0; 4],
        "relocation without a symbol",
    ),
    (
        At::Table(JMPREL, 5),
        &[0x10],
        "relocation outside of writable segments",
    ),
    (
        At::Table(RELA, 19),
        &[0x70],
        "relative relocation to no address of it",
    ),
    (
        At::Table(SYMTAB, 24),
        &[0xff; 4],
        "name is outside the string table",
    ),
    (
        At::Table(GNU_HASH, 16),
        &[0; 8],
        "GNU hash table does not lead to its symbols",
    ),
    (
        At::Table(VERNEED, 16),
        &[0; 4],
        "version has the hash of another one",
    ),
    (
        At::Table(VERSYM, 2),
        &[0x70, 0],
        "symbol has an unknown version",
    ),
    (
        At::Entry(INIT_ARRAY, 3),
        &[0x66],
        "dynamic section has the size of a table, and no table",
    ),
    (
        At::Entry(SYMTAB, 0),
        &[5],
        "dynamic section has an entry twice",
    ),
    (
        At::Segment(TLS, 0),
        &[0, 0, 0, 0x66],
        "outside of the thread-local data",
    ),
    (
        At::Segment(TLS, 48),
        &[3],
        "invalid segment of thread-local data",
    ),
    (
        At::Segment(RELRO, 44),
        &[1],
        "data to protect is outside of its segment",
    ),
];

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Offset of a place. The tables are in the first segment, whose addresses are offsets.
fn offset(bytes: &[u8], at: At) -> usize {
    let segment = |kind: u32| {
        let first = word(bytes, 32) as usize;
        let mut all = (0..usize::from(bytes[56])).map(|i| first + 56 * i);
        let found = all.find(|&at| word(bytes, at) as u32 == kind);
        found.unwrap()
    };
    let entry = |tag: u64| {
        let dynamic = word(bytes, segment(2) + 8) as usize;
        let mut all = (dynamic..).step_by(16);
        all.find(|&at| word(bytes, at) == tag).unwrap()
    };
    match at {
        At::Table(tag, more) => word(bytes, entry(tag) + 8) as usize + more,
        At::Entry(tag, more) => entry(tag) + more,
        At::Segment(kind, more) => segment(kind) + more,
    }
}

fn library(directory: &Path) -> Vec<u8> {
    let source = directory.join("source.c");
    std::fs::write(&source, SOURCE).unwrap();
    let output = directory.join("library.so");
    let mut cc = Command::new("cc");
    cc.args([
        "-O1",
        "-shared",
        "-fPIC",
        "-Wl,--hash-style=gnu",
        "-Wl,-z,lazy",
        "-o",
    ]);
    assert!(cc.arg(&output).arg(&source).status().unwrap().success());
    std::fs::read(output).unwrap()
}

#[test]
fn damaged_tables_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path());
    inspect(&library).unwrap();
    let mut faults = Vec::new();
    for (at, new, expected) in CASES {
        let mut bytes = library.clone();
        let offset = offset(&bytes, *at);
        bytes[offset..offset + new.len()].copy_from_slice(new);
        match inspect(&bytes) {
            Err(Problem::Malformed(found)) if found == *expected => {}
            other => faults.push(format!("{at:?}: {:?}, expected {expected}", other.err())),
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
