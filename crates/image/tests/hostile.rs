//! Damaged and hostile files result in an error or a list: never a panic, never an endless loop.

#[path = "support/damage.rs"]
mod damage;
#[path = "support/library.rs"]
mod library;

use std::process::Command;
use std::sync::OnceLock;

use damage::{changes, overwritten as damaged};
use gpustub_image::fuzz::{archive as check_archive, check, edit as check_edit};
use gpustub_image::{ElfImage, read_image, read_object};
use library::{KINDS, build, build_importer, run};
use proptest::prelude::*;

/// Notes of the type that names opened libraries, and one of another owner.
const NOTES: &str = r#"
#define NOTE(name, owner, text) \
    __attribute__((used, section(".note.dlopen"), aligned(4))) static const struct { \
        unsigned sizes[2], type; char owner_[4], text_[4]; \
    } name = {{4, sizeof text}, 0x407c0c0a, owner, text};
NOTE(note_1, "FDO", "[1]")
NOTE(note_0, "GNU", "[0]")
NOTE(note_2, "FDO", "[2]")
"#;

/// A real library, small enough that most of its bytes are headers and tables.
fn small() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let flags = ["-DVERSIONED", "-DIFUNC", "-Wl,--hash-style=both", "-s"];
        let source = format!("{KINDS}{NOTES}");
        let bytes = std::fs::read(build(directory.path(), &["cc"], &source, &flags)).unwrap();
        let image = ElfImage::parse(&bytes).unwrap();
        let facts = read_image(&image, &|_, _| true, &|_| ()).unwrap();
        let mut notes = facts.dlopen_notes;
        notes.sort(); // gcc reverses them
        assert_eq!(notes, ["[1]", "[2]"]);
        assert!(check(&bytes), "undamaged, it is readable");
        bytes
    })
}

/// A library that imports functions with and without version of two libraries.
fn importer() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let bytes = std::fs::read(build_importer(directory.path(), &["-s"])).unwrap();
        assert!(check_edit(&bytes), "undamaged, it can be edited");
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn overwritten(changes in changes()) {
        check(&damaged(small(), &changes));
    }

    #[test]
    fn cut_and_glued(source in any::<prop::sample::Index>(), target in any::<prop::sample::Index>(), length in 0_usize..4096) {
        let mut bytes = small().to_vec();
        let (source, target) = (source.index(bytes.len()), target.index(bytes.len()));
        let piece = bytes[source..(source + length).min(bytes.len())].to_vec();
        bytes.splice(target..target, piece);
        check(&bytes);
    }

    #[test]
    fn overwritten_archive(changes in changes()) {
        check_archive(&damaged(archive(), &changes));
    }

    #[test]
    fn cut_archive(length in any::<prop::sample::Index>()) {
        check_archive(&archive()[..length.index(archive().len())]);
    }

    #[test]
    fn anything_after_the_magic(tail in prop::collection::vec(any::<u8>(), 0..512)) {
        let mut bytes = b"\x7fELF".to_vec();
        bytes.extend(tail);
        check(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn overwritten_and_edited(changes in changes()) {
        check_edit(&damaged(importer(), &changes));
    }

    #[test]
    fn cut_and_edited(length in any::<prop::sample::Index>()) {
        check_edit(&importer()[..length.index(importer().len())]);
    }
}

/// Sets each byte of the headers and of the dynamic section in turn to extreme values.
#[test]
fn each_byte_at_its_extremes() {
    let mut bytes = small().to_vec();
    for offset in 0..bytes.len().min(4096) {
        let original = bytes[offset];
        for byte in [0, 1, 0x7f, 0xff, original ^ 1, original.wrapping_add(1)] {
            bytes[offset] = byte;
            check(&bytes);
        }
        bytes[offset] = original;
    }
}

#[test]
fn edited_with_each_byte_at_its_extremes() {
    let mut bytes = importer().to_vec();
    for offset in 0..1024 {
        let original = bytes[offset];
        for byte in [0, 0xff, original ^ 1, original.wrapping_add(1)] {
            bytes[offset] = byte;
            check_edit(&bytes);
        }
        bytes[offset] = original;
    }
}

/// A static library with two small object files.
fn archive() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(
            path("one.c"),
            "int two(void); int one(void) { return two(); }",
        )
        .unwrap();
        std::fs::write(path("two.c"), "int two(void) { return 2; }").unwrap();
        for name in ["one", "two"] {
            let mut cc = Command::new("cc");
            cc.args(["-c", "-o"]).arg(path(&format!("{name}.o")));
            run(cc.arg(path(&format!("{name}.c"))));
        }
        let mut ar = Command::new("ar");
        run(ar.arg("rc").args(["x.a", "one.o", "two.o"].map(path)));
        let bytes = std::fs::read(path("x.a")).unwrap();
        assert_eq!(check_archive(&bytes), 2, "undamaged, it is readable");
        bytes
    })
}

