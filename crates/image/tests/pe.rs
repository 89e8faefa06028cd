//! PE images: tables of linked DLLs, compared with llvm-readobj, and damaged copies of them.

#[path = "support/damage.rs"]
mod damage;
#[path = "support/dll.rs"]
mod dll;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use damage::{changes, overwritten};
use dll::{MACHINES, build_dll, lines, readobj_lines};
use gpustub_image::fuzz::{archive, check, edit};
use gpustub_image::{
    ImageFormat, PeImage, Problem, SymbolRequirements, is_pe, read_dll_symbols, read_exports_file,
    read_symbols,
};
use proptest::test_runner::{Config, TestRunner};

#[test]
#[ignore = "needs clang, lld and llvm 19: ./tests/run"]
fn linked_dlls_as_in_llvm_readobj() {
    for machine in MACHINES {
        let directory = tempfile::tempdir().unwrap();
        let file = build_dll(directory.path(), machine);
        let bytes = fs::read(&file).unwrap();
        let image = PeImage::parse(&bytes).unwrap();
        assert_eq!((&*image.machine, image.is_dll), (machine[0], true));
        assert_eq!(image.name, Some("x.dll"));
        let ours = lines(&image);
        assert_eq!(ours, readobj_lines(&file), "{machine:?}");
        // lld takes a forwarder for a function, whose name has a prefix on x86.
        let prefix = if machine[0] == "x86" { "_" } else { "" };
        for line in [
            "import nvcuda.dll there",
            "import CUDART64_12.dll 7",
            "delay lazy.dll lazy",
            "export 9 ",
            &format!("export 11 alloc -> {prefix}NTDLL.RtlAllocateHeap"),
        ] {
            assert!(ours.contains(line), "no `{line}` in {ours:#?}");
        }
        let list = read_dll_symbols(&bytes, SymbolRequirements::default()).unwrap();
        assert_eq!(
            list.to_text().lines().skip(1).collect::<Vec<_>>(),
            [
                "@soname x.dll",
                &format!("@machine {}", machine[0]),
                "alloc",
                "f",
                "g2",
                "table kind=object",
            ]
        );
        let required = SymbolRequirements {
            expect_machine: Some("s390x"),
            ..Default::default()
        };
        let error = read_dll_symbols(&bytes, required).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("the file is built for {}, not for s390x", machine[0])
        );
        // The reader of ELF files.
        let error = read_symbols(&bytes, SymbolRequirements::default()).unwrap_err();
        assert!(
            error.to_string().contains("a Windows (PE) image"),
            "{error}"
        );
    }
}

/// The functions and data of `acme64_3.dll`, in the syntax of module definitions.
const ACME: &str = "LIBRARY acme64_3.dll\nEXPORTS\nacmeOpen\nacmeTable DATA\nacmeByNumber @7 NONAME\n\"?h@@YAXXZ\"\nacmeClose\n";

/// Import libraries of Microsoft's form and of GNU dlltool, with the tools that write them.
const IMPORT_LIBRARIES: [(&str, &[&str], &str); 2] = [
    ("llvm-dlltool-19", &["-m", "i386:x86-64"], "acme.lib"),
    ("x86_64-w64-mingw32-dlltool", &[], "libacme.dll.a"),
];

fn import_library(directory: &Path, tool: &str, options: &[&str], file: &str) -> PathBuf {
    let mut command = Command::new(tool);
    command.current_dir(directory).args(options);
    let status = command.args(["-d", "acme.def", "-l", file]).status();
    assert!(status.unwrap().success(), "{tool}");
    directory.join(file)
}

fn import_libraries(directory: &Path) -> Vec<PathBuf> {
    fs::write(directory.join("acme.def"), ACME).unwrap();
    let build = |(tool, options, file)| import_library(directory, tool, options, file);
    Vec::from(IMPORT_LIBRARIES.map(build))
}

