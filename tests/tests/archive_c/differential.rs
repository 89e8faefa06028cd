//! The Rust reader gives the answers of the conformance files, and those of the C header about damaged files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use gpustub_archive::{Closure, Error, SuperArchive, match_target};
use gpustub_core::gpu_arch::Arch;
use gpustub_superarchive::{
    Binding, Definition, Input, Layer, LayerId, Plan, Request, View, ViewId,
};
use gpustub_tests::Result;
use gpustub_tests::cargo::program;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;

use crate::cases::{all, blob, rehash, targets};
use crate::gaps::gaps;
use crate::reader::walk;
use crate::walker::Walker;

/// Numbers from a seed: xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn next_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        number as usize % limit.max(1)
    }

    fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.next_below(choices.len())]
    }
}

const NUMBERS: [u64; 9] = [
    0,
    1,
    2,
    7,
    60,
    0x7FFF_FFFF,
    0x8000_0000,
    u32::MAX as u64,
    u64::MAX,
];

/// Damages a file in one to three places, more often in fields than in contents. Returns whether the hash of the tables
/// was updated.
pub fn damage(bytes: &mut Vec<u8>, random: &mut Random) -> bool {
    let tables = blob(bytes);
    for _ in 0..=random.next_below(3) {
        let length = bytes.len();
        if length < 8 {
            return false;
        }
        let anywhere = random.next_below(length);
        let offset = match (random.next_below(4), tables) {
            (0, Some(start)) => (start + 16 + random.next_below(104)).min(length - 1),
            // Numbers of the tables begin at multiples of 4.
            (1 | 2, Some(start)) => {
                (start + 120 + 4 * random.next_below(length.saturating_sub(start) / 4))
                    .min(length - 1)
            }
            _ => anywhere,
        };
        let number = *random.pick(&NUMBERS);
        match random.next_below(8) {
            0 => bytes.truncate(anywhere),
            1 => bytes[offset] ^= 1 << random.next_below(8),
            2 => bytes[offset] = bytes[offset].wrapping_add(1),
            3 => bytes[offset] = bytes[offset].wrapping_sub(1),
            4 | 5 => {
                let size = (*random.pick(&[1, 2, 4, 8])).min(length - offset);
                bytes[offset..offset + size].copy_from_slice(&number.to_le_bytes()[..size]);
            }
            _ => {
                let size = (1 + random.next_below(32)).min(length - offset.max(anywhere));
                bytes.copy_within(anywhere..anywhere + size, offset);
            }
        }
    }
    random.next_below(2) == 0 && rehash(bytes).is_some()
}

/// A file to be damaged.
struct Seed {
    bytes: Vec<u8>,
    /// Bytes that no reader uses, if the file verifies.
    gaps: Option<Vec<bool>>,
}

impl Seed {
    fn new(bytes: Vec<u8>) -> Self {
        let is_sound = SuperArchive::parse(&bytes).is_ok_and(|archive| archive.verify().is_ok());
        let gaps = is_sound.then(|| gaps(&bytes)).flatten();
        Self { bytes, gaps }
    }

    /// The first change that `verify` has to find in a file with these bytes, but without their new hash.
    fn first_change(&self, damaged: &[u8]) -> Option<usize> {
        let gaps = self.gaps.as_ref()?;
        let used = match self.bytes.split_last_chunk::<60>() {
            // Long names without names at the end, which may be missing as a whole.
            Some((used, header)) if header.starts_with(b"//  ") && damaged.len() == used.len() => {
                used
            }
            _ => &self.bytes,
        };
        (used.iter().enumerate())
            .position(|(offset, byte)| damaged.get(offset) != Some(byte) && !gaps[offset])
    }
}

/// Files by their containers.
type Seeds = BTreeMap<String, Vec<Seed>>;

/// Numbers of damaged files.
#[derive(Default)]
struct Counts {
    read: usize,
    opened: usize,
    /// Sound files whose damage `verify` has to find, because it is in no gap.
    to_find: usize,
}