#[test]
fn objects_of_an_archive_have_names() {
    let mut objects = Vec::new();
    for member in gpustub_image::archive_members(archive()).unwrap() {
        let member = member.unwrap();
        let object = ElfImage::parse(member.data).unwrap();
        let facts = read_object(&object, &|name, _| name != "absent")
            .unwrap()
            .unwrap();
        let imports: Vec<_> = facts.imports.into_iter().map(|i| i.name).collect();
        let name = String::from_utf8_lossy(member.name).into_owned();
        objects.push((name, imports, facts.defines));
    }
    let [(first, imports, first_defines), (second, _, second_defines)] = &objects[..] else {
        panic!("{objects:?}");
    };
    assert_eq!((&first[..], &second[..]), ("one.o", "two.o"));
    assert_eq!(imports.iter().filter(|name| *name == "two").count(), 1);
    assert_eq!(
        (&first_defines[..], &second_defines[..]),
        (&["one".into()][..], &["two".into()][..])
    );
}

/// Names that share suffixes could expand a small file to gigabytes.
#[test]
fn names_are_counted_before_they_are_kept() {
    // A symbol table of 64-byte ELF with 40000 symbols that all start in one long string.
    let (count, name_length) = (40_000_usize, 60_000_usize);
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(64, 0);
    let word = |bytes: &mut Vec<u8>, offset: usize, value: u64, size: usize| {
        bytes[offset..offset + size].copy_from_slice(&value.to_le_bytes()[..size]);
    };
    word(&mut bytes, 16, 1, 2); // ET_REL
    word(&mut bytes, 18, 62, 2); // EM_X86_64
    word(&mut bytes, 20, 1, 4);
    word(&mut bytes, 52, 64, 2); // e_ehsize
    word(&mut bytes, 58, 64, 2); // e_shentsize
    word(&mut bytes, 60, 3, 2); // e_shnum
    word(&mut bytes, 62, 2, 2); // e_shstrndx
    let symbols = bytes.len();
    for _ in 0..count {
        let symbol = bytes.len();
        bytes.resize(symbol + 24, 0);
        word(&mut bytes, symbol, 1, 4); // st_name
        bytes[symbol + 4] = 0x10; // STB_GLOBAL, STT_NOTYPE
    }
    let strings = bytes.len();
    bytes.push(0);
    bytes.resize(strings + name_length, b'a');
    bytes.push(0);
    let sections = bytes.len();
    bytes.resize(sections + 3 * 64, 0);
    for (index, kind, offset, size, link, entry_size) in [
        (1, 2, symbols, count * 24, 2, 24),     // SHT_SYMTAB
        (2, 3, strings, name_length + 2, 0, 0), // SHT_STRTAB
    ] {
        let section = sections + index * 64;
        word(&mut bytes, section + 4, kind, 4);
        word(&mut bytes, section + 24, offset as u64, 8);
        word(&mut bytes, section + 32, size as u64, 8);
        word(&mut bytes, section + 40, link, 4);
        word(&mut bytes, section + 56, entry_size, 8);
    }
    word(&mut bytes, 40, sections as u64, 8); // e_shoff
    let object = ElfImage::parse(&bytes).unwrap();
    let error = read_object(&object, &|_, _| true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file is malformed: names add up to too much text"
    );
}
