//! Canonical forms of bitcode written by clang and by tests. `tests/tests/super_archive/canonical.rs`
//! tests with LLVM's tools that LLVM reads them correctly.

use super::codes::attribute::FUNCTION_INDEX;
use super::tests::{TestWriter, clang, old_module};
use super::{block, canonical, definitions};
use crate::definitions::not_canonical::NotCanonical;

/// Writes a record of operands, followed by zero-terminated texts.
fn texts(writer: &mut TestWriter, code: u64, operands: &[u64], parts: &[(u64, &str)]) {
    let mut all = operands.to_vec();
    for (kind, text) in parts {
        all.push(*kind);
        all.extend(text.bytes().map(u64::from));
    }
    writer.record(code, &all);
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

/// Writes the texts of a module's metadata as LLVM does: their sizes, then all characters.
fn metadata_texts(writer: &mut TestWriter, texts: &[&str]) {
    writer.fixed(2, 3).vbr(4, 5).fixed(1, 1).vbr(35, 8);
    for _ in ["how many", "where the letters begin"] {
        writer.fixed(0, 1).fixed(2, 3).vbr(6, 5);
    }
    writer.fixed(0, 1).fixed(5, 3);
    let mut sizes = TestWriter::default();
    for text in texts {
        sizes.vbr(text.len() as u64, 6);
    }
    sizes.align();
    let sizes = sizes.bytes();
    let all = [&sizes[..], texts.concat().as_bytes()].concat();
    writer.fixed(4, 3).vbr(texts.len() as u64, 6);
    writer
        .vbr(sizes.len() as u64, 6)
        .vbr(all.len() as u64, 6)
        .align();
    for byte in all {
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

/// A module with all parts that the canonical form drops or changes; or that module without them.
fn module(whole: bool) -> Vec<u8> {
    let mut writer = TestWriter::new();
    let w = &mut writer;
    w.begin(13, if whole { 5 } else { 3 });
    if whole {
        w.text(1, &[], "LLVM19.1.7");
    }
    w.record(2, &[0]).end();
    w.begin(block::MODULE, 3).record(1, &[2]);
    w.begin(10, 3);
    if whole {
        texts(
            w,
            3,
            &[1, FUNCTION_INDEX],
            &[(4, "target-cpu\0gfx900\0"), (4, "tune-cpu\0gfx900\0")],
        );
        let all = [
            (3, "target-cpus\0"),
            (4, "target-features\0\0"),
            (3, "target-cpu\0"),
            (0, "\u{12}"),
        ];
        texts(w, 3, &[2, FUNCTION_INDEX, 1, 4, 8, 6, 5, 4, 5, 7], &all);
    } else {
        texts(
            w,
            3,
            &[2, FUNCTION_INDEX, 1, 4, 8, 6, 5, 4, 5, 7],
            &[(3, "target-cpus\0"), (0, "\u{12}")],
        );
    }
    texts(w, 3, &[3, 1], &[(4, "target-cpu\0gfx900\0")]);
    w.end();
    w.begin(9, 3);
    let lists: [&[u64]; 3] = if whole {
        [&[1], &[1, 3], &[2]]
    } else {
        [&[], &[3], &[2]]
    };
    for list in lists {
        w.record(2, list);
    }
    w.end();
    w.text(2, &[], "amdgcn-amd-amdhsa");
    source_name(w, if whole { 7 } else { 8 });
    if whole {
        w.fixed(4, 3).vbr(3, 6);
        "a.c".bytes().for_each(|byte| {
            w.fixed(byte.into(), 7);
        });
    } else {
        w.record(16, &[]);
    }
    w.record(8, &[2, 1, 0, 0, 0, 0, 1]);
    if whole {
        w.record(13, &[77]).record(17, &[1, 2, 3, 4, 5]);
    }
    w.begin(15, 3);
    // Five sizes take 30 bits, unless one exceeds 31.
    let compiler = "clang version 19.1.7 (of one who builds it)";
    let compiler = if whole { compiler } else { "" };
    metadata_texts(w, &["a", compiler, "b", "c", "d"]);
    if whole {
        w.record(38, &[9, 0]);
    }
    // Texts begin at 0, nodes at 5; nodes refer to a number plus one.
    w.record(3, &[1]).record(3, &[2]).record(3, &[3]);
    w.record(5, &[4, 0, 5]);
    w.text(4, &[], "llvm.module.flags").record(10, &[5]);
    if whole {
        w.text(4, &[], "llvm.ident")
            .record(10, &[6, 6])
            .record(39, &[4, 4]);
    }
    w.text(4, &[], "llvm.idents").record(10, &[7, 8]);
    w.end();
    if whole {
        w.begin(14, 4).record(3, &[0, 12]).end();
    }
    // A function, which is copied.
    w.begin(12, 4).record(1, &[1]).end();
    w.end();
    if whole {
        blob(w, block::SYMTAB, b"no table");
        blob(w, block::STRTAB, b"..fa.camdgcn");
    } else {
        blob(w, block::STRTAB, b"..f");
    }
    writer.bytes()
}

#[test]
fn processor_and_compiler_are_removed() {
    let expected = module(false);
    assert_eq!(canonical(&module(true)), Ok(expected.clone()));
    assert_eq!(canonical(&expected), Ok(expected), "canonical already");
}

/// Modules of one source, compiled for two processors under file names with different encodings.
#[test]
fn modules_for_two_processors_become_one() {
    let target = "amdgcn-amd-amdhsa";
    let dir = tempfile::tempdir().unwrap();
    let text = "float sin1(float); static int n; float cos1(float x) { return sin1(x + n++); }";
    for source in ["c", "cc"] {
        for more in [&["-O0"][..], &["-O1"]] {
            let [one, two] = [("gfx900", "a"), ("gfx906", "Ü")].map(|(cpu, name)| {
                let path = dir.path().join(name).with_extension(source);
                std::fs::write(&path, text).unwrap();
                let cpu = format!("-mcpu={cpu}");
                let flags = [&[&cpu[..]], more].concat();
                clang(target, path.to_str().unwrap(), &flags)
            });
            assert_ne!(one, two);
            let form = canonical(&one).unwrap();
            assert_eq!(canonical(&two).as_ref(), Ok(&form), "{source} {more:?}");
            assert_eq!(canonical(&form).as_ref(), Ok(&form));
            assert_eq!(definitions(&form), definitions(&one));
            let has = |text: &[u8]| form.windows(text.len()).any(|part| part == text);
            assert!(!has(b"LLVM14") && !has(b"gfx90") && !has(b"clang version"));
        }
    }
}

/// Metadata or a function also uses the text of `llvm.ident`, or may use it.
#[test]
fn texts_that_others_name_stay() {
    let has_text = |write: &dyn Fn(&mut TestWriter)| {
        let mut writer = TestWriter::new();
        let w = &mut writer;
        w.begin(block::MODULE, 3).record(1, &[2]);
        // The types of metadata, void, and a function with a number as parameter.
        w.begin(17, 3)
            .record(1, &[3])
            .record(16, &[])
            .record(2, &[]);
        w.record(7, &[32]).record(21, &[0, 1, 2]).end();
        w.begin(15, 3);
        metadata_texts(w, &["compiler", "other"]);
        w.record(3, &[1])
            .text(4, &[], "llvm.ident")
            .record(10, &[2]);
        write(w);
        w.end().end();
        blob(w, block::STRTAB, b"");
        let form = canonical(&writer.bytes()).unwrap();
        assert_eq!(canonical(&form).as_ref(), Ok(&form));
        form.windows(8).any(|part| part == b"compiler")
    };
    assert!(!has_text(&|_| {}));
    // In a function: its metadata, and attachments to an instruction and to the function.
    let in_function = |block: u64, code: u64, operands: &[u64]| {
        has_text(&|w| {
            w.end().begin(12, 3).begin(block, 3);
            w.record(code, operands).end();
        })
    };
    assert!(!in_function(15, 3, &[2, 0]), "the other text");
    assert!(in_function(15, 3, &[1, 0]));
    assert!(in_function(15, 3, &[3]));
    assert!(in_function(15, 46, &[0, 0]), "what is not known");
    assert!(
        !in_function(16, 11, &[2, 2, 5]),
        "an instruction and a kind"
    );
    assert!(in_function(16, 11, &[9, 7, 2]));
    assert!(in_function(16, 11, &[7, 5, 7, 2]));
    let of_module = |code: u64, operands: &[u64]| {
        has_text(&|w| {
            w.record(code, operands);
        })
    };
    // A second node of that text, a node of the node, and an attachment to a variable.
    assert!(of_module(5, &[1]));
    assert!(of_module(3, &[2, 3]));
    assert!(!of_module(36, &[2, 2, 9]));
    assert!(of_module(36, &[0, 7, 2]));
    assert!(of_module(20, &[0; 8]), "debug information");
    assert!(has_text(&|w| {
        w.text(4, &[], "llvm.other").record(10, &[2]);
    }));
    // A function that takes metadata.
    assert!(has_text(&|w| {
        w.end().begin(17, 3).record(1, &[2]);
        w.record(16, &[]).record(21, &[0, 1, 0]);
    }));
}

/// Sizes that exceed the characters, or that are missing.
#[test]
fn texts_of_damaged_metadata() {
    let form = |operands: [u64; 2], bytes: &[u8]| {
        let mut writer = TestWriter::new();
        let w = &mut writer;
        w.begin(block::MODULE, 3).record(1, &[2]).begin(15, 3);
        w.fixed(2, 3).vbr(4, 5).fixed(1, 1).vbr(35, 8);
        w.fixed(0, 1).fixed(2, 3).vbr(6, 5);
        w.fixed(0, 1).fixed(1, 3).vbr(4, 5);
        w.fixed(0, 1).fixed(5, 3);
        w.fixed(4, 3).vbr(operands[0], 6).fixed(operands[1], 4);
        w.vbr(bytes.len() as u64, 6).align();
        for byte in bytes {
            w.fixed((*byte).into(), 8);
        }
        w.align();
        w.record(3, &[1]).text(4, &[], "llvm.ident");
        w.record(10, &[operands[0]]).end().end();
        blob(w, block::STRTAB, b"");
        canonical(&writer.bytes())
    };
    assert!(form([1, 4], &[1, 0, 0, 0, b'x']).is_ok());
    assert!(form([1, 4], &[2, 0, 0, 0, b'x']).is_err(), "too long");
    assert!(form([1, 9], &[1, 0, 0, 0, b'x']).is_err(), "behind the end");
    assert!(form([9, 4], &[1, 0, 0, 0, b'x']).is_err(), "no more sizes");
    let many = 1 << 60;
    assert!(form([many, 4], &[0, 0, 0, 0, b'x']).is_err());
    // Sizes are padded to a whole word, and four bits cannot contain 16.
    let room = NotCanonical::UnsupportedForm("abbreviations have no room for a change");
    assert_eq!(form([20, 15], &[0; 15]), Err(room));
}

#[test]
fn unknown_forms_have_no_canonical_form() {
    let form = |bytes: &[u8]| match canonical(bytes) {
        Err(NotCanonical::UnsupportedForm(why)) => why,
        other => panic!("{other:?}"),
    };
    let flags = ["-std=c++17", "-fno-threadsafe-statics"];
    let one = clang("x86_64-linux-gnu", "all.c", &[]);
    let two = clang("x86_64-linux-gnu", "all.cc", &flags);
    assert_eq!(
        form(&[&one[..], &two[4..]].concat()),
        "several modules in one file"
    );
    let apple = clang("arm64-apple-macos11", "all.c", &[]);
    assert_eq!(form(&apple), "module is in a wrapper");
    let thin = clang("x86_64-linux-gnu", "all.c", &["-flto=thin"]);
    assert_eq!(form(&thin), "summary for ThinLTO");
    assert_eq!(form(&old_module()), "symbol names in the form of LLVM before 5");

    // In a module: blocks and records that no version up to LLVM 19 writes.
    let unknown = |write: &dyn Fn(&mut TestWriter)| {
        let mut writer = TestWriter::new();
        writer.begin(block::MODULE, 3).record(1, &[2]);
        write(&mut writer);
        writer.end();
        blob(&mut writer, block::STRTAB, b"name");
        writer.bytes()
    };
    assert!(canonical(&unknown(&|_| {})).is_ok());
    let of_record = |code: u64, operands: &[u64]| {
        unknown(&|w| {
            w.record(code, operands);
        })
    };
    let block = "unknown block in the module";
    let record = "unknown record in the module";
    let bytes = unknown(&|w| {
        w.begin(77, 3).end();
    });
    assert_eq!(form(&bytes), block);
    let bytes = unknown(&|w| {
        w.begin(10, 3).begin(11, 3).end().end();
    });
    assert_eq!(form(&bytes), block);
    assert_eq!(form(&of_record(77, &[])), record);
    assert_eq!(form(&of_record(7, &[0; 21])), record);
    assert_eq!(form(&of_record(8, &[u64::MAX, 2])), record);
    let outside = "symbol name is outside the string table";
    assert_eq!(form(&of_record(8, &[3, 2])), outside);
    // Groups of sixty texts in three bits each.
    let bytes = unknown(&|w| {
        w.begin(10, 3).fixed(2, 3).vbr(61, 5);
        let text = "target-cpu\0x\0".bytes().map(u64::from);
        let head = [3, 1, FUNCTION_INDEX, 4].into_iter().chain(text);
        for operand in head.chain([0, u64::MAX].into_iter().cycle()).take(61) {
            w.fixed(1, 1).vbr(operand, 8);
        }
        for _ in 0..5000 {
            w.fixed(4, 3);
        }
        w.end();
    });
    assert_eq!(form(&bytes), "abbreviations shorten too much");
    let attribute = |operands: &[u64]| {
        unknown(&|w| {
            w.begin(10, 3)
                .record(3, &[&[1, FUNCTION_INDEX], operands].concat())
                .end();
        })
    };
    for operands in [&[7, 1][..], &[0], &[1, 4], &[3, 97], &[4, 97, 0, 97], &[4]] {
        let why = "unknown attribute";
        assert_eq!(form(&attribute(operands)), why, "{operands:?}");
    }
}

#[test]
fn damaged_modules_result_in_an_error_or_a_canonical_form() {
    let whole = module(true);
    let small = whole.len() * 2;
    for size in 0..whole.len() {
        assert!(canonical(&whole[..size]).is_err(), "{size}");
    }
    for at in 0..whole.len() * 8 {
        let mut changed = whole.clone();
        changed[at / 8] ^= 1 << (at % 8);
        if let Ok(form) = canonical(&changed) {
            assert!(form.len() <= small, "{at}");
            assert_eq!(canonical(&form), Ok(form), "{at}");
        }
    }
}
