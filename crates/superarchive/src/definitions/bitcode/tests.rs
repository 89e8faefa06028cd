//! Bitcode written by clang, and by tests bit by bit. Needs clang.

use std::path::Path;
use std::process::Command;

use super::*;
use crate::definitions::collector::Binding;

/// Writes a bitstream.
#[derive(Default)]
pub struct Writer {
    bits: Vec<bool>,
    /// Offset of the length of each open block, and the width of the numbers outside it.
    open: Vec<(usize, u32)>,
    width: u32,
}

impl Writer {
    pub fn new() -> Self {
        let mut writer = Self {
            width: 2,
            ..Self::default()
        };
        for byte in *b"BC\xC0\xDE" {
            writer.fixed(byte.into(), 8);
        }
        writer
    }

    pub fn fixed(&mut self, number: u64, width: u32) -> &mut Self {
        self.bits
            .extend((0..width).map(|bit| number >> bit & 1 == 1));
        self
    }

    pub fn vbr(&mut self, mut number: u64, width: u32) -> &mut Self {
        let more = 1 << (width - 1);
        while number >= more {
            self.fixed(number % more + more, width);
            number /= more;
        }
        self.fixed(number, width)
    }

    pub fn align(&mut self) {
        self.bits
            .resize(self.bits.len().next_multiple_of(32), false);
    }

    pub fn begin(&mut self, block: u64, width: u32) -> &mut Self {
        self.fixed(1, self.width)
            .vbr(block, 8)
            .vbr(width.into(), 4)
            .align();
        self.open.push((self.bits.len(), self.width));
        self.width = width;
        self.fixed(0, 32)
    }

    pub fn end(&mut self) -> &mut Self {
        self.fixed(0, self.width).align();
        let (at, width) = self.open.pop().unwrap();
        self.width = width;
        let words = (self.bits.len() - at) / 32 - 1;
        for bit in 0..32 {
            self.bits[at + bit] = words >> bit & 1 == 1;
        }
        self
    }

    pub fn record(&mut self, code: u64, operands: &[u64]) -> &mut Self {
        self.fixed(3, self.width)
            .vbr(code, 6)
            .vbr(operands.len() as u64, 6);
        for operand in operands {
            self.vbr(*operand, 6);
        }
        self
    }

    /// A record with text after its operands.
    pub fn text(&mut self, code: u64, operands: &[u64], text: &str) -> &mut Self {
        let text = text.bytes().map(u64::from);
        let all: Vec<u64> = operands.iter().copied().chain(text).collect();
        self.record(code, &all)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let bytes = self.bits.chunks(8);
        bytes
            .map(|bits| {
                bits.iter()
                    .rev()
                    .fold(0, |byte, bit| byte << 1 | u8::from(*bit))
            })
            .collect()
    }
}

/// Definitions as text, with `~` before weak ones.
fn listed(data: &[u8]) -> Result<String, Problem> {
    let all = definitions(data)?;
    let all = all.iter().map(|one| {
        let name = String::from_utf8_lossy(&one.name);
        format!(
            "{}{name}",
            if one.binding == Binding::Weak {
                "~"
            } else {
                ""
            }
        )
    });
    Ok(all.collect::<Vec<_>>().join(" "))
}

