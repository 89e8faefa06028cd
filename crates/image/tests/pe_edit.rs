//! Edits of PE images: tables of edited DLLs as llvm-readobj reads them, what an edit changes, and what is refused.

#[path = "support/dll.rs"]
mod dll;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use dll::{MACHINES, build_dll, lines, readobj_lines};
use gpustub_image::edit::{EditProblem, EditRequest, ImportKind, Replaced};
use gpustub_image::{EditablePe, PeImage};

const LONG: &str = "gpustub_package_1_0.dll";

/// A DLL of lld for x86-64, built once.
fn original() -> Vec<u8> {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let build = || {
        let directory = tempfile::tempdir().unwrap();
        std::fs::read(build_dll(directory.path(), MACHINES[0])).unwrap()
    };
    BYTES.get_or_init(build).clone()
}

fn request(stub: &str, dlls: &[&str]) -> EditRequest {
    let library = Replaced {
        needed: dlls.iter().map(ToString::to_string).collect(),
        ..Replaced::default()
    };
    EditRequest {
        stub: stub.to_owned(),
        libraries: vec![library],
        ..EditRequest::default()
    }
}

fn edited(bytes: &[u8], request: &EditRequest) -> Result<Vec<u8>, EditProblem> {
    let patch = EditablePe::new(bytes)?.plan(request)?;
    let mut edited = Vec::new();
    patch.write(bytes, &mut edited).unwrap();
    Ok(edited)
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

fn set(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

/// Offset of the optional header.
fn optional(bytes: &[u8]) -> usize {
    word(bytes, 60) as usize + 24
}

/// Offset of a data directory.
fn directory(bytes: &[u8], index: usize) -> usize {
    optional(bytes) + 112 + 8 * index
}

/// Offsets of the section headers.
fn sections(bytes: &[u8]) -> Vec<usize> {
    let file_header = optional(bytes) - 20;
    let count = usize::from(u16::from_le_bytes([
        bytes[file_header + 2],
        bytes[file_header + 3],
    ]));
    (0..count)
        .map(|index| optional(bytes) + 240 + 40 * index)
        .collect()
}

/// Writes over the padding of all sections, so that a new name needs a section of its own.
fn fill_padding(bytes: &mut [u8]) {
    for section in sections(bytes) {
        let [size, file_size, start] =
            [8, 16, 20].map(|field| word(bytes, section + field) as usize);
        if size < file_size {
            bytes[start + size..start + file_size].fill(1);
        }
    }
}

/// Lines of llvm-readobj with the stub in place of these DLLs.
fn renamed(lines: BTreeSet<String>, stub: &str, dlls: &[&str]) -> BTreeSet<String> {
    lines
        .into_iter()
        .map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [kind, dll, symbol] if dlls.contains(&dll) => format!("{kind} {stub} {symbol}"),
            _ => line,
        })
        .collect()
}

fn readobj(directory: &Path, bytes: &[u8]) -> BTreeSet<String> {
    let file = directory.join("edited.dll");
    std::fs::write(&file, bytes).unwrap();
    readobj_lines(&file)
}

#[test]
#[ignore = "needs clang, lld and llvm 19: ./tests/run"]
fn names_of_dlls_change_and_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let all = ["nvcuda.dll", "CUDART64_12.dll", "lazy.dll"];
    let mut filled = original();
    fill_padding(&mut filled);
    for (bytes, stub, dlls, added_sections) in [
        (original(), "gpustub.dll", &all[..], 0),
        (original(), "short.dll", &["lazy.dll", "nvcuda.dll"], 0),
        (original(), LONG, &all, 0),
        (original(), LONG, &["lazy.dll"], 0),
        (filled, LONG, &all, 1),
    ] {
        let edited = edited(&bytes, &request(stub, dlls)).unwrap();
        let before = readobj(scratch.path(), &bytes);
        let after = readobj(scratch.path(), &edited);
        assert_eq!(after, renamed(before, stub, dlls), "{stub} {dlls:?}");
        assert_eq!(after, lines(&PeImage::parse(&edited).unwrap()));
        assert_eq!(
            sections(&edited).len(),
            sections(&bytes).len() + added_sections
        );
        // Addresses of names, a name, the size of a section; of a new section its header and fields that count it.
        let changed: Vec<usize> = (0..bytes.len())
            .filter(|&i| bytes[i] != edited[i])
            .collect();
        assert!(
            changed.len() <= 4 * dlls.len() + stub.len() + 4 + 60 * added_sections,
            "{changed:?}"
        );
        let file_alignment = word(&bytes, optional(&bytes) + 36) as usize;
        assert_eq!(edited.len(), bytes.len() + added_sections * file_alignment);
        // The edit of an edited image: the stub is a DLL like others.
        let back = self::edited(&edited, &request("nvcuda.dll", &[stub])).unwrap();
        let expected = renamed(after, "nvcuda.dll", &[stub]);
        assert_eq!(readobj(scratch.path(), &back), expected);
    }
}

