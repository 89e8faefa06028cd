//! Canonical forms of bitcode written by clang and by tests. `tests/tests/super_archive/canonical.rs`
//! tests with LLVM's tools that LLVM reads them correctly.

use std::path::Path;

use super::codes::attribute::FUNCTION_INDEX;
use super::tests::{TestWriter, clang, old_module};
use super::{block, canonical, definitions};
use crate::definitions::not_canonical::NotCanonical;

/// Writes a group of attributes: operands, then attributes that are a kind and zero-terminated texts.
fn attribute_group(writer: &mut TestWriter, operands: &[u64], attributes: &[(u64, &str)]) {
    let mut operands = operands.to_vec();
    for (kind, text) in attributes {
        operands.push(*kind);
        operands.extend(text.bytes().map(u64::from));
    }
    writer.record(3, &operands);
}

fn blob(writer: &mut TestWriter, id: u64, bytes: &[u8]) {
    writer.begin(id, 3).fixed(2, 3).vbr(2, 5);
    writer.fixed(1, 1).vbr(1, 8).fixed(0, 1).fixed(5, 3);
    writer.fixed(4, 3).vbr(bytes.len() as u64, 6).align();
    for byte in bytes {
        writer.fixed((*byte).into(), 8);
    }
    writer.align();
    writer.end();
}

/// Writes the strings of a module's metadata as LLVM does: their sizes, then all characters.
fn metadata_strings(writer: &mut TestWriter, strings: &[&str]) {
    writer.fixed(2, 3).vbr(4, 5).fixed(1, 1).vbr(35, 8);
    for _ in ["how many", "where the letters begin"] {
        writer.fixed(0, 1).fixed(2, 3).vbr(6, 5);
    }
    writer.fixed(0, 1).fixed(5, 3);
    let mut sizes = TestWriter::default();
    for string in strings {
        sizes.vbr(string.len() as u64, 6);
    }
    sizes.align();
    let sizes = sizes.bytes();
    let blob = [&sizes[..], strings.concat().as_bytes()].concat();
    writer.fixed(4, 3).vbr(strings.len() as u64, 6);
    writer
        .vbr(sizes.len() as u64, 6)
        .vbr(blob.len() as u64, 6)
        .align();
    for byte in blob {
        writer.fixed(byte.into(), 8);
    }
    writer.align();
}

/// Defines an abbreviation for the name of a source file: an array of numbers of `bits` bits.
fn source_name(writer: &mut TestWriter, bits: u64) {
    writer.fixed(2, 3).vbr(3, 5).fixed(1, 1).vbr(16, 8);
    writer
        .fixed(0, 1)
        .fixed(3, 3)
        .fixed(0, 1)
        .fixed(1, 3)
        .vbr(bits, 5);
}

/// A module with all parts that the canonical form drops or changes, or its canonical form.
fn module(is_canonical: bool) -> Vec<u8> {
    let writer = &mut TestWriter::new();
    writer.begin(13, if is_canonical { 3 } else { 5 });
    if !is_canonical {
        writer.text(1, &[], "LLVM19.1.7");
    }
    writer.record(2, &[0]).end();
    writer.begin(block::MODULE, 3).record(1, &[2]);
    attributes(writer, is_canonical);
    writer.text(2, &[], "amdgcn-amd-amdhsa");
    source_name(writer, if is_canonical { 8 } else { 7 });
    if is_canonical {
        writer.record(16, &[]);
    } else {
        writer.fixed(4, 3).vbr(3, 6);
        for byte in *b"a.c" {
            writer.fixed(byte.into(), 7);
        }
    }
    writer.record(8, &[2, 1, 0, 0, 0, 0, 1]);
    if !is_canonical {
        writer.record(13, &[77]).record(17, &[1, 2, 3, 4, 5]);
    }
    metadata(writer, is_canonical);
    if !is_canonical {
        writer.begin(14, 4).record(3, &[0, 12]).end();
    }
    // A function, which is copied.
    writer.begin(12, 4).record(1, &[1]).end();
    writer.end();
    if is_canonical {
        blob(writer, block::STRTAB, b"..f");
    } else {
        blob(writer, block::SYMTAB, b"no table");
        blob(writer, block::STRTAB, b"..fa.camdgcn");
    }
    writer.bytes()
}

