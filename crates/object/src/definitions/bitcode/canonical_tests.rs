//! Canonical forms of bitcode as clang writes it, and as tests write it. That LLVM reads them as it
//! should is tested with its tools (`tests/tests/super_archive/canonical.rs`).

use super::codes::attribute::FUNCTION_INDEX;
use super::tests::{Writer, clang, old};
use super::{block, canonical, definitions};
use crate::superarchive::Left;

/// A record of texts, each with a zero behind it, behind its operands.
fn texts(writer: &mut Writer, code: u64, operands: &[u64], parts: &[(u64, &str)]) {
    let mut all = operands.to_vec();
    for (kind, text) in parts {
        all.push(*kind);
        all.extend(text.bytes().map(u64::from));
    }
    writer.record(code, &all);
}

fn blob(writer: &mut Writer, id: u64, bytes: &[u8]) {
    writer.begin(id, 3).fixed(2, 3).vbr(2, 5);
    writer.fixed(1, 1).vbr(1, 8).fixed(0, 1).fixed(5, 3);
    writer.fixed(4, 3).vbr(bytes.len() as u64, 6).align();
    for byte in bytes {
        writer.fixed((*byte).into(), 8);
    }
    writer.align();
    writer.end();
}

/// An abbreviation for the name of a source file: an array of numbers of so many bits.
fn source_name(writer: &mut Writer, bits: u64) {
    writer.fixed(2, 3).vbr(3, 5).fixed(1, 1).vbr(16, 8);
    writer
        .fixed(0, 1)
        .fixed(3, 3)
        .fixed(0, 1)
        .fixed(1, 3)
        .vbr(bits, 5);
}

/// Everything that goes, or changes, in one module; or that module without it.
fn module(whole: bool) -> Vec<u8> {
    let mut writer = Writer::new();
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
    if whole {
        w.record(38, &[9, 0]);
    }
    w.text(4, &[], "llvm.module.flags").record(10, &[0]);
    if whole {
        w.text(4, &[], "llvm.ident")
            .record(10, &[1])
            .record(39, &[4, 4]);
    }
    w.text(4, &[], "llvm.idents").record(10, &[2]);
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
fn what_tells_the_processor_and_the_compiler_goes() {
    let expected = module(false);
    assert_eq!(canonical(&module(true)), Ok(expected.clone()));
    assert_eq!(canonical(&expected), Ok(expected), "canonical already");
}

/// Of one source, compiled for two processors under names that are written in different ways.
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
            assert!(!has(b"LLVM14") && !has(b"gfx90"));
        }
    }
}

#[test]
fn what_is_not_known_stays_as_it_is() {
    let form = |bytes: &[u8]| match canonical(bytes) {
        Err(Left::Form(why)) => why,
        other => panic!("{other:?}"),
    };
    let flags = ["-std=c++17", "-fno-threadsafe-statics"];
    let one = clang("x86_64-linux-gnu", "all.c", &[]);
    let two = clang("x86_64-linux-gnu", "all.cc", &flags);
    assert_eq!(
        form(&[&one[..], &two[4..]].concat()),
        "it has several modules"
    );
    let apple = clang("arm64-apple-macos11", "all.c", &[]);
    assert_eq!(form(&apple), "it is in a wrapper");
    let thin = clang("x86_64-linux-gnu", "all.c", &["-flto=thin"]);
    assert_eq!(form(&thin), "it has a summary for ThinLTO");
    assert_eq!(form(&old()), "its names are where LLVM before 5 put them");

    // In a module: something that no version up to LLVM 19 writes.
    let unknown = |write: &dyn Fn(&mut Writer)| {
        let mut writer = Writer::new();
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
    let block = "its module has a block that is not known here";
    let record = "its module has a record that is not known here";
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
    let outside = "a name lies outside of it";
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
    assert_eq!(form(&bytes), "its abbreviations shorten too much");
    let attribute = |operands: &[u64]| {
        unknown(&|w| {
            w.begin(10, 3)
                .record(3, &[&[1, FUNCTION_INDEX], operands].concat())
                .end();
        })
    };
    for operands in [&[7, 1][..], &[0], &[1, 4], &[3, 97], &[4, 97, 0, 97], &[4]] {
        let why = "it has an attribute that is not known here";
        assert_eq!(form(&attribute(operands)), why, "{operands:?}");
    }
}

#[test]
fn damaged_modules_give_an_error_or_a_form_of_its_own() {
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