#[test]
#[ignore = "needs mingw-w64 and llvm 19: ./tests/run"]
fn import_libraries_name_the_functions_of_a_dll() {
    let directory = tempfile::tempdir().unwrap();
    let files = import_libraries(directory.path());
    for file in &files {
        let exports = read_exports_file(file, SymbolRequirements::default()).unwrap();
        assert_eq!(exports.format, ImageFormat::Pe);
        assert_eq!(exports.decorated, ["?h@@YAXXZ"], "{}", file.display());
        assert_eq!(exports.unnamed, 1, "{}", file.display());
        assert_eq!(
            exports.list.to_text(),
            "@gpustub-symbols 1\n@soname acme64_3.dll\n@machine x86_64\nacmeClose\nacmeOpen\n\
             acmeTable kind=object\n",
            "{}",
            file.display()
        );
        // Its pointers, by another reader.
        let nm = Command::new("llvm-nm-19").arg(file).output().unwrap();
        let nm = String::from_utf8(nm.stdout).unwrap();
        for symbol in &exports.list.symbols {
            assert!(nm.contains(&format!(" __imp_{}\n", symbol.name)), "{nm}");
        }
        assert_eq!(nm.matches(" __imp_").count(), 5, "{nm}");
    }

    // One of two DLLs.
    let other = directory.path().join("other.lib");
    fs::write(
        directory.path().join("other.def"),
        "LIBRARY other.dll\nEXPORTS\notherOpen\n",
    )
    .unwrap();
    for (tool, arguments) in [
        (
            "llvm-dlltool-19",
            &["-m", "i386:x86-64", "-d", "other.def", "-l", "other.lib"][..],
        ),
        ("llvm-lib-19", &["/out:both.lib", "acme.lib", "other.lib"]),
    ] {
        let mut command = Command::new(tool);
        let output = command
            .current_dir(directory.path())
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let both = directory.path().join("both.lib");
    let error = |file: &Path| read_exports_file(file, SymbolRequirements::default()).unwrap_err();
    assert!(read_exports_file(&other, SymbolRequirements::default()).is_ok());
    let message = error(&both).to_string();
    assert!(
        message.ends_with("is the import library of several DLLs: acme64_3.dll, other.dll"),
        "{message}"
    );

    fs::write(
        directory.path().join("acme.def"),
        ACME.replace("acme64_3.dll", "\"Acme Vendor.dll\""),
    )
    .unwrap();
    for (tool, options, file) in IMPORT_LIBRARIES {
        import_library(directory.path(), tool, options, "vendor.lib");
        let error = error(&directory.path().join("vendor.lib"));
        let problem = Problem::DllName("Acme Vendor.dll".to_owned());
        assert_eq!(*error.problem(), problem, "{file}");
    }

    // Damaged copies.
    for file in &files {
        let mut bytes = fs::read(file).unwrap();
        for offset in 0..bytes.len() {
            let original = bytes[offset];
            for byte in [0, 1, 0x7f, 0xff] {
                bytes[offset] = byte;
                archive(&bytes);
            }
            bytes[offset] = original;
        }
    }
}

/// A small DLL, of which most bytes are headers and tables.
fn small() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let bytes = fs::read(build_dll(directory.path(), MACHINES[0])).unwrap();
        assert!(check(&bytes), "undamaged, it is readable");
        assert!(edit(&bytes), "undamaged, it can be edited");
        bytes
    })
}

#[test]
#[ignore = "needs clang, lld and llvm 19: ./tests/run"]
fn every_shorter_copy_is_rejected() {
    // Padding to the alignment of the file is not read.
    let end = small().iter().rposition(|&byte| byte != 0).unwrap();
    for length in 0..=end {
        let copy = &small()[..length];
        assert!(!check(copy), "{length} bytes");
        if is_pe(copy) {
            let error = PeImage::parse(copy).unwrap_err().to_string();
            assert!(error.contains("is truncated"), "{length} bytes: {error}");
        }
    }
}

#[test]
#[ignore = "needs clang, lld and llvm 19: ./tests/run"]
fn each_byte_at_its_extremes() {
    let mut bytes = small().to_vec();
    let mut readable = 0;
    for offset in 0..bytes.len() {
        let original = bytes[offset];
        for byte in [0, 1, 0x7f, 0xff, original ^ 1, original ^ 0x80] {
            bytes[offset] = byte;
            readable += usize::from(check(&bytes));
            edit(&bytes);
        }
        bytes[offset] = original;
    }
    // Code and padding may change, and tables must not.
    let all = 6 * bytes.len();
    assert!((all / 2..all).contains(&readable), "{readable} of {all}");
}

/// Names that are part of the import tables, and change with them.
#[test]
#[ignore = "needs clang, lld and llvm 19: ./tests/run"]
fn each_field_with_addresses_of_import_tables() {
    let mut bytes = small().to_vec();
    let optional = u32::from_le_bytes(*bytes[60..].first_chunk().unwrap()) as usize + 24;
    // The directories of imports and delayed imports, and the addresses of names in their first entries.
    let names = [(1, 12), (13, 4)].map(|(directory, name)| {
        let directory = optional + 112 + 8 * directory;
        u32::from_le_bytes(*bytes[directory..].first_chunk().unwrap()) + name
    });
    let mut edits = 0;
    for offset in 0..bytes.len() - 4 {
        let original: [u8; 4] = *bytes[offset..].first_chunk().unwrap();
        // A symbol's name follows a number of two bytes.
        for address in names.into_iter().flat_map(|name| name - 3..=name) {
            bytes[offset..offset + 4].copy_from_slice(&address.to_le_bytes());
            edits += usize::from(edit(&bytes));
        }
        bytes[offset..offset + 4].copy_from_slice(&original);
    }
    assert!(edits > 0, "no copy can be edited");
}