/// Writes the groups of attributes of that module, and its lists of groups.
fn attributes(writer: &mut TestWriter, is_canonical: bool) {
    const KEPT: [u64; 10] = [2, FUNCTION_INDEX, 1, 4, 8, 6, 5, 4, 5, 7];
    writer.begin(10, 3);
    if is_canonical {
        attribute_group(writer, &KEPT, &[(3, "target-cpus\0"), (0, "\u{12}")]);
    } else {
        attribute_group(
            writer,
            &[1, FUNCTION_INDEX],
            &[(4, "target-cpu\0gfx900\0"), (4, "tune-cpu\0gfx900\0")],
        );
        attribute_group(
            writer,
            &KEPT,
            &[
                (3, "target-cpus\0"),
                (4, "target-features\0\0"),
                (3, "target-cpu\0"),
                (0, "\u{12}"),
            ],
        );
    }
    attribute_group(writer, &[3, 1], &[(4, "target-cpu\0gfx900\0")]);
    writer.end();
    writer.begin(9, 3);
    let lists: [&[u64]; 3] = if is_canonical {
        [&[], &[3], &[2]]
    } else {
        [&[1], &[1, 3], &[2]]
    };
    for list in lists {
        writer.record(2, list);
    }
    writer.end();
}

/// Writes the metadata of that module.
fn metadata(writer: &mut TestWriter, is_canonical: bool) {
    writer.begin(15, 3);
    // Five sizes take 30 bits, unless one exceeds 31.
    let compiler = if is_canonical {
        ""
    } else {
        "clang version 19.1.7 (of one who builds it)"
    };
    metadata_strings(writer, &["a", compiler, "b", "c", "d"]);
    if !is_canonical {
        writer.record(38, &[9, 0]);
    }
    // Strings begin at 0, nodes at 5; nodes refer to a number plus one.
    writer.record(3, &[1]).record(3, &[2]).record(3, &[3]);
    writer.record(5, &[4, 0, 5]);
    writer.text(4, &[], "llvm.module.flags").record(10, &[5]);
    if !is_canonical {
        writer
            .text(4, &[], "llvm.ident")
            .record(10, &[6, 6])
            .record(39, &[4, 4]);
    }
    writer.text(4, &[], "llvm.idents").record(10, &[7, 8]);
    writer.end();
}

#[test]
fn processor_and_compiler_are_removed() {
    let expected = module(true);
    assert_eq!(canonical(&module(false)), Ok(expected.clone()));
    assert_eq!(canonical(&expected), Ok(expected), "canonical already");
}

/// Modules of one source, compiled for two processors under file names with different encodings.
#[test]
fn modules_for_two_processors_become_one() {
    let dir = tempfile::tempdir().unwrap();
    for extension in ["c", "cc"] {
        for optimization in ["-O0", "-O1"] {
            let ascii_path = dir.path().join("a").with_extension(extension);
            let gfx900 = trigonometry(&ascii_path, "-mcpu=gfx900", optimization);
            let umlaut_path = dir.path().join("Ü").with_extension(extension);
            let gfx906 = trigonometry(&umlaut_path, "-mcpu=gfx906", optimization);
            assert_ne!(gfx900, gfx906);
            let form = canonical(&gfx900).unwrap();
            assert_eq!(
                canonical(&gfx906).as_ref(),
                Ok(&form),
                "{extension} {optimization}"
            );
            assert_eq!(canonical(&form).as_ref(), Ok(&form));
            assert_eq!(definitions(&form), definitions(&gfx900));
            for text in ["LLVM14", "gfx90", "clang version"] {
                assert!(!contains(&form, text), "{text}");
            }
        }
    }
}

