//! The Rust reader gives the answers of the conformance files, and those of the C header about damaged files.

use std::path::Path;
use std::process::Command;

use gpustub_archive::{Closure, Error, SuperArchive, match_target};
use gpustub_core::gpu_arch::Arch;
use gpustub_superarchive::{
    Binding, Definition, Input, Layer, LayerId, Plan, Request, View, ViewId,
};
use gpustub_tests::cargo::program;
use gpustub_tests::command::succeed;
use gpustub_tests::{Result, scratch};

use crate::cases::{all, blob, rehash, targets};
use crate::reader::walk;
use crate::walker::Walker;

/// Numbers from a seed: xorshift64*.
struct Random(u64);

impl Random {
    fn next_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        number as usize % limit.max(1)
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.next_below(all.len())]
    }
}

/// Damages a file in one to three places. Fields are more interesting than contents.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let tables = blob(bytes);
    for _ in 0..=random.next_below(3) {
        let length = bytes.len();
        if length < 8 {
            return;
        }
        let anywhere = random.next_below(length);
        let at = match (random.next_below(4), tables) {
            (0, Some(start)) => (start + 16 + random.next_below(104)).min(length - 1),
            // Numbers of the tables begin at multiples of 4.
            (1 | 2, Some(start)) => {
                (start + 120 + 4 * random.next_below(length.saturating_sub(start) / 4))
                    .min(length - 1)
            }
            _ => anywhere,
        };
        let numbers = [
            0,
            1,
            2,
            7,
            60,
            0x7FFF_FFFF,
            0x8000_0000,
            u64::from(u32::MAX),
            u64::MAX,
        ];
        let number = *random.pick(&numbers);
        match random.next_below(8) {
            0 => bytes.truncate(anywhere),
            1 => bytes[at] ^= 1 << random.next_below(8),
            2 => bytes[at] = bytes[at].wrapping_add(1),
            3 => bytes[at] = bytes[at].wrapping_sub(1),
            4 | 5 => {
                let size = (*random.pick(&[1, 2, 4, 8])).min(length - at);
                bytes[at..at + size].copy_from_slice(&number.to_le_bytes()[..size]);
            }
            _ => {
                let size = (1 + random.next_below(32)).min(length - at.max(anywhere));
                bytes.copy_within(anywhere..anywhere + size, at);
            }
        }
    }
    if random.next_below(2) == 0 {
        rehash(bytes);
    }
}

fn compare(walker: &Walker, seeds: &[Vec<u8>], mutations: usize, seed: u64) -> Result<()> {
    let mut random = Random(seed);
    let files: Vec<Vec<u8>> = (0..mutations)
        .map(|_| {
            let mut bytes = random.pick(seeds).clone();
            damage(&mut bytes, &mut random);
            bytes
        })
        .collect();
    let answers = walker.walk(files.iter().map(Vec::as_slice))?;
    assert_eq!(answers.len(), files.len());
    let mut opened = 0;
    for (file, answer) in files.iter().zip(&answers) {
        let expected = walk(file);
        opened += usize::from(expected.starts_with("archive ok"));
        if *answer != expected {
            let path = std::env::temp_dir().join("archive-difference.a");
            std::fs::write(&path, file)?;
            return Err(format!("{}: C:\n{answer}Rust:\n{expected}", path.display()).into());
        }
    }
    // Damage behind the header is reached.
    assert!(
        opened > mutations / 4,
        "{opened} of {mutations} could be opened"
    );
    Ok(())
}

/// The conformance files, and files of this repository's writer.
fn seeds() -> Result<Vec<Vec<u8>>> {
    let mut seeds: Vec<_> = all()?.into_iter().map(|case| case.bytes).collect();
    for default in [None, Some(0), Some(5)] {
        for kind in [
            &b"text "[..],
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\x3e\0",
        ] {
            seeds.push(written(default, kind)?);
        }
    }
    Ok(seeds)
}