#[test]
#[ignore = "needs clang, lld and llvm 19: ./tests/run"]
fn overwritten_copies() {
    let mut runner = TestRunner::new(Config {
        cases: 4096,
        failure_persistence: None,
        ..Config::default()
    });
    let result = runner.run(&changes(), |changes| {
        let bytes = overwritten(small(), &changes);
        check(&bytes);
        edit(&bytes);
        Ok(())
    });
    result.unwrap();
}

/// A header of 64 bits with one section of `data` at the address 0x1000, and the directories of exports and imports there.
fn image(data: &[u8], exports: u32, imports: u32) -> Vec<u8> {
    let mut bytes = vec![0; 0x200];
    let mut put = |offset: usize, value: &[u8]| {
        bytes[offset..offset + value.len()].copy_from_slice(value);
    };
    let size = (data.len() as u32).to_le_bytes();
    put(0, b"MZ");
    put(60, &[64]);
    put(64, b"PE\0\0\x64\x86\x01\0");
    put(64 + 20, &240_u16.to_le_bytes()); // SizeOfOptionalHeader
    put(88, &0x20b_u16.to_le_bytes()); // PE32+
    put(88 + 108, &[16]); // NumberOfRvaAndSizes
    put(88 + 112, &exports.to_le_bytes());
    put(88 + 116, &size);
    put(88 + 120, &imports.to_le_bytes());
    let section = 88 + 240;
    put(section + 8, &size);
    put(section + 12, &0x1000_u32.to_le_bytes());
    put(section + 16, &size);
    put(section + 20, &0x200_u32.to_le_bytes());
    bytes.extend(data);
    bytes
}

/// Tables that share their bytes could expand a small file to gigabytes.
#[test]
fn overlapping_tables_are_counted_before_they_are_kept() {
    // Descriptors of imports, all with one table of names, whose entries are the text of one name.
    let mut data = Vec::new();
    let (names, text) = (0x1000 + 20 * 10_001_u32, 0x1000 + 300_000_u32);
    for _ in 0..10_000 {
        for word in [names, 0, 0, text, names] {
            data.extend(word.to_le_bytes());
        }
    }
    data.resize(20 * 10_001, 0);
    for _ in 0..10_000 {
        data.extend(u64::from(text).to_le_bytes());
    }
    data.resize(300_000, 0);
    data.extend([b'a'; 60_000]);
    data.push(0);
    let error = PeImage::parse(&image(&data, 0, 0x1000)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file is malformed: names add up to too much text"
    );
    // The same with names of one letter.
    data[300_003..].fill(0);
    let error = PeImage::parse(&image(&data, 0, 0x1000)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file is malformed: tables have more entries than bytes"
    );
}

#[test]
fn damaged_headers_and_tables_have_reasons() {
    let valid = image(&[0; 64], 0, 0x1000);
    assert!(PeImage::parse(&valid).unwrap().imports.is_empty());
    let change = |offset: usize, value: u8| {
        let mut bytes = valid.clone();
        bytes[offset] = value;
        bytes
    };
    for (bytes, reason) in [
        (valid[..80].to_vec(), "is truncated: incomplete PE headers"),
        (
            valid[..0x210].to_vec(),
            "is truncated: incomplete last section",
        ),
        (
            change(89, 9),
            "is malformed: optional header is of no known kind",
        ),
        (
            change(64, b'N'),
            "is a Windows (PE) image, not a shared library",
        ),
        (change(71, 0xff), "is truncated: incomplete PE headers"),
        (
            image(&[0; 64], 0, 0x5000),
            "is malformed: address of a table is outside the file",
        ),
        (
            image(&[1; 64], 0, 0x1000),
            "is malformed: address of a table is outside the file",
        ),
        (
            image(&[0xff; 64], 0x1000, 0),
            "is malformed: export table is damaged",
        ),
        (image(&[0; 8], 0, 0x1000), "is malformed: table has no end"),
    ] {
        let error = PeImage::parse(&bytes).unwrap_err().to_string();
        assert_eq!(error, format!("the file {reason}"));
    }
    let error = read_dll_symbols(&valid, SymbolRequirements::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file is a PE image and exports no dynamic symbols"
    );
}