/// A module of a source file that is written to `path`.
fn trigonometry(path: &Path, cpu: &str, optimization: &str) -> Vec<u8> {
    let source = "float sin1(float); static int n; float cos1(float x) { return sin1(x + n++); }";
    std::fs::write(path, source).unwrap();
    let path = path.to_str().unwrap();
    clang("amdgcn-amd-amdhsa", path, &[cpu, optimization])
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// Whether the canonical form has the compiler's name, which `llvm.ident` names, if a writer adds to the
/// metadata of the module.
fn keeps_compiler(add: impl Fn(&mut TestWriter)) -> bool {
    let writer = &mut TestWriter::new();
    writer.begin(block::MODULE, 3).record(1, &[2]);
    // The types of metadata, void, and a function with a number as parameter.
    writer
        .begin(17, 3)
        .record(1, &[3])
        .record(16, &[])
        .record(2, &[]);
    writer.record(7, &[32]).record(21, &[0, 1, 2]).end();
    writer.begin(15, 3);
    metadata_strings(writer, &["compiler", "other"]);
    writer
        .record(3, &[1])
        .text(4, &[], "llvm.ident")
        .record(10, &[2]);
    add(writer);
    writer.end().end();
    blob(writer, block::STRTAB, b"");
    let form = canonical(&writer.bytes()).unwrap();
    assert_eq!(canonical(&form).as_ref(), Ok(&form));
    contains(&form, "compiler")
}

/// The same with a record in a block of a function.
fn keeps_compiler_with_function(block: u64, code: u64, operands: &[u64]) -> bool {
    keeps_compiler(|writer| {
        writer.end().begin(12, 3).begin(block, 3);
        writer.record(code, operands).end();
    })
}

/// The same with a record of the module's metadata.
fn keeps_compiler_with_metadata(code: u64, operands: &[u64]) -> bool {
    keeps_compiler(|writer| {
        writer.record(code, operands);
    })
}

/// Metadata or a function also uses the text of `llvm.ident`, or may use it.
#[test]
fn texts_that_others_name_stay() {
    assert!(!keeps_compiler(|_| {}));
    // In a function: its metadata, and attachments to an instruction and to the function.
    assert!(
        !keeps_compiler_with_function(15, 3, &[2, 0]),
        "the other string"
    );
    assert!(keeps_compiler_with_function(15, 3, &[1, 0]));
    assert!(keeps_compiler_with_function(15, 3, &[3]));
    assert!(
        keeps_compiler_with_function(15, 46, &[0, 0]),
        "an unknown record"
    );
    assert!(
        !keeps_compiler_with_function(16, 11, &[2, 2, 5]),
        "an instruction and a kind"
    );
    assert!(keeps_compiler_with_function(16, 11, &[9, 7, 2]));
    assert!(keeps_compiler_with_function(16, 11, &[7, 5, 7, 2]));
    // A second node of that text, a node of the node, and an attachment to a variable.
    assert!(keeps_compiler_with_metadata(5, &[1]));
    assert!(keeps_compiler_with_metadata(3, &[2, 3]));
    assert!(!keeps_compiler_with_metadata(36, &[2, 2, 9]));
    assert!(keeps_compiler_with_metadata(36, &[0, 7, 2]));
    assert!(
        keeps_compiler_with_metadata(20, &[0; 8]),
        "debug information"
    );
    assert!(keeps_compiler(|writer| {
        writer.text(4, &[], "llvm.other").record(10, &[2]);
    }));
    // A function that takes metadata.
    assert!(keeps_compiler(|writer| {
        writer.end().begin(17, 3).record(1, &[2]);
        writer.record(16, &[]).record(21, &[0, 1, 0]);
    }));
}

/// Canonical form of a module whose metadata has a record of strings, with these operands and this blob.
fn canonical_with_strings(
    [count, offset]: [u64; 2],
    strings: &[u8],
) -> Result<Vec<u8>, NotCanonical> {
    let writer = &mut TestWriter::new();
    writer.begin(block::MODULE, 3).record(1, &[2]).begin(15, 3);
    writer.fixed(2, 3).vbr(4, 5).fixed(1, 1).vbr(35, 8);
    writer.fixed(0, 1).fixed(2, 3).vbr(6, 5);
    writer.fixed(0, 1).fixed(1, 3).vbr(4, 5);
    writer.fixed(0, 1).fixed(5, 3);
    writer.fixed(4, 3).vbr(count, 6).fixed(offset, 4);
    writer.vbr(strings.len() as u64, 6).align();
    for byte in strings {
        writer.fixed((*byte).into(), 8);
    }
    writer.align();
    writer.record(3, &[1]).text(4, &[], "llvm.ident");
    writer.record(10, &[count]).end().end();
    blob(writer, block::STRTAB, b"");
    canonical(&writer.bytes())
}

/// Sizes that exceed the characters, or that are missing.
#[test]
fn texts_of_damaged_metadata() {
    assert!(canonical_with_strings([1, 4], &[1, 0, 0, 0, b'x']).is_ok());
    assert!(
        canonical_with_strings([1, 4], &[2, 0, 0, 0, b'x']).is_err(),
        "too long"
    );
    assert!(
        canonical_with_strings([1, 9], &[1, 0, 0, 0, b'x']).is_err(),
        "behind the end"
    );
    assert!(
        canonical_with_strings([9, 4], &[1, 0, 0, 0, b'x']).is_err(),
        "no more sizes"
    );
    assert!(canonical_with_strings([1 << 60, 4], &[0, 0, 0, 0, b'x']).is_err());
    // Sizes are padded to a whole word, and four bits cannot contain 16.
    let no_room = NotCanonical::UnsupportedForm("abbreviations have no room for a change");
    assert_eq!(canonical_with_strings([20, 15], &[0; 15]), Err(no_room));
}

/// Why a module has no canonical form.
fn unsupported_form(module: &[u8]) -> &'static str {
    match canonical(module) {
        Err(NotCanonical::UnsupportedForm(form)) => form,
        result => panic!("{result:?}"),
    }
}

