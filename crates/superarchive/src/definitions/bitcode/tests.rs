//! Bitcode written by clang, and by tests bit by bit. Needs clang.

use std::path::Path;
use std::process::Command;

use super::*;
use crate::definitions::collector::Binding;

/// Writes a bitstream, independently of [`Writer`].
#[derive(Default)]
pub struct TestWriter {
    bits: Vec<bool>,
    /// Offset of the length of each open block, and the width of the numbers outside it.
    open_blocks: Vec<(usize, u32)>,
    width: u32,
}

impl TestWriter {
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
        let continuation = 1 << (width - 1);
        while number >= continuation {
            self.fixed(number % continuation + continuation, width);
            number /= continuation;
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
        self.open_blocks.push((self.bits.len(), self.width));
        self.width = width;
        self.fixed(0, 32)
    }

    pub fn end(&mut self) -> &mut Self {
        self.fixed(0, self.width).align();
        let (length_offset, width) = self.open_blocks.pop().unwrap();
        self.width = width;
        let words = (self.bits.len() - length_offset) / 32 - 1;
        for bit in 0..32 {
            self.bits[length_offset + bit] = words >> bit & 1 == 1;
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
        let characters = text.bytes().map(u64::from);
        let operands: Vec<u64> = operands.iter().copied().chain(characters).collect();
        self.record(code, &operands)
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.bits
            .chunks(8)
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
    let names: Vec<String> = definitions(data)?
        .iter()
        .map(|definition| {
            let name = String::from_utf8_lossy(&definition.name);
            match definition.binding {
                Binding::Weak => format!("~{name}"),
                _ => name.into_owned(),
            }
        })
        .collect();
    Ok(names.join(" "))
}

/// A module as LLVM 3 and 4 wrote it: names in a separate block, some with abbreviations from
/// `BLOCKINFO`.
pub fn old_module() -> Vec<u8> {
    let mut writer = TestWriter::new();
    writer.begin(block::MODULE, 3).record(1, &[1]);
    old_name_abbreviations(&mut writer);
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
    old_names(&mut writer);
    writer.end();
    writer.bytes()
}

/// Writes the `BLOCKINFO` of a module of LLVM 3 and 4.
fn old_name_abbreviations(writer: &mut TestWriter) {
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
}

/// Writes the names of the values of a module of LLVM 3 and 4.
fn old_names(writer: &mut TestWriter) {
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
    abbreviated_name(writer, (4, 8), 7, "\u{1}w\u{e4}hle".bytes());
    abbreviated_name(writer, (5, 7), 8, "alias".bytes());
    // "ifunc" in characters of 6 bits.
    abbreviated_name(writer, (6, 6), 9, [8, 5, 20, 13, 2].into_iter());
    writer.end();
}

/// Writes the name of a value with an abbreviation: its id, and the width of its characters.
fn abbreviated_name(
    writer: &mut TestWriter,
    (abbreviation, width): (u64, u32),
    number: u64,
    characters: impl ExactSizeIterator<Item = u8>,
) {
    writer
        .fixed(abbreviation, 4)
        .vbr(number, 8)
        .vbr(characters.len() as u64, 6);
    for character in characters {
        writer.fixed(character.into(), width);
    }
}

#[test]
fn names_of_before_llvm_5() {
    let expected = "~_once _first ~_common ~w\u{e4}hle _alias _ifunc";
    assert_eq!(listed(&old_module()).unwrap(), expected);
    // Some tools pad to a multiple of four bytes.
    assert_eq!(
        listed(&[&old_module()[..], &[0; 4]].concat()).unwrap(),
        expected
    );
}

#[test]
fn truncation_is_an_error() {
    let module = old_module();
    // The last block ends with 64 bits of ends.
    for length in (4..module.len() - 8).step_by(4) {
        assert!(
            listed(&module[..length]).is_err(),
            "{length} of {}",
            module.len()
        );
    }
}

/// A module in a wrapper that gives this offset and size.
fn wrapped(offset: u32, size: u32, module: &[u8]) -> Vec<u8> {
    let header = [0x0B17_C0DE, 0, offset, size, 7]
        .map(u32::to_le_bytes)
        .concat();
    [&header[..], module, b"more"].concat()
}

#[test]
fn wrappers() {
    let module = old_module();
    let size = module.len() as u32;
    assert_eq!(listed(&wrapped(20, size, &module)), listed(&module));
    let truncated = Problem::Truncated("wrapped bitcode");
    assert_eq!(
        listed(&wrapped(20, size + 5, &module)),
        Err(truncated.clone())
    );
    assert_eq!(
        listed(&wrapped(u32::MAX, u32::MAX, &module)),
        Err(truncated.clone())
    );
    assert_eq!(listed(&wrapped(20, size, &module)[..15]), Err(truncated));
    let not_bitcode = Problem::Malformed("contents of the bitcode wrapper are not bitcode");
    assert_eq!(listed(&wrapped(0, size, &module)), Err(not_bitcode));
}

/// A module with an abbreviation, a record that uses it, and further bits.
fn abbreviated(tail: u64, define: impl Fn(&mut TestWriter)) -> Result<String, Problem> {
    let mut writer = TestWriter::new();
    writer.begin(block::MODULE, 3).fixed(2, 3);
    define(&mut writer);
    writer.fixed(4, 3).fixed(tail, 64).fixed(tail, 64).align();
    listed(&writer.bytes())
}

#[test]
fn abbreviations_of_endless_records_are_errors() {
    let invalid = Err(Problem::Malformed("invalid bitcode abbreviation"));
    // An array of literals, of numbers of no bits; one of arrays; numbers of one bit, which never end.
    for element in [
        &[(1, 1), (9, 8)][..],
        &[(0, 1), (1, 3), (0, 5)],
        &[(0, 1), (3, 3)],
    ] {
        let names = abbreviated(0, |writer| {
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
        assert_eq!(names, invalid, "{element:?}");
    }
    for (encoding, width) in [(2, 1), (2, 33), (1, 65), (0, 0), (6, 0)] {
        let names = abbreviated(0, |writer| {
            writer
                .vbr(1, 5)
                .fixed(0, 1)
                .fixed(encoding, 3)
                .vbr(width, 5);
        });
        assert_eq!(names, invalid, "{encoding} {width}");
    }
    // No operand, and more operands than any tool writes, which take no bits of a record.
    for count in [0, 65, u64::MAX] {
        let names = abbreviated(0, |writer| {
            writer.vbr(count, 5);
            for _ in 0..count.min(65) {
                writer.fixed(1, 1).vbr(0, 8);
            }
        });
        assert_eq!(names, invalid, "{count}");
    }
    // Blobs and arrays are last, and not first.
    for operands in [&[5, 5][..], &[3, 4], &[4, 5, 4], &[4, 3]] {
        let names = abbreviated(0, |writer| {
            writer.vbr(operands.len() as u64, 5);
            for operand in operands {
                writer.fixed(0, 1).fixed(*operand, 3);
            }
        });
        assert_eq!(names, invalid, "{operands:?}");
    }
}

#[test]
fn arrays_and_blobs_end_with_the_file() {
    for (encoding, count) in [(3, 3), (5, 2)] {
        let names = abbreviated(u64::MAX, |writer| {
            writer
                .vbr(count, 5)
                .fixed(1, 1)
                .vbr(0, 8)
                .fixed(0, 1)
                .fixed(encoding, 3);
            if encoding == 3 {
                writer.fixed(0, 1).fixed(1, 3).vbr(1, 5);
            }
        });
        assert!(names.is_err(), "{names:?}");
    }
}

#[test]
fn blocks_in_blocks_are_not_entered() {
    let mut writer = TestWriter::new();
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
    let mut writer = TestWriter::new();
    writer
        .begin(block::MODULE, 3)
        .record(5, &vec![1; stream::MAX_KEPT_OPERANDS])
        .end();
    let too_long = Problem::Malformed("bitcode name is too long");
    assert_eq!(listed(&writer.bytes()), Err(too_long));
    let mut writer = TestWriter::new();
    // Assembly.
    writer
        .begin(block::MODULE, 3)
        .record(4, &vec![1; stream::MAX_KEPT_OPERANDS + 1])
        .end();
    assert_eq!(listed(&writer.bytes()).unwrap(), "");
}

/// Many symbols may share one long name.
#[test]
fn names_are_counted() {
    let mut writer = TestWriter::new();
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
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/definitions/");
    let compilation = Command::new("clang")
        .args(["-c", "-emit-llvm", "-ffreestanding", "-w"])
        .args(["-nogpulib", "-Qunused-arguments", "-fno-exceptions"])
        .args(["-target", target])
        .args(flags)
        .arg(Path::new(sources).join(source))
        .arg("-o")
        .arg(&output)
        .output()
        .expect("clang is installed");
    assert!(
        compilation.status.success(),
        "{}",
        String::from_utf8_lossy(&compilation.stderr)
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
            let (mut in_module, mut in_table) = (Collector::new(), Collector::new());
            file.definitions(&mut in_module).unwrap();
            let (table, strings) = file.table.unwrap();
            assert_eq!((table.module_count, file.modules.len()), (1, 1));
            table.definitions(strings, &mut in_table).unwrap();
            assert!(in_module.definitions.len() > 5);
            assert_eq!(
                in_module.definitions, in_table.definitions,
                "{target} {source}"
            );
        }
    }
}

/// Files may be concatenated with their tables; each table then describes a part.
#[test]
fn tables_of_some_modules_are_not_used() {
    let flags = ["-std=c++17", "-fno-threadsafe-statics"];
    let c = clang("x86_64-linux-gnu", "all.c", &[]);
    let cpp = clang("x86_64-linux-gnu", "all.cc", &flags);
    let concatenated = [&c[..], &cpp[4..]].concat();
    let expected = [listed(&c).unwrap(), listed(&cpp).unwrap()].join(" ");
    assert_eq!(listed(&concatenated).unwrap(), expected);
}

/// Symbols of inline assembly are only in the table.
#[test]
fn without_a_table_assembly_is_not_seen() {
    let bytes = clang("x86_64-linux-gnu", "all.c", &["-DASSEMBLY"]);
    let file = BitcodeFile::read(&bytes).unwrap();
    let mut in_module = Collector::new();
    file.definitions(&mut in_module).unwrap();
    let mut definitions = definitions(&bytes).unwrap();
    definitions.retain(|definition| !in_module.definitions.contains(definition));
    assert_eq!(definitions.len(), 1);
    assert_eq!(&*definitions[0].name, b"from_assembly");
}