/// Compares the readers, and what `verify` finds, for as many damaged files of each container.
fn compare(
    walker: &Walker,
    seeds: &Seeds,
    mutations: usize,
    random_seed: u64,
    counts: &mut BTreeMap<String, Counts>,
) -> Result<()> {
    let mut random = Random(random_seed);
    let containers: Vec<_> = seeds.iter().collect();
    let files: Vec<_> = (0..mutations)
        .map(|index| {
            let (container, seeds) = containers[index % containers.len()];
            let seed = random.pick(seeds);
            let mut bytes = seed.bytes.clone();
            let is_rehashed = damage(&mut bytes, &mut random);
            (container, seed, bytes, is_rehashed)
        })
        .collect();
    let answers = walker.walk(files.iter().map(|(_, _, bytes, _)| &bytes[..]))?;
    assert_eq!(answers.len(), files.len());
    for ((container, seed, file, is_rehashed), answer) in files.iter().zip(&answers) {
        let expected = walk(file);
        let counts = counts.entry(container.to_string()).or_default();
        counts.read += 1;
        counts.opened += usize::from(expected.starts_with("archive ok"));
        let change = (!is_rehashed).then(|| seed.first_change(file)).flatten();
        counts.to_find += usize::from(change.is_some());
        let missed = change.filter(|_| expected.ends_with("verify ok\n"));
        if *answer != expected || missed.is_some() {
            let path = std::env::temp_dir().join("archive-difference.a");
            std::fs::write(&path, file)?;
            let problem = match missed {
                Some(offset) => format!("the change of byte {offset} is not found"),
                None => "answers differ".to_owned(),
            };
            return Err(format!(
                "{}: {problem}: C:\n{answer}Rust:\n{expected}",
                path.display()
            )
            .into());
        }
    }
    Ok(())
}

/// Compares the readers for each number of a range, from which the damage is chosen. Damage behind the header is
/// reached in each container.
fn compare_all(mutations: usize, random_seeds: std::ops::Range<u64>) -> Result<()> {
    let (walker, seeds) = (Walker::checked()?, seeds()?);
    let mut counts = BTreeMap::new();
    for random_seed in random_seeds {
        compare(&walker, &seeds, mutations, random_seed, &mut counts)?;
    }
    assert_eq!(counts.len(), CONTAINERS.len());
    for (container, counts) in counts {
        let (read, opened, to_find) = (counts.read, counts.opened, counts.to_find);
        println!("{container}: {read} damaged files, {opened} opened, {to_find} found by verify");
        assert!(
            opened > read / 4,
            "{container}: {opened} of {read} could be opened"
        );
        assert!(
            to_find > read / 16,
            "{container}: {to_find} of {read} are to be found"
        );
    }
    Ok(())
}

/// Members of default views in all containers: the beginning of their contents. The module of bitcode has the data
/// layout `e`.
const CONTAINERS: [(&str, &[u8]); 11] = [
    ("index, nothing visible", b""),
    ("index, text", b"text "),
    (
        "index, COFF",
        b"\x64\x86\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ),
    (
        "index, Mach-O",
        b"\xcf\xfa\xed\xfe\x07\0\0\x01\x03\0\0\0\x01\0\0\0",
    ),
    ("index, WebAssembly", b"\0asm\x01\0\0\0"),
    (
        "ELF, 32 bits, little-endian",
        b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\x28\0",
    ),
    (
        "ELF, 32 bits, big-endian",
        b"\x7fELF\x01\x02\x01\0\0\0\0\0\0\0\0\0\0\x01\0\x08",
    ),
    (
        "ELF, 64 bits, little-endian",
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\x3e\0",
    ),
    (
        "ELF, 64 bits, big-endian",
        b"\x7fELF\x02\x02\x01\0\0\0\0\0\0\0\0\0\0\x01\0\x16",
    ),
    ("bitcode", b"BC\xc0\xde\x21\x0c\0\0\x01\0\0\0\x1b\x82\x72\0"),
    ("conformance files", b""),
];

/// Files of this repository's writer in each container, and the conformance files.
fn seeds() -> Result<Seeds> {
    let mut seeds = Seeds::new();
    for (container, kind) in CONTAINERS {
        let files = if container == "conformance files" {
            all()?.into_iter().map(|case| case.bytes).collect()
        } else if kind.is_empty() {
            vec![sample(None, b"text ")?, sample(Some(0), b"text ")?]
        } else {
            vec![sample(Some(1), kind)?, sample(Some(5), kind)?]
        };
        seeds.insert(
            container.to_owned(),
            files.into_iter().map(Seed::new).collect(),
        );
    }
    Ok(seeds)
}

/// A super-archive of six views of up to five layers. Contents begin with `kind`, which is padded to the size of the
/// largest header, that of 64-bit ELF objects.
fn sample(default: Option<usize>, kind: &[u8]) -> Result<Vec<u8>> {
    let mut kind = kind.to_vec();
    kind.resize(64, 0);
    let contents: Vec<_> = (0..30)
        .map(|number| [&kind[..], &vec![number; usize::from(number) % 7]].concat())
        .collect();
    let mut layers = Vec::new();
    for layer in 0..5 {
        let members = (6 * layer..6 * layer + 6).map(|number| Input {
            name: format!("member {}", number % 9).into_bytes().into(),
            data: &contents[number],
            symbols: symbols_of_member(number),
        });
        layers.push(Layer::new(format!("layer {layer}"), members.collect()));
    }
    let request = Request {
        layers,
        views: (0..6)
            .map(|view| View {
                name: format!("gfx{view}"),
                layers: (0..view).map(|layer| LayerId((view + layer) % 5)).collect(),
            })
            .collect(),
        default: default.map(ViewId),
    };
    let plan = Plan::new(&request).map_err(|error| format!("{error:?}"))?;
    let mut bytes = Vec::new();
    plan.write(&mut bytes)?;
    Ok(bytes)
}

/// No symbol, one that other members define as well, or two that no other member defines.
fn symbols_of_member(number: usize) -> Vec<Definition<'static>> {
    let names = match number % 3 {
        0 => Vec::new(),
        1 => vec![format!("_Z1f{}", number % 11)],
        _ => vec![format!("g{number}"), format!("h{number}")],
    };
    names
        .into_iter()
        .map(|name| Definition {
            name: name.into_bytes().into(),
            binding: Binding::Strong,
        })
        .collect()
}

