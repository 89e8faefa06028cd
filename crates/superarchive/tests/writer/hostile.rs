//! Damaged super-archives in every container result in an error or the written contents, never a panic.

use std::sync::OnceLock;

use crate::damage::{changes, overwritten};
use crate::requests::{Contents, KINDS, Parts, object};
use gpustub_archive::hash::hash_bytes;
use gpustub_archive::{Error, MAGIC, Part, SuperArchive};
use gpustub_superarchive::Plan;
use gpustub_superarchive::fuzz::super_archive as read;
use proptest::prelude::*;

const CASES: u32 = if cfg!(miri) { 16 } else { 2048 };

/// Two views with ordinary and hidden members; the default view's are objects of a kind, or of none.
fn written(default: Option<usize>, contents: [&[u8]; 3]) -> Vec<u8> {
    let symbols: [&[(&[u8], bool)]; 3] = [
        &[(b"cos", false)],
        &[(b"cos", false)],
        &[(b"sin", true), (b"tan", true)],
    ];
    let parts = Parts {
        contents: contents
            .iter()
            .zip(symbols)
            .map(|(data, symbols)| Contents {
                data: data.to_vec(),
                symbols: symbols.to_vec(),
            })
            .collect(),
        layers: vec![
            vec![(b"cos1.o", 0)],
            vec![(b"cos2 of a long name.o", 1)],
            vec![(b"common.o", 2)],
        ],
        views: vec![
            ("gpu1".to_owned(), vec![0, 2]),
            ("gpu2".to_owned(), vec![1, 2]),
        ],
        default,
    };
    let mut bytes = Vec::new();
    Plan::new(&parts.request())
        .unwrap()
        .write(&mut bytes)
        .unwrap();
    bytes
}

fn position(bytes: &[u8], pattern: &[u8]) -> usize {
    bytes
        .windows(pattern.len())
        .position(|window| window == pattern)
        .unwrap()
}

/// An archive with tables after a module of bitcode with a wrapper, assembled by hand.
fn bitcode() -> Vec<u8> {
    let archive = written(None, [b"one", b"two!", b""]);
    let blob_end = position(&archive, b"\x7fgpustub trailer") - 8;
    let blob = &archive[position(&archive, &MAGIC)..blob_end];
    let mut wrapper = Vec::new();
    for word in [0x0B17_C0DE_u32, 0, 20, 4, 7, 0xDEC0_4342] {
        wrapper.extend(word.to_le_bytes());
    }
    let size = wrapper.len() + blob.len();
    let mut bytes = format!("!<arch>\n{:<48}{size:<10}`\n", "module.bc/").into_bytes();
    bytes.extend(wrapper);
    bytes.extend(blob);
    bytes
}

/// Updates the hash of the tables.
fn seal(blob: &mut [u8]) {
    let size = u64::from_le_bytes(blob[40..48].try_into().unwrap()) as usize;
    let hash = hash_bytes(&blob[..112]) ^ hash_bytes(&blob[120..size]);
    blob[112..120].copy_from_slice(&hash.to_le_bytes());
}

/// One archive for each container.
fn archives() -> &'static [Vec<u8>] {
    static ARCHIVES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    ARCHIVES.get_or_init(|| {
        let mut archives = Vec::new();
        for kind in KINDS {
            let objects = [&b"1"[..], b"2", b""].map(|more| object(kind, more));
            archives.push(written(
                Some(0),
                objects.each_ref().map(|object| &object[..]),
            ));
        }
        archives.push(written(Some(1), [b"one", b"two!", b""]));
        archives.push(written(None, [b"one", b"two!", b""]));
        archives.push(bitcode());
        for archive in &archives {
            read(archive).expect("undamaged, it is readable");
        }
        archives
    })
}

/// Contents of the member found for each symbol, by view, in an archive that verifies.
type Answers = Vec<(Vec<u8>, Vec<Option<Vec<u8>>>)>;