/// A module to which a writer adds.
fn module_with(add: impl Fn(&mut TestWriter)) -> Vec<u8> {
    let writer = &mut TestWriter::new();
    writer.begin(block::MODULE, 3).record(1, &[2]);
    add(writer);
    writer.end();
    blob(writer, block::STRTAB, b"name");
    writer.bytes()
}

fn module_with_record(code: u64, operands: &[u64]) -> Vec<u8> {
    module_with(|writer| {
        writer.record(code, operands);
    })
}

#[test]
fn unknown_forms_have_no_canonical_form() {
    let flags = ["-std=c++17", "-fno-threadsafe-statics"];
    let c = clang("x86_64-linux-gnu", "all.c", &[]);
    let cpp = clang("x86_64-linux-gnu", "all.cc", &flags);
    assert_eq!(
        unsupported_form(&[&c[..], &cpp[4..]].concat()),
        "several modules in one file"
    );
    let apple = clang("arm64-apple-macos11", "all.c", &[]);
    assert_eq!(unsupported_form(&apple), "module is in a wrapper");
    let thin = clang("x86_64-linux-gnu", "all.c", &["-flto=thin"]);
    assert_eq!(unsupported_form(&thin), "summary for ThinLTO");
    assert_eq!(
        unsupported_form(&old_module()),
        "symbol names in the form of LLVM before 5"
    );

    // In a module: blocks and records that no version up to LLVM 19 writes.
    assert!(canonical(&module_with(|_| {})).is_ok());
    let unknown_block = "unknown block in the module";
    let module = module_with(|writer| {
        writer.begin(77, 3).end();
    });
    assert_eq!(unsupported_form(&module), unknown_block);
    let module = module_with(|writer| {
        writer.begin(10, 3).begin(11, 3).end().end();
    });
    assert_eq!(unsupported_form(&module), unknown_block);
    for module in [
        module_with_record(77, &[]),
        module_with_record(7, &[0; 21]),
        module_with_record(8, &[u64::MAX, 2]),
    ] {
        assert_eq!(unsupported_form(&module), "unknown record in the module");
    }
    assert_eq!(
        unsupported_form(&module_with_record(8, &[3, 2])),
        "symbol name is outside the string table"
    );
}

#[test]
fn unknown_forms_of_attributes_have_no_canonical_form() {
    // Groups of sixty texts in three bits each.
    let module = module_with(|writer| {
        writer.begin(10, 3).fixed(2, 3).vbr(61, 5);
        let text = "target-cpu\0x\0".bytes().map(u64::from);
        let head = [3, 1, FUNCTION_INDEX, 4].into_iter().chain(text);
        for operand in head.chain([0, u64::MAX].into_iter().cycle()).take(61) {
            writer.fixed(1, 1).vbr(operand, 8);
        }
        for _ in 0..5000 {
            writer.fixed(4, 3);
        }
        writer.end();
    });
    assert_eq!(unsupported_form(&module), "abbreviations shorten too much");
    for attribute in [&[7, 1][..], &[0], &[1, 4], &[3, 97], &[4, 97, 0, 97], &[4]] {
        let module = module_with(|writer| {
            let group = [&[1, FUNCTION_INDEX], attribute].concat();
            writer.begin(10, 3).record(3, &group).end();
        });
        assert_eq!(
            unsupported_form(&module),
            "unknown attribute",
            "{attribute:?}"
        );
    }
}

#[test]
fn damaged_modules_result_in_an_error_or_a_canonical_form() {
    let module = module(false);
    for size in 0..module.len() {
        assert!(canonical(&module[..size]).is_err(), "{size}");
    }
    for bit in 0..module.len() * 8 {
        let mut damaged = module.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(form) = canonical(&damaged) {
            assert!(form.len() <= 2 * module.len(), "{bit}");
            assert_eq!(canonical(&form), Ok(form), "{bit}");
        }
    }
}