/// A super-archive of six views of up to five layers. Contents begin with `kind`.
fn written(default: Option<usize>, kind: &[u8]) -> Result<Vec<u8>> {
    let contents: Vec<_> = (0..30)
        .map(|at| [kind, &vec![at; usize::from(at) % 7]].concat())
        .collect();
    let symbol = |name: String| Definition {
        name: name.into_bytes().into(),
        binding: Binding::Strong,
    };
    let layer = |layer: usize| {
        let members = (6 * layer..6 * layer + 6).map(|at| Input {
            name: format!("member {}", at % 9).into_bytes().into(),
            data: &contents[at],
            // None; one that other members define, too; two that no other member defines.
            symbols: match at % 3 {
                0 => Vec::new(),
                1 => vec![symbol(format!("_Z1f{}", at % 11))],
                _ => vec![symbol(format!("g{at}")), symbol(format!("h{at}"))],
            },
        });
        Layer::new(format!("layer {layer}"), members.collect())
    };
    let request = Request {
        layers: (0..5).map(layer).collect(),
        views: (0..6)
            .map(|view| View {
                name: format!("gfx{view}"),
                layers: (0..view).map(|at| LayerId((view + at) % 5)).collect(),
            })
            .collect(),
        default: default.map(ViewId),
    };
    let plan = Plan::new(&request).map_err(|error| format!("{error:?}"))?;
    let mut bytes = Vec::new();
    plan.write(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn readers_agree_about_files_of_the_writer() -> Result<()> {
    let seeds = seeds()?;
    let answers = Walker::checked()?.walk(seeds.iter().map(Vec::as_slice))?;
    assert_eq!(answers.len(), seeds.len());
    let mut in_objects = 0;
    for (file, answer) in seeds.iter().zip(answers) {
        assert_eq!(answer, walk(file));
        let name = b"gpustub-views.o/";
        in_objects += usize::from(file.windows(name.len()).any(|part| part == name));
    }
    assert!(in_objects > 4, "{in_objects}");
    Ok(())
}

#[test]
fn readers_agree_about_damaged_files() -> Result<()> {
    let walker = Walker::checked()?;
    compare(&walker, &seeds()?, 3000, 1)
}

#[test]
#[ignore = "reads 500000 damaged files: a minute (tests/run --all)"]
fn heavy_readers_agree_about_damaged_files() -> Result<()> {
    let (walker, seeds) = (Walker::checked()?, seeds()?);
    (2..102).try_for_each(|seed| compare(&walker, &seeds, 5000, seed))
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
    for at in 0..names.len() {
        let mut bytes = names[at].clone().into_bytes();
        let place = random.next_below(bytes.len());
        bytes[place] = *random.pick(b":-+_0159afgmsx");
        names.push(String::from_utf8(bytes)?);
    }
    let pairs: Vec<_> = names
        .iter()
        .flat_map(|a| names.iter().map(move |b| (a, b)))
        .collect();
    let input: String = pairs.iter().map(|(a, b)| format!("{a} {b}\n")).collect();
    let ranks = Walker::checked()?.run(&[Path::new("match")], input.into_bytes())?;
    assert_eq!(ranks.lines().count(), pairs.len());
    for ((have, wanted), rank) in pairs.iter().zip(ranks.lines()) {
        let expected = match_target(have.as_bytes(), wanted.as_bytes()).unwrap_or(0);
        assert_eq!(rank.parse(), Ok(expected), "{have} {wanted}");
    }
    Ok(())
}

/// NVIDIA's names follow the rules of device links.
#[test]
fn nvidia_targets_follow_the_rules_of_device_links() -> Result<()> {
    let arch = |name: &str| Arch::parse(name);
    let kinds = ["sm_", "lto_", "compute_"];
    let numbers = [
        "75", "80", "86", "90", "100", "101", "103", "110", "120", "121",
    ];
    let mut names = Vec::new();
    for kind in kinds {
        for number in numbers {
            names.extend(["", "a", "f"].map(|letter| format!("{kind}{number}{letter}")));
        }
    }
    let mut served = 0;
    for (have, code) in names.iter().filter_map(|name| Some((name, arch(name)?))) {
        let wanted = names.iter().filter(|name| name.starts_with("sm_"));
        for (wanted, target) in wanted.filter_map(|name| Some((name, arch(name)?))) {
            let rank = match_target(have.as_bytes(), wanted.as_bytes());
            assert_eq!(rank.is_some(), code.serves(target), "{have} {wanted}");
            served += usize::from(rank.is_some());
        }
    }
    assert!(served > 100);
    Ok(())
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
        let needs = || {
            let view = archive.view(view)?.ok_or(Error::NoViews)?;
            let mut memory = vec![7; view.member_count()];
            assert!(Closure::new(view, &mut memory[1..]).is_none());
            let mut closure = Closure::new(view, &mut memory).ok_or(Error::NoViews)?;
            let mut needed = Vec::new();
            closure.add(symbol)?;
            while let Some(member) = closure.next_member()? {
                needed.push(String::from_utf8_lossy(member.name()).into_owned());
                let words = member.data()?.split(|&byte| byte == b' ');
                for word in words.filter(|word| !word.is_empty()) {
                    if !closure.add(word)? {
                        needed.push(format!("-{}", String::from_utf8_lossy(word)));
                    }
                }
            }
            Ok(needed.join(" "))
        };
        assert_eq!(
            needs(),
            Ok::<_, Error>(expected.to_owned()),
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