/// A module as LLVM 3 and 4 wrote it: names in a separate block, some with abbreviations from
/// `BLOCKINFO`.
pub fn old() -> Vec<u8> {
    let mut writer = Writer::new();
    writer.begin(block::MODULE, 3).record(1, &[1]);
    // Characters of 8, 7 and 6 bits, as LLVM's own `VST_ENTRY` ones: the number, then the name.
    writer.begin(0, 2).record(1, &[14]);
    for (encoding, width) in [(1, 8), (1, 7), (4, 0)] {
        writer.fixed(2, 2).vbr(4, 5).fixed(1, 1).vbr(1, 8);
        writer
            .fixed(0, 1)
            .fixed(2, 3)
            .vbr(8, 5)
            .fixed(0, 1)
            .fixed(3, 3);
        writer.fixed(0, 1).fixed(encoding, 3);
        if width != 0 {
            writer.vbr(width, 5);
        }
    }
    writer.end();
    writer
        .text(3, &[], "e-m:o-i64:64")
        .text(5, &[], "other")
        .text(5, &[], "llvm.metadata");
    // The type, constant, first value, linkage, alignment, section.
    writer
        .record(7, &[0, 0, 1, 0, 0, 0])
        .record(7, &[0, 0, 0, 0, 0, 0]);
    writer
        .record(7, &[0, 0, 1, 8, 0, 1])
        .record(7, &[0, 0, 1, 0, 0, 2]);
    // The type, calling convention, whether it is a prototype, linkage.
    writer
        .record(8, &[0, 0, 0, 4, 0])
        .record(8, &[0, 0, 1, 0, 0])
        .record(8, &[0, 0, 0, 3, 0]);
    // The type, the aliasee, linkage; the later form also has the address space.
    writer
        .record(9, &[0, 0, 16])
        .record(14, &[0, 0, 0, 0])
        .record(18, &[0, 0, 0, 0]);
    // A function with available_externally linkage.
    writer.record(8, &[0, 0, 0, 12, 0]);
    // A body, and an unknown block.
    writer
        .begin(12, 4)
        .text(1, &[], "skipped")
        .end()
        .begin(99, 2)
        .end();
    writer.begin(block::VALUE_SYMTAB, 4);
    for (number, name) in [
        (0, "first"),
        (1, "declared"),
        (2, "common"),
        (3, "words"),
        (10, "available"),
    ] {
        writer.text(1, &[number], name);
    }
    writer
        .text(3, &[4, 1234], "once")
        .text(2, &[0], "a block of code");
    let named = |writer: &mut Writer, abbreviation: u64, width: u32, number: u64, name: &[u64]| {
        writer
            .fixed(abbreviation, 4)
            .vbr(number, 8)
            .vbr(name.len() as u64, 6);
        for character in name {
            writer.fixed(*character, width);
        }
    };
    let wide = |text: &str| text.bytes().map(u64::from).collect::<Vec<_>>();
    named(&mut writer, 4, 8, 7, &wide("\u{1}w\u{e4}hle"));
    named(&mut writer, 5, 7, 8, &wide("alias"));
    // "ifunc" in characters of 6 bits.
    named(&mut writer, 6, 6, 9, &[8, 5, 20, 13, 2]);
    writer.end().end();
    writer.bytes()
}

#[test]
fn names_of_before_llvm_5() {
    let expected = "~_once _first ~_common ~w\u{e4}hle _alias _ifunc";
    assert_eq!(listed(&old()).unwrap(), expected);
    // Some tools pad to a multiple of four bytes.
    assert_eq!(listed(&[&old()[..], &[0; 4]].concat()).unwrap(), expected);
}

#[test]
fn truncation_is_an_error() {
    let whole = old();
    // The last block ends with 64 bits of ends.
    for length in (4..whole.len() - 8).step_by(4) {
        assert!(
            listed(&whole[..length]).is_err(),
            "{length} of {}",
            whole.len()
        );
    }
}

#[test]
fn wrappers() {
    let wrap = |at: u32, size: u32, inner: &[u8]| {
        let head = [0x0B17_C0DE, 0, at, size, 7].map(u32::to_le_bytes).concat();
        [&head[..], inner, b"more"].concat()
    };
    let inner = old();
    let size = inner.len() as u32;
    assert_eq!(listed(&wrap(20, size, &inner)), listed(&inner));
    let beyond = Problem::Truncated("wrapped bitcode");
    assert_eq!(listed(&wrap(20, size + 5, &inner)), Err(beyond.clone()));
    assert_eq!(
        listed(&wrap(u32::MAX, u32::MAX, &inner)),
        Err(beyond.clone())
    );
    assert_eq!(listed(&wrap(20, size, &inner)[..15]), Err(beyond));
    let none = Problem::Malformed("contents of the bitcode wrapper are not bitcode");
    assert_eq!(listed(&wrap(0, size, &inner)), Err(none));
}