#[test]
fn readers_agree_about_files_of_the_writer() -> Result<()> {
    let seeds = seeds()?;
    let files: Vec<(&String, &Seed)> = seeds
        .iter()
        .flat_map(|(container, seeds)| seeds.iter().map(move |seed| (container, seed)))
        .collect();
    let answers = Walker::checked()?.walk(files.iter().map(|(_, seed)| &seed.bytes[..]))?;
    assert_eq!(answers.len(), files.len());
    for ((container, seed), answer) in files.into_iter().zip(answers) {
        assert_eq!(answer, walk(&seed.bytes));
        if container == "conformance files" {
            continue;
        }
        assert!(
            seed.gaps.is_some() && answer.ends_with("verify ok\n"),
            "{container}"
        );
        for (member, is_expected) in [
            (b"gpustub-views.o/", container.starts_with("ELF")),
            (b"gpustub-view.bc/", container == "bitcode"),
        ] {
            let has_member = seed.bytes.windows(member.len()).any(|name| name == member);
            assert_eq!(has_member, is_expected, "{container}");
        }
    }
    Ok(())
}

#[test]
fn readers_agree_about_damaged_files() -> Result<()> {
    compare_all(3300, 1..2)
}

#[test]
#[ignore = "reads 550000 damaged files: minutes (tests/run --all)"]
fn heavy_readers_agree_about_damaged_files() -> Result<()> {
    compare_all(5500, 2..102)
}

#[test]
fn rust_reader_answers_as_the_conformance_files_say() -> Result<()> {
    for case in all()? {
        assert_eq!(walk(&case.bytes), case.answers, "{}", case.name);
    }
    Ok(())
}

/// Ranks and names of the table, chosen by the Rust function.
#[test]
fn rust_function_chooses_the_targets_of_the_table() -> Result<()> {
    for row in targets()? {
        let mut best = (0, "-");
        for view in &row.views {
            let rank = match_target(view.as_bytes(), row.target.as_bytes()).unwrap_or(0);
            if rank > best.0 {
                best = (rank, view);
            }
        }
        assert_eq!(best.1, row.best, "{} of {:?}", row.target, row.views);
    }
    Ok(())
}

/// Ranks of all pairs of names in the table, and of names with other letters.
#[test]
fn readers_agree_about_targets() -> Result<()> {
    let rows = targets()?;
    let mut names: Vec<String> = rows.iter().flat_map(|row| row.views.clone()).collect();
    names.extend(rows.iter().map(|row| row.target.clone()));
    names.sort();
    names.dedup();
    let mut random = Random(1);
    for index in 0..names.len() {
        let mut bytes = names[index].clone().into_bytes();
        let letter = random.next_below(bytes.len());
        bytes[letter] = *random.pick(b":-+_0159afgmsx");
        names.push(String::from_utf8(bytes)?);
    }
    let pairs: Vec<_> = names
        .iter()
        .flat_map(|view| names.iter().map(move |target| (view, target)))
        .collect();
    let input: String = pairs
        .iter()
        .map(|(view, target)| format!("{view} {target}\n"))
        .collect();
    let ranks = Walker::checked()?.run(&[Path::new("match")], input.into_bytes())?;
    assert_eq!(ranks.lines().count(), pairs.len());
    for ((view, target), rank) in pairs.iter().zip(ranks.lines()) {
        let expected = match_target(view.as_bytes(), target.as_bytes()).unwrap_or(0);
        assert_eq!(rank.parse(), Ok(expected), "{view} {target}");
    }
    Ok(())
}

