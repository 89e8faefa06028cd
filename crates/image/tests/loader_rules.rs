//! Damaged tables that glibc rejects, or that end the process: each is refused, with the reason.

use std::path::Path;
use std::process::Command;

use gpustub_image::edit::{EditProblem, inspect};

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
enum Place {
    /// A place in the table of a tag.
    Table(u64, usize),
    /// The tag itself, or with 8 its value.
    Entry(u64, usize),
    /// A place in a program header.
    Segment(u32, usize),
}

const CASES: &[(Place, &[u8], &str)] = &[
    (
        Place::Table(JMPREL, 8),
        &[0x63],
        "unknown type of relocation",
    ),
    (
        Place::Table(JMPREL, 8),
        &[0],
        "unexpected kind of PLT relocations",
    ),
    (
        Place::Table(JMPREL, 0),
        &[0x01],
        "address in no slot of its own",
    ),
    (
        Place::Table(JMPREL, 12),
        &[0; 4],
        "relocation without a symbol",
    ),
    (
        Place::Table(JMPREL, 5),
        &[0x10],
        "relocation outside of writable segments",
    ),
    (
        Place::Table(RELA, 19),
        &[0x70],
        "relative relocation to no address of it",
    ),
    (
        Place::Table(SYMTAB, 24),
        &[0xff; 4],
        "name is outside the string table",
    ),
    (
        Place::Table(GNU_HASH, 16),
        &[0; 8],
        "GNU hash table does not lead to its symbols",
    ),
    (
        Place::Table(VERNEED, 16),
        &[0; 4],
        "version has the hash of another one",
    ),
    (
        Place::Table(VERSYM, 2),
        &[0x70, 0],
        "symbol has an unknown version",
    ),
    (
        Place::Entry(INIT_ARRAY, 3),
        &[0x66],
        "dynamic section has the size of a table, and no table",
    ),
    (
        Place::Entry(SYMTAB, 0),
        &[5],
        "dynamic section has an entry twice",
    ),
    (
        Place::Segment(TLS, 0),
        &[0, 0, 0, 0x66],
        "outside of the thread-local data",
    ),
    (
        Place::Segment(TLS, 48),
        &[3],
        "invalid segment of thread-local data",
    ),
    (
        Place::Segment(RELRO, 44),
        &[1],
        "data to protect is outside of its segment",
    ),
];

fn word(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap())
}

/// Offset of a place. The tables are in the first segment, whose addresses are offsets.
fn offset(bytes: &[u8], place: Place) -> usize {
    match place {
        Place::Table(tag, distance) => word(bytes, entry(bytes, tag) + 8) as usize + distance,
        Place::Entry(tag, distance) => entry(bytes, tag) + distance,
        Place::Segment(kind, distance) => segment(bytes, kind) + distance,
    }
}

/// Offset of the program header of a kind.
fn segment(bytes: &[u8], kind: u32) -> usize {
    let phoff = word(bytes, 32) as usize;
    (0..usize::from(bytes[56]))
        .map(|index| phoff + 56 * index)
        .find(|&header| word(bytes, header) as u32 == kind)
        .unwrap()
}

/// Offset of the entry of a tag in the dynamic section.
fn entry(bytes: &[u8], tag: u64) -> usize {
    let dynamic = word(bytes, segment(bytes, 2) + 8) as usize;
    (dynamic..)
        .step_by(16)
        .find(|&entry| word(bytes, entry) == tag)
        .unwrap()
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
    for (place, damage, expected) in CASES {
        let mut bytes = library.clone();
        let offset = offset(&bytes, *place);
        bytes[offset..offset + damage.len()].copy_from_slice(damage);
        let problem = inspect(&bytes).err();
        if problem != Some(EditProblem::Malformed(expected)) {
            faults.push(format!("{place:?}: {problem:?}, expected {expected}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