fn answers(bytes: &[u8]) -> Result<Answers, Error> {
    let archive = SuperArchive::parse(bytes)?;
    archive.verify()?;
    let mut answers = Vec::new();
    for view in archive.views() {
        let view = view?;
        let mut contents = Vec::new();
        for symbol in ["cos", "sin", "tan", "absent"] {
            contents.push(match view.find_symbol(symbol)? {
                Some(member) => Some(member.data()?.to_vec()),
                None => None,
            });
        }
        answers.push((view.name().to_vec(), contents));
    }
    Ok(answers)
}

/// Asserts that the result is an error or the written contents.
fn errs_or_is_right(bytes: &[u8], undamaged: &[u8]) {
    let _ = read(bytes);
    if let Ok(damaged_answers) = answers(bytes) {
        assert_eq!(damaged_answers, answers(undamaged).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn overwritten_anywhere(archive in any::<prop::sample::Index>(), changes in changes()) {
        let archive = archive.get(archives());
        errs_or_is_right(&overwritten(archive, &changes), archive);
    }

    /// The hash detects accidents. With an updated hash any contents may result, but no panic.
    #[test]
    fn overwritten_and_sealed(archive in any::<prop::sample::Index>(), changes in changes()) {
        let archive = archive.get(archives());
        let mut bytes = archive.clone();
        let blob = &mut bytes[position(archive, &MAGIC)..];
        let size = u64::from_le_bytes(blob[40..48].try_into().unwrap()) as usize;
        let changed = overwritten(&blob[120..size], &changes);
        blob[120..size].copy_from_slice(&changed);
        seal(blob);
        let _ = read(&bytes);
    }

    #[test]
    fn cut_and_glued(archive in any::<prop::sample::Index>(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), length in 0_usize..256, cut in any::<bool>()) {
        let archive = archive.get(archives());
        let mut bytes = archive.clone();
        let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
        let end = (from + length).min(bytes.len());
        let piece = bytes[from..end].to_vec();
        if cut {
            bytes.drain(from..end);
        }
        let to = to.min(bytes.len());
        bytes.splice(to..to, piece);
        errs_or_is_right(&bytes, archive);
    }

    #[test]
    fn anything_after_the_magic(tail in prop::collection::vec(any::<u8>(), 0..512)) {
        let mut bytes = b"!<arch>\n".to_vec();
        bytes.extend(tail);
        prop_assert!(read(&bytes).is_err());
    }
}

/// Whether no reader uses a byte, so that `verify` does not read it: headers of the index, of the names and of
/// the object with the tables, that object around the tables, padding of members, and of the index before
/// the tables.
fn is_gap(archive: &[u8], offset: usize) -> bool {
    let tables = position(archive, &MAGIC);
    let size = u64::from_le_bytes(archive[tables + 32..tables + 40].try_into().unwrap()) as usize;
    let blob = tables..tables + size;
    assert_eq!(
        SuperArchive::parse(archive).unwrap().tables_offset(),
        tables as u64
    );
    let mut header = 8;
    while header < archive.len() {
        let name = archive[header..header + 16].trim_ascii_end();
        let length = std::str::from_utf8(&archive[header + 48..header + 58]).unwrap();
        let length: usize = length.trim_ascii_end().parse().unwrap();
        let (data, end) = (header + 60, header + 60 + length);
        let has_tables = (data..end).contains(&tables);
        let is_special = has_tables || [&b"/"[..], b"//"].contains(&name);
        let is_around_blob = has_tables && (data..end).contains(&offset) && !blob.contains(&offset);
        if is_special && (header..data).contains(&offset) || is_around_blob || offset == end {
            return true;
        }
        header = end + length % 2;
    }
    false
}

/// Sets each byte in turn to extreme values, and truncates the file there.
#[test]
fn each_byte_at_its_extremes() {
    let step = if cfg!(miri) { 97 } else { 1 };
    for archive in archives() {
        let mut bytes = archive.clone();
        for offset in (0..bytes.len()).step_by(step) {
            let original = archive[offset];
            for byte in [0, 1, 0x7f, 0xff, original ^ 1, original.wrapping_add(1)] {
                bytes[offset] = byte;
                errs_or_is_right(&bytes, archive);
                let is_accepted = byte != original && answers(&bytes).is_ok();
                assert!(
                    !is_accepted || is_gap(archive, offset),
                    "{offset}: {original} to {byte}"
                );
            }
            bytes[offset] = original;
            errs_or_is_right(&bytes[..offset], archive);
        }
    }
}

/// `include_bytes!` and mapped files of other formats promise no alignment.
#[test]
fn archives_may_have_any_address() {
    for archive in archives() {
        let expected = answers(archive).unwrap();
        for start in 0..16 {
            let mut bytes = vec![0xAA; start];
            bytes.extend(archive);
            assert_eq!(answers(&bytes[start..]).unwrap(), expected, "{start}");
        }
    }
}

/// An archive with other bytes at an offset.
fn with(archive: &[u8], offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut archive = archive.to_vec();
    archive[offset..offset + bytes.len()].copy_from_slice(bytes);
    archive
}

#[test]
fn each_error_has_a_message() {
    let index = &archives()[5];
    let elf = &archives()[3];
    let blob = position(index, &MAGIC);
    // Tables with an updated hash.
    let sealed = |offset: usize, word: u32| {
        let mut archive = with(index, blob + offset, &word.to_le_bytes());
        seal(&mut archive[blob..]);
        archive
    };
    // Offset of each part: the size of its records times their number, after that of the one before.
    let mut parts = [0; 12];
    let mut end = 120;
    let record_sizes = [48, 32, 4, 32, 16, 4, 12, 16, 8, 8, 32, 1];
    for (number, record_size) in record_sizes.into_iter().enumerate() {
        parts[number] = end;
        let count = &index[blob + 56 + 4 * number..][..4];
        end += record_size * u32::from_le_bytes(count.try_into().unwrap()) as usize;
    }
    let [
        contents,
        views,
        directory,
        dictionaries,
        slots,
        rows,
        lists,
        entries,
        ..,
    ] = parts;
    let mut longer = elf.clone();
    longer.extend(b"\n\n");
    let malformed = Error::Malformed;
    let message = |part: &str| format!("malformed super-archive: {part}");
    let header = message("header of the tables");
    let (members, symbols) = (
        message("list of members"),
        message("symbol table of a view"),
    );
    for (archive, error, text) in [
        (b"\x7fELF".to_vec(), Error::NotAnArchive, "not an archive"),
        (
            b"!<arch>\n".to_vec(),
            Error::NoViews,
            "archive without the views of a super-archive",
        ),
        (
            with(index, blob, b"x"),
            Error::NoViews,
            "archive without the views of a super-archive",
        ),
        (
            with(index, blob + 16, &[2]),
            Error::UnsupportedVersion { major: 2 },
            "unsupported format version 2 of a super-archive",
        ),
        (
            sealed(24, 6),
            Error::UnsupportedFeatures { bits: 6 },
            "requires unknown features 0x6",
        ),
        (
            sealed(contents + 32, 5),
            Error::UnsupportedContents { contents: 0 },
            "unknown form",
        ),
        // A codec, but not the feature.
        (
            sealed(contents + 36, 0x401),
            malformed(Part::Contents),
            &message("contents of members"),
        ),
        (
            sealed(contents + 36, 0x402),
            Error::UnsupportedContents { contents: 0 },
            "unknown form",
        ),
        (
            longer,
            malformed(Part::Archive),
            &message("headers or index"),
        ),
        (
            with(elf, position(elf, b"common.o/"), b"k"),
            Error::MemberMoved { contents: 2 },
            "the member with contents 2 was moved",
        ),
        (
            with(index, position(index, b"two!"), b"3"),
            Error::HashMismatch { contents: 1 },
            "contents 1 do not match their hash",
        ),
        (
            with(index, 8 + 48, b"x"),
            malformed(Part::Archive),
            &message("headers or index"),
        ),
        (
            with(index, blob + 40, &[0xff; 8]),
            malformed(Part::Header),
            &header,
        ),
        (
            with(index, blob + 121, b"x"),
            malformed(Part::Header),
            &header,
        ),
        (sealed(104, 1), malformed(Part::Header), &header),
        (
            sealed(views, u32::MAX),
            malformed(Part::Views),
            &message("list of views"),
        ),
        // A dictionary and a row that do not exist.
        (
            sealed(views + 8, 7),
            malformed(Part::Views),
            &message("list of views"),
        ),
        (
            sealed(views + 12, 7),
            malformed(Part::Views),
            &message("list of views"),
        ),
        (
            sealed(directory, 77),
            malformed(Part::Views),
            &message("list of views"),
        ),
        // More homes than slots, another number of symbols, a class that does not exist.
        (
            sealed(dictionaries + 4, 30),
            malformed(Part::Symbols),
            &symbols,
        ),
        (
            sealed(dictionaries + 12, 7),
            malformed(Part::Symbols),
            &symbols,
        ),
        (sealed(slots + 12, 77), malformed(Part::Symbols), &symbols),
        // Another largest position.
        (sealed(rows, 77), malformed(Part::Symbols), &symbols),
        (sealed(lists + 8, 7), malformed(Part::Members), &members),
        (
            sealed(entries + 4, u32::MAX),
            malformed(Part::Members),
            &members,
        ),
        // A layer that the view does not have.
        (sealed(entries + 12, 2), malformed(Part::Members), &members),
        (
            sealed(contents + 8, u32::MAX),
            malformed(Part::Contents),
            &message("contents of members"),
        ),
    ] {
        let result = SuperArchive::parse(&archive).and_then(|archive| archive.verify());
        assert_eq!(result, Err(error));
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// The writer does not compress. Here, codec 1 exchanges all bits, and contents 1 have contents 0 as a base.
#[test]
fn compressed_contents_are_decompressed_by_the_caller() {
    let mut bytes = written(None, [b"one", b"two!", b"three"]);
    let tables = position(&bytes, &MAGIC);
    let data = position(&bytes, b"two!");
    for byte in &mut bytes[data..data + 4] {
        *byte ^= 0xFF;
    }
    let blob = &mut bytes[tables..];
    blob[24] = 1;
    let record = 120 + 48;
    blob[record + 36] = 1;
    blob[record + 40] = 1;
    seal(blob);
    let archive = SuperArchive::parse(&bytes).unwrap();
    archive.verify().unwrap();
    let view = archive.view("gpu2").unwrap().unwrap();
    let contents = view.find_symbol("cos").unwrap().unwrap().contents();
    assert_eq!(contents.data(), Err(Error::Compressed { contents: 1 }));
    assert_eq!((contents.size(), contents.scratch_size()), (4, Ok(0)));
    let codec = |codec: u8, data: &[u8], base: Option<&[u8]>, out: &mut [u8]| {
        assert_eq!((codec, base), (1, Some(&b"one"[..])));
        for (out, byte) in out.iter_mut().zip(data) {
            *out = byte ^ 0xFF;
        }
        true
    };
    let mut out = [0; 4];
    contents.decompress(&mut out, &mut [], codec).unwrap();
    assert_eq!(&out, b"two!");
    let failed = Err(Error::Decompression { contents: 1 });
    assert_eq!(contents.decompress(&mut [0; 3], &mut [], codec), failed);
    assert_eq!(
        contents.decompress(&mut out, &mut [], |_, _, _, _| false),
        failed
    );
    // Another result than was written.
    assert_eq!(
        contents.decompress(&mut out, &mut [], |_, _, _, _| true),
        Ok(())
    );
    out[0] ^= 1;
    assert_eq!(
        contents.decompress(&mut out, &mut [], |_, _, _, _| true),
        failed
    );
    // A base that has a base.
    bytes[tables + 120 + 40] = 3;
    seal(&mut bytes[tables..]);
    let archive = SuperArchive::parse(&bytes).unwrap();
    assert_eq!(archive.verify(), Err(Error::Malformed(Part::Contents)));
    // Without the feature.
    bytes[tables + 120 + 40] = 0;
    bytes[tables + 24] = 0;
    seal(&mut bytes[tables..]);
    let archive = SuperArchive::parse(&bytes).unwrap();
    assert_eq!(archive.verify(), Err(Error::Malformed(Part::Contents)));
}