/// NVIDIA's names follow the rules of device links.
#[test]
fn nvidia_targets_follow_the_rules_of_device_links() -> Result<()> {
    let mut names = Vec::new();
    for kind in ["sm_", "lto_", "compute_"] {
        for number in [
            "75", "80", "86", "90", "100", "101", "103", "110", "120", "121",
        ] {
            names.extend(["", "a", "f"].map(|letter| format!("{kind}{number}{letter}")));
        }
    }
    let archs: Vec<(&String, Arch)> = names
        .iter()
        .filter_map(|name| Some((name, Arch::parse(name)?)))
        .collect();
    let mut served = 0;
    for (view, code) in &archs {
        for (target, arch) in archs.iter().filter(|(name, _)| name.starts_with("sm_")) {
            let rank = match_target(view.as_bytes(), target.as_bytes());
            assert_eq!(rank.is_some(), code.serves(*arch), "{view} {target}");
            served += usize::from(rank.is_some());
        }
    }
    assert!(served > 100);
    Ok(())
}

/// Members that a symbol needs, in this order, and the words in them that no member defines.
fn needs(archive: &SuperArchive<'_>, view: &str, symbol: &str) -> Result<String, Error> {
    let view = archive.view(view)?.ok_or(Error::NoViews)?;
    let mut memory = vec![7; view.member_count()];
    assert!(Closure::new(view, &mut memory[1..]).is_none());
    let mut closure = Closure::new(view, &mut memory).ok_or(Error::NoViews)?;
    let mut needs = Vec::new();
    closure.add(symbol)?;
    while let Some(member) = closure.next_member()? {
        needs.push(String::from_utf8_lossy(member.name()).into_owned());
        for word in member.data()?.split(|&byte| byte == b' ') {
            if !word.is_empty() && !closure.add(word)? {
                needs.push(format!("-{}", String::from_utf8_lossy(word)));
            }
        }
    }
    Ok(needs.join(" "))
}

/// As `conformance::c_header_finds_what_a_symbol_needs`.
#[test]
fn rust_closure_finds_what_a_symbol_needs() -> Result<()> {
    let cases = all()?;
    let case = cases.iter().find(|case| case.name == "closure");
    let bytes = &case.ok_or("no case")?.bytes;
    let archive = SuperArchive::parse(bytes).map_err(|e| e.to_string())?;
    for (view, symbol, expected) in [
        (
            "gfx9-generic",
            "cos16",
            "cos16.o -printf cos8.o cos1.o terms.o -memcpy",
        ),
        ("gfx1100", "cos8", "cos8.o cos1.o"),
        ("gfx1100", "printf", ""),
    ] {
        assert_eq!(
            needs(&archive, view, symbol),
            Ok(expected.to_owned()),
            "{view} {symbol}"
        );
    }
    Ok(())
}

/// Thousands of names of C and C++.
#[test]
fn readers_agree_about_libraries_of_gcc() -> Result<()> {
    let mut layers = Vec::new();
    for name in ["libgcc.a", "libgcc_eh.a", "libstdc++.a"] {
        let mut gcc = Command::new("gcc");
        let path = succeed(gcc.arg(format!("-print-file-name={name}")))?.stdout;
        layers.push(path.trim().to_owned());
    }
    let dir = scratch()?;
    let file = dir.path().join("gcc.a");
    let mut build = Command::new(program("cargo-gpustub")?);
    build
        .args(["gpustub", "archive", "build", "-q", "-o"])
        .arg(&file);
    let [gcc, unwind, cpp] = &layers[..] else {
        return Err("three libraries".into());
    };
    for view in [
        format!("c={gcc}"),
        format!("c++={cpp},{unwind},{gcc}"),
        format!("unwind={unwind}"),
    ] {
        build.arg("--view").arg(view);
    }
    succeed(&mut build)?;
    let bytes = std::fs::read(&file)?;
    let expected = walk(&bytes);
    assert!(expected.lines().count() > 5000 && expected.ends_with("verify ok\n"));
    assert_eq!(Walker::checked()?.walk([&bytes[..]])?, [expected]);
    Ok(())
}
