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
    let symbols: [&[_]; 3] = [
        &[("cos", false)],
        &[("cos", false)],
        &[("sin", true), ("tan", true)],
    ];
    let contents = contents
        .iter()
        .zip(symbols)
        .map(|(data, symbols)| Contents {
            data: data.to_vec(),
            symbols: symbols
                .iter()
                .map(|(name, weak)| (name.as_bytes(), *weak))
                .collect(),
        });
    let parts = Parts {
        contents: contents.collect(),
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

fn position(bytes: &[u8], of: &[u8]) -> usize {
    bytes
        .windows(of.len())
        .position(|window| window == of)
        .unwrap()
}

/// An archive with tables after a module of bitcode with a wrapper, assembled by hand.
fn bitcode() -> Vec<u8> {
    let hidden = written(None, [b"one", b"two!", b""]);
    let trailer = position(&hidden, b"\x7fgpustub trailer") - 8;
    let blob = hidden[position(&hidden, &MAGIC)..trailer].to_vec();
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
    let sum = hash_bytes(&blob[..112]) ^ hash_bytes(&blob[120..size]);
    blob[112..120].copy_from_slice(&sum.to_le_bytes());
}

/// One archive for each container.
fn archives() -> &'static [Vec<u8>] {
    static ARCHIVES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    ARCHIVES.get_or_init(|| {
        let objects = KINDS.map(|kind| {
            let data = [&b"1"[..], b"2", b""].map(|more| object(kind, more));
            written(Some(0), [&data[0], &data[1], &data[2]])
        });
        let mut archives = objects.to_vec();
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
    let views = archive.views().map(|view| {
        let view = view?;
        let found = ["cos", "sin", "tan", "absent"].map(|symbol| {
            let member = view.find_symbol(symbol)?;
            member
                .map(|member| member.data().map(<[u8]>::to_vec))
                .transpose()
        });
        Ok((
            view.name().to_vec(),
            found.into_iter().collect::<Result<_, _>>()?,
        ))
    });
    views.collect()
}

/// Asserts that the result is an error or the written contents.
fn errs_or_is_right(bytes: &[u8], undamaged: &[u8]) {
    let _ = read(bytes);
    if let Ok(found) = answers(bytes) {
        assert_eq!(found, answers(undamaged).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn overwritten_anywhere(of in any::<prop::sample::Index>(), changes in changes()) {
        let archive = of.get(archives());
        errs_or_is_right(&overwritten(archive, &changes), archive);
    }

    /// The hash detects accidents. With an updated hash any contents may result, but no panic.
    #[test]
    fn overwritten_and_sealed(of in any::<prop::sample::Index>(), changes in changes()) {
        let archive = of.get(archives());
        let at = position(archive, &MAGIC);
        let mut bytes = archive.clone();
        let blob = &mut bytes[at..];
        let size = u64::from_le_bytes(blob[40..48].try_into().unwrap()) as usize;
        let changed = overwritten(&blob[120..size], &changes);
        blob[120..size].copy_from_slice(&changed);
        seal(blob);
        let _ = read(&bytes);
    }

    #[test]
    fn cut_and_glued(of in any::<prop::sample::Index>(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), length in 0_usize..256, cut in any::<bool>()) {
        let archive = of.get(archives());
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
fn is_gap(archive: &[u8], at: usize) -> bool {
    let tables = position(archive, &MAGIC);
    let blob = SuperArchive::parse(archive).unwrap();
    let size = u64::from_le_bytes(archive[tables + 32..tables + 40].try_into().unwrap()) as usize;
    assert_eq!(blob.tables_offset(), tables as u64);
    let mut header = 8;
    while header < archive.len() {
        let name = archive[header..header + 16].trim_ascii_end();
        let length = std::str::from_utf8(&archive[header + 48..header + 58]).unwrap();
        let length: usize = length.trim_ascii_end().parse().unwrap();
        let (data, end) = (header + 60, header + 60 + length);
        let has_tables = (data..end).contains(&tables);
        let special = has_tables || [&b"/"[..], b"//"].contains(&name);
        let around =
            has_tables && (data..end).contains(&at) && !(tables..tables + size).contains(&at);
        if special && (header..data).contains(&at) || around || at == end {
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
        for at in (0..bytes.len()).step_by(step) {
            let was = bytes[at];
            for value in [0, 1, 0x7f, 0xff, was ^ 1, was.wrapping_add(1)] {
                bytes[at] = value;
                errs_or_is_right(&bytes, archive);
                let accepted = value != was && answers(&bytes).is_ok();
                assert!(!accepted || is_gap(archive, at), "{at}: {was} to {value}");
            }
            bytes[at] = was;
            errs_or_is_right(&bytes[..at], archive);
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

#[test]
fn each_error_has_a_message() {
    let index = &archives()[5];
    let elf = &archives()[3];
    let blob = |archive: &[u8]| position(archive, &MAGIC);
    let with = |archive: &Vec<u8>, at: usize, bytes: &[u8]| {
        let mut archive = archive.clone();
        archive[at..at + bytes.len()].copy_from_slice(bytes);
        archive
    };
    // Tables with an updated hash.
    let sealed = |at: usize, word: u32| {
        let mut archive = with(index, blob(index) + at, &word.to_le_bytes());
        seal(&mut archive[blob(index)..]);
        archive
    };
    // Offset of each part: the size of its records times their number, after that of the one before.
    let mut parts = [0; 12];
    let mut end = 120;
    for (at, size) in [48, 32, 4, 32, 16, 4, 12, 16, 8, 8, 32, 1]
        .into_iter()
        .enumerate()
    {
        parts[at] = end;
        let count = &index[blob(index) + 56 + 4 * at..][..4];
        end += size * u32::from_le_bytes(count.try_into().unwrap()) as usize;
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
    let of = |part: &str| format!("malformed super-archive: {part}");
    let header = of("header of the tables");
    let (members, symbols) = (of("list of members"), of("symbol table of a view"));
    for (archive, error, text) in [
        (b"\x7fELF".to_vec(), Error::NotAnArchive, "not an archive"),
        (
            b"!<arch>\n".to_vec(),
            Error::NoViews,
            "archive without the views of a super-archive",
        ),
        (
            with(index, blob(index), b"x"),
            Error::NoViews,
            "archive without the views of a super-archive",
        ),
        (
            with(index, blob(index) + 16, &[2]),
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
            &of("contents of members"),
        ),
        (
            sealed(contents + 36, 0x402),
            Error::UnsupportedContents { contents: 0 },
            "unknown form",
        ),
        (longer, malformed(Part::Archive), &of("headers or index")),
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
            &of("headers or index"),
        ),
        (
            with(index, blob(index) + 40, &[0xff; 8]),
            malformed(Part::Header),
            &header,
        ),
        (
            with(index, blob(index) + 121, b"x"),
            malformed(Part::Header),
            &header,
        ),
        (sealed(104, 1), malformed(Part::Header), &header),
        (
            sealed(views, u32::MAX),
            malformed(Part::Views),
            &of("list of views"),
        ),
        // A dictionary and a row that do not exist.
        (
            sealed(views + 8, 7),
            malformed(Part::Views),
            &of("list of views"),
        ),
        (
            sealed(views + 12, 7),
            malformed(Part::Views),
            &of("list of views"),
        ),
        (
            sealed(directory, 77),
            malformed(Part::Views),
            &of("list of views"),
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
            &of("contents of members"),
        ),
    ] {
        let found = SuperArchive::parse(&archive).and_then(|archive| archive.verify());
        assert_eq!(found, Err(error));
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// Inputs of the writer with changed bytes, and the tables made right again: an error, or a super-archive that
/// verifies. Overrides make variants of damaged members.
#[test]
#[ignore = "heavy, needs clang: ./tests/run"]
fn heavy_changed_inputs_are_written_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let run = |program: &str, words: &[&str]| {
        let mut command = std::process::Command::new(program);
        let ran = command
            .current_dir(dir.path())
            .args(words)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{program} {words:?}: {ran:?}");
    };
    let code = "__attribute__((weak)) int cos1(void) { return 1; } int cos2(void) { return cos1(); } int sin1;";
    std::fs::write(at("common.c"), code).unwrap();
    std::fs::write(at("family.c"), "int cos1(void) { return 9; }").unwrap();
    let mut inputs = Vec::new();
    let targets: [&[&str]; 5] = [
        &["--target=x86_64-linux-gnu"],
        &["--target=aarch64-linux-gnu", "-g"],
        &["--target=x86_64-linux-gnu", "-emit-llvm"],
        &["--target=armv7-linux-gnueabi", "-O1"],
        &["--target=wasm32"],
    ];
    for target in targets {
        for name in ["family", "common"] {
            let file = format!("{name}.c");
            run("clang", &[target, &["-w", "-c", &file]].concat());
        }
        let objects: Vec<_> = ["family", "common"]
            .iter()
            .map(|name| {
                let bitcode = at(&format!("{name}.bc"));
                let object = if target.contains(&"-emit-llvm") {
                    bitcode
                } else {
                    at(&format!("{name}.o"))
                };
                std::fs::read(object).unwrap()
            })
            .collect();
        let [family, common] = objects.try_into().unwrap();
        let mut archive = ar(&common);
        archive.extend(ar(&family)[8..].iter());
        inputs.push((family, common));
        inputs.push((inputs[inputs.len() - 1].0.clone(), archive));
    }
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let (mut written, mut refused) = (0, 0);
    for round in 0..30_000 {
        let (family, common) = &inputs[round % inputs.len()];
        let mut changed = common.clone();
        for _ in 0..=random(3) {
            let place = random(changed.len());
            match random(4) {
                0 => changed[place] ^= 1 << random(8),
                1 => changed[place] = [0, 1, 0x7F, 0x80, 0xFF][random(5)],
                2 if place + 4 <= changed.len() => {
                    let number = [0, 1, u32::MAX, 1 << 31, changed.len() as u32][random(5)];
                    changed[place..place + 4].copy_from_slice(&number.to_le_bytes());
                }
                _ if random(8) == 0 => changed.truncate(place.max(1)),
                _ => changed[place] = random(256) as u8,
            }
        }
        std::fs::write(at("first"), family).unwrap();
        std::fs::write(at("second"), &changed).unwrap();
        match write_overriding(&at("first"), &at("second")) {
            Some(mut bytes) => {
                read(&bytes).unwrap_or_else(|error| panic!("{round}: {error}"));
                let _ = gpustub_superarchive::refresh(&mut bytes);
                written += 1;
            }
            None => refused += 1,
        }
    }
    assert!(written > 1000 && refused > 1000, "{written} {refused}");
}

/// An archive of one member, without an index.
fn ar(member: &[u8]) -> Vec<u8> {
    let mut bytes = format!("!<arch>\n{:<48}{:<10}`\n", "member.o/", member.len()).into_bytes();
    bytes.extend(member);
    bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    bytes
}

/// The super-archive of a view in which the first file overrides the second, if there is one.
fn write_overriding(first: &std::path::Path, second: &std::path::Path) -> Option<Vec<u8>> {
    use gpustub_superarchive::{LayerId, Request, Source, View, ViewId};
    let (first, second) = (Source::open(first).ok()?, Source::open(second).ok()?);
    let view = |name: &str, layers: &[usize]| View {
        name: name.to_owned(),
        layers: layers.iter().copied().map(LayerId).collect(),
    };
    let mut layers = vec![first.layer().ok()?, second.layer().ok()?];
    layers[1].interposable = true;
    let request = Request {
        layers,
        views: vec![view("both", &[0, 1]), view("one", &[1])],
        default: Some(ViewId(0)),
    };
    let mut bytes = Vec::new();
    Plan::new(&request).ok()?.write(&mut bytes).unwrap();
    Some(bytes)
}