/// A module with an abbreviation, a record that uses it, and further bits.
fn abbreviated(tail: u64, define: impl Fn(&mut Writer)) -> Result<String, Problem> {
    let mut writer = Writer::new();
    writer.begin(block::MODULE, 3).fixed(2, 3);
    define(&mut writer);
    writer.fixed(4, 3).fixed(tail, 64).fixed(tail, 64).align();
    listed(&writer.bytes())
}

#[test]
fn abbreviations_of_endless_records_are_errors() {
    let bad = || Err(Problem::Malformed("invalid bitcode abbreviation"));
    // An array of literals, of numbers of no bits; one of arrays; numbers of one bit, which never end.
    for element in [
        &[(1, 1), (9, 8)][..],
        &[(0, 1), (1, 3), (0, 5)],
        &[(0, 1), (3, 3)],
    ] {
        let found = abbreviated(0, |writer| {
            writer
                .vbr(3, 5)
                .fixed(1, 1)
                .vbr(0, 8)
                .fixed(0, 1)
                .fixed(3, 3);
            for &(number, width) in element {
                writer.fixed(number, width);
            }
        });
        assert_eq!(found, bad(), "{element:?}");
    }
    for (encoding, width) in [(2, 1), (2, 33), (1, 65), (0, 0), (6, 0)] {
        let found = abbreviated(0, |writer| {
            writer
                .vbr(1, 5)
                .fixed(0, 1)
                .fixed(encoding, 3)
                .vbr(width, 5);
        });
        assert_eq!(found, bad(), "{encoding} {width}");
    }
    // No operand, and more operands than any tool writes, which take no bits of a record.
    for count in [0, 65, u64::MAX] {
        let found = abbreviated(0, |writer| {
            writer.vbr(count, 5);
            for _ in 0..count.min(65) {
                writer.fixed(1, 1).vbr(0, 8);
            }
        });
        assert_eq!(found, bad(), "{count}");
    }
    // Blobs and arrays are last, and not first.
    for operands in [&[5, 5][..], &[3, 4], &[4, 5, 4], &[4, 3]] {
        let found = abbreviated(0, |writer| {
            writer.vbr(operands.len() as u64, 5);
            for operand in operands {
                writer.fixed(0, 1).fixed(*operand, 3);
            }
        });
        assert_eq!(found, bad(), "{operands:?}");
    }
}

#[test]
fn arrays_and_blobs_end_with_the_file() {
    for (last, count) in [(3, 3), (5, 2)] {
        let found = abbreviated(u64::MAX, |writer| {
            writer
                .vbr(count, 5)
                .fixed(1, 1)
                .vbr(0, 8)
                .fixed(0, 1)
                .fixed(last, 3);
            if last == 3 {
                writer.fixed(0, 1).fixed(1, 3).vbr(1, 5);
            }
        });
        assert!(found.is_err(), "{found:?}");
    }
}

#[test]
fn blocks_in_blocks_are_not_entered() {
    let mut writer = Writer::new();
    writer.begin(block::MODULE, 3);
    for _ in 0..100_000 {
        writer.begin(50, 3);
    }
    for _ in 0..100_001 {
        writer.end();
    }
    assert_eq!(listed(&writer.bytes()).unwrap(), "");
}

#[test]
fn text_that_is_not_kept_is_no_name() {
    let mut writer = Writer::new();
    writer
        .begin(block::MODULE, 3)
        .record(5, &vec![1; stream::KEPT])
        .end();
    let too_long = Problem::Malformed("bitcode name is too long");
    assert_eq!(listed(&writer.bytes()), Err(too_long));
    let mut writer = Writer::new();
    // Assembly.
    writer
        .begin(block::MODULE, 3)
        .record(4, &vec![1; stream::KEPT + 1])
        .end();
    assert_eq!(listed(&writer.bytes()).unwrap(), "");
}