#[test]
#[ignore = "needs clang, lld and llvm 19: ./tests/run"]
fn inspections_have_numbers_and_delayed_imports() {
    let bytes = original();
    let editable = EditablePe::new(&bytes).unwrap();
    let inspection = editable.inspection();
    assert_eq!(inspection.delayed, ["lazy.dll"]);
    let mut needed = inspection.needed.clone();
    needed.sort();
    assert_eq!(needed, ["CUDART64_12.dll", "nvcuda.dll"]);
    let numbers: Vec<_> = (inspection.imports.iter())
        .filter(|import| import.kind == ImportKind::Ordinal)
        .map(|import| (import.file.as_deref(), &*import.name))
        .collect();
    assert_eq!(numbers, [(Some("CUDART64_12.dll"), "7")]);
}

/// Linkers of MSVC and mingw-w64 write checksums, lld does not. That of mingw-w64 is a reference of its own.
#[test]
#[ignore = "needs mingw-w64: ./tests/run"]
fn checksums_as_of_mingw() {
    let directory = tempfile::tempdir().unwrap();
    let gcc = |arguments: &[&str]| {
        let mut gcc = std::process::Command::new("x86_64-w64-mingw32-gcc");
        gcc.current_dir(directory.path()).args(arguments);
        assert!(gcc.status().unwrap().success(), "{gcc:?}");
    };
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("cudart64_12.c", "int cudaFree(void *p) { return 0; }");
    write(
        "a.c",
        "int cudaFree(void *); int main(void) { return cudaFree(0); }",
    );
    gcc(&["-shared", "-o", "cudart64_12.dll", "cudart64_12.c"]);
    gcc(&["-o", "a.exe", "a.c", "cudart64_12.dll"]);
    let bytes = std::fs::read(directory.path().join("a.exe")).unwrap();
    let checksum = |bytes: &[u8]| word(bytes, optional(bytes) + 64);
    let edited_once = edited(&bytes, &request(LONG, &["cudart64_12.dll"])).unwrap();
    assert_ne!(checksum(&bytes), checksum(&edited_once));
    // The edit back to the former name, in a copy without one, results in the linker's checksum.
    let same = edited(&bytes, &request("cudart64_12.dll", &["cudart64_12.dll"])).unwrap();
    assert_eq!(same, bytes);
    // Symbols and their strings follow the sections of an image that is not stripped.
    let mut filled = bytes.clone();
    fill_padding(&mut filled);
    let edited = edited(&filled, &request(LONG, &["cudart64_12.dll"])).unwrap();
    assert_eq!(sections(&edited).len(), sections(&filled).len() + 1);
}

#[test]
#[ignore = "needs clang, lld and llvm 19: ./tests/run"]
fn a_signature_is_removed_on_request_only() {
    let bytes = original();
    let mut signed = bytes.clone();
    let security = directory(&bytes, 4);
    set(&mut signed, security, &(bytes.len() as u32).to_le_bytes());
    set(&mut signed, security + 4, &16_u32.to_le_bytes());
    signed.extend([16, 0, 0, 0, 0, 2, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let mut request = request(LONG, &["nvcuda.dll"]);
    assert_eq!(edited(&signed, &request), Err(EditProblem::Signed));
    request.removes_signature = true;
    assert_eq!(edited(&signed, &request), edited(&bytes, &request));
    // IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY
    let characteristics = optional(&bytes) + 70;
    signed[characteristics] |= 0x80;
    assert_eq!(edited(&signed, &request), Err(EditProblem::MustBeSigned));
}

#[test]
#[ignore = "needs clang, lld and llvm 19: ./tests/run"]
fn images_that_cannot_be_edited() {
    let bytes = original();
    let request = request(LONG, &["nvcuda.dll"]);
    for machine in &MACHINES[1..] {
        let directory = tempfile::tempdir().unwrap();
        let bytes = std::fs::read(build_dll(directory.path(), *machine)).unwrap();
        let problem = EditProblem::Machine(machine[0].to_owned());
        assert_eq!(edited(&bytes, &request), Err(problem));
    }
    let mut bound = bytes.clone();
    set(&mut bound, directory(&bytes, 11), &[1]);
    assert_eq!(edited(&bound, &request), Err(EditProblem::Bound));
    let other = self::request(LONG, &["cublas64_12.dll"]);
    assert_eq!(edited(&bytes, &other), Err(EditProblem::NotNeeded));
    let forwarded = self::request(LONG, &["nvcuda.dll", "ntdll.dll"]);
    let problem = EditProblem::Forwarder("NTDLL.RtlAllocateHeap".to_owned());
    assert_eq!(edited(&bytes, &forwarded), Err(problem));
    // Trailing data, such as an archive, is in the way of a section only.
    let mut trailing = bytes.clone();
    trailing.extend(b"PK\x05\x06");
    assert!(
        edited(&trailing, &request)
            .unwrap()
            .ends_with(b"PK\x05\x06")
    );
    fill_padding(&mut trailing);
    let problem = EditProblem::Layout("other data follows its sections");
    assert_eq!(edited(&trailing, &request), Err(problem));
    let mut full = bytes.clone();
    fill_padding(&mut full);
    let end = sections(&full).last().unwrap() + 40;
    full[end] = 1;
    let problem = EditProblem::Layout("no room for a section header");
    assert_eq!(edited(&full, &request), Err(problem));
    // SizeOfImage: a section behind a gap, and in the last one.
    for pages in [1, -1] {
        let mut image = bytes.clone();
        fill_padding(&mut image);
        let field = optional(&image) + 56;
        let size = word(&image, field).wrapping_add_signed(pages * 0x1000);
        set(&mut image, field, &size.to_le_bytes());
        let problem = EditProblem::Layout("the image does not end with its last section");
        assert_eq!(edited(&image, &request), Err(problem), "{pages}");
    }
}

/// A load configuration in the padding of the first section, of which only the size and one field are set.
#[test]
#[ignore = "needs clang, lld and llvm 19: ./tests/run"]
fn directories_of_the_search_are_compared() {
    let bytes = original();
    for (field, value, problem) in [
        (0x4e, 0x800, Some(EditProblem::SearchFlags(0x800))),
        (0x4e, 0x1000 | 0x100, None),
        // CHPEMetadataPointer
        (0xc8, 1, Some(EditProblem::Machine("arm64ec".to_owned()))),
    ] {
        let mut bytes = bytes.clone();
        let section = *sections(&bytes).first().unwrap();
        let [address, file_size, start] = [12, 16, 20].map(|field| word(&bytes, section + field));
        let place = (file_size - 0x100) as usize;
        let config = start as usize + place;
        assert!(
            bytes[config..config + 0x100]
                .iter()
                .all(|byte| *byte == 0 || *byte == 0xcc)
        );
        bytes[config..config + 0x100].fill(0);
        set(&mut bytes, config, &0x100_u32.to_le_bytes());
        set(&mut bytes, config + field, &u16::to_le_bytes(value));
        let directory = directory(&bytes, 10);
        set(
            &mut bytes,
            directory,
            &(address + place as u32).to_le_bytes(),
        );
        let result = edited(&bytes, &request(LONG, &["nvcuda.dll"]));
        assert_eq!(result.err(), problem, "{field:#x} {value:#x}");
    }
}