/// Many symbols may share one long name.
#[test]
fn names_are_counted() {
    let mut writer = Writer::new();
    writer
        .begin(block::MODULE, 3)
        .record(1, &[2])
        .text(3, &[], "m:e");
    for _ in 0..3000 {
        writer.record(8, &[0, 100_000, 0, 0, 0, 0]);
    }
    writer.end().begin(block::STRTAB, 3);
    writer
        .fixed(2, 3)
        .vbr(2, 5)
        .fixed(1, 1)
        .vbr(1, 8)
        .fixed(0, 1)
        .fixed(5, 3);
    writer.fixed(4, 3).vbr(100_000, 6).align();
    for _ in 0..25_000 {
        writer.fixed(0x6161_6161, 32);
    }
    writer.end();
    let too_much = Problem::Malformed("names add up to too much text");
    assert_eq!(listed(&writer.bytes()), Err(too_much));
}

pub fn clang(target: &str, source: &str, flags: &[&str]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("module.bc");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/definitions/");
    let mut clang = Command::new("clang");
    clang.args([
        "-c",
        "-emit-llvm",
        "-ffreestanding",
        "-w",
        "-target",
        target,
    ]);
    clang.args(["-nogpulib", "-Qunused-arguments", "-fno-exceptions"]);
    let done = clang
        .args(flags)
        .arg(Path::new(file).join(source))
        .arg("-o")
        .arg(&output)
        .output();
    let done = done.expect("clang is installed");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    std::fs::read(output).unwrap()
}

/// The table only repeats contents of modules.
#[test]
fn modules_and_table_define_the_same() {
    let targets = [
        "x86_64-linux-gnu",
        "arm64-apple-macos11",
        "i686-pc-windows-msvc",
        "amdgcn-amd-amdhsa",
    ];
    for target in targets {
        for (source, flags) in [
            ("all.c", &["-O1", "-fcommon"][..]),
            ("all.cc", &["-O1", "-std=c++17", "-fno-threadsafe-statics"]),
        ] {
            let bytes = clang(target, source, flags);
            // Bitcode for Apple's targets has a wrapper.
            let file = BitcodeFile::read(unwrapped(&bytes).unwrap()).unwrap();
            let (mut own, mut listed) = (Collector::new(), Collector::new());
            file.definitions(&mut own).unwrap();
            let (table, texts) = file.table.unwrap();
            assert_eq!((table.modules, file.modules.len()), (1, 1));
            table.definitions(texts, &mut listed).unwrap();
            assert!(own.definitions.len() > 5);
            assert_eq!(own.definitions, listed.definitions, "{target} {source}");
        }
    }
}

/// Files may be concatenated with their tables; each table then describes a part.
#[test]
fn tables_of_some_modules_are_not_used() {
    let flags = ["-std=c++17", "-fno-threadsafe-statics"];
    let [one, two] = [("all.c", &[][..]), ("all.cc", &flags)]
        .map(|(source, flags)| clang("x86_64-linux-gnu", source, flags));
    let both = [&one[..], &two[4..]].concat();
    let expected = [listed(&one).unwrap(), listed(&two).unwrap()].join(" ");
    assert_eq!(listed(&both).unwrap(), expected);
}

/// Symbols of inline assembly are only in the table.
#[test]
fn without_a_table_assembly_is_not_seen() {
    let bytes = clang("x86_64-linux-gnu", "all.c", &["-DASSEMBLY"]);
    let file = BitcodeFile::read(&bytes).unwrap();
    let mut own = Collector::new();
    file.definitions(&mut own).unwrap();
    let all = definitions(&bytes).unwrap();
    let missing: Vec<_> = all
        .iter()
        .filter(|one| !own.definitions.contains(one))
        .collect();
    assert_eq!(missing.len(), 1);
    assert_eq!(&*missing[0].name, b"from_assembly");
}
