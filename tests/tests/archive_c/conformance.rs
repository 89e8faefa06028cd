//! Each conformance file, and the table of targets.

#![allow(
    clippy::disallowed_methods,
    reason = "the environment says whether answers are rewritten"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

use crate::cases::{self, all};
use crate::walker::{Walker, include};

#[test]
fn c_header_answers_as_the_conformance_files_say() -> Result<()> {
    let cases = all()?;
    assert!(cases.len() > 70, "{}", cases.len());
    let answers = Walker::checked()?.walk(cases.iter().map(|case| &case.bytes[..]))?;
    let mut wrong = Vec::new();
    let blesses = std::env::var_os("BLESS").is_some();
    assert_eq!(answers.len(), cases.len());
    for (case, answers) in cases.iter().zip(&answers) {
        if blesses {
            case.bless(answers)?;
        } else if *answers != case.answers {
            wrong.push(format!(
                "{}:\n{answers}expected:\n{}",
                case.name, case.answers
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// A strict reader in another language, which was written from FORMAT.md alone, accepts what verifies, and nothing else.
#[test]
fn second_reader_accepts_the_sound_files() -> Result<()> {
    let (cases, dir) = (all()?, scratch()?);
    let mut input = String::new();
    for case in &cases {
        let file = dir.path().join(&case.name);
        fs::write(&file, &case.bytes)?;
        input += &format!("{}\n", file.display());
    }
    let list = dir.path().join("list");
    fs::write(&list, input)?;
    let mut python = Command::new("python3");
    python.arg(repository().join("tests/programs/super-archive.py"));
    let ran = succeed(python.arg("--check").arg(list))?;
    assert_eq!(ran.stdout.lines().count(), cases.len());
    for (case, answer) in cases.iter().zip(ran.stdout.lines()) {
        let is_sound = case.answers.ends_with("verify ok\n");
        assert_eq!(answer == "sound", is_sound, "{}: {answer}", case.name);
    }
    Ok(())
}

/// The best name for each target, by ranks of the C header.
#[test]
fn c_header_chooses_the_targets_of_the_table() -> Result<()> {
    let rows = cases::targets()?;
    let pairs = rows.iter().flat_map(|row| {
        row.views
            .iter()
            .map(|view| format!("{view} {}\n", row.target))
    });
    let ranks = Walker::checked()?.run(
        &[Path::new("match")],
        pairs.collect::<String>().into_bytes(),
    )?;
    let mut ranks = ranks.lines().map(str::parse::<u32>);
    for row in &rows {
        let mut best = (0, "-");
        for view in &row.views {
            let rank = ranks.next().ok_or("a rank is missing")??;
            if rank > best.0 {
                best = (rank, view);
            }
        }
        assert_eq!(best.1, row.best, "{} of {:?}", row.target, row.views);
    }
    Ok(())
}

#[test]
fn header_has_the_generic_processors_of_the_data() -> Result<()> {
    let header = fs::read_to_string(include().join("gpustub_archive.h"))?;
    let data = fs::read_to_string(repository().join("crates/archive/data/generic-processors.txt"))?;
    let rows: Vec<&str> = (data.lines())
        .filter(|line| !line.starts_with('#'))
        .collect();
    for row in &rows {
        assert!(header.contains(&format!("\"{row}\\n\"")), "{row}");
    }
    assert_eq!(header.matches("\\n\"").count() - 1, rows.len());
    Ok(())
}

/// Output of the program for the case `closure`, written to a file.
fn closure(words: &[&str]) -> Result<String> {
    let cases = all()?;
    let case = cases.iter().find(|case| case.name == "closure");
    let dir = scratch()?;
    let file = dir.path().join("closure.a");
    fs::write(&file, &case.ok_or("no case")?.bytes)?;
    let words: Vec<_> = words.iter().map(Path::new).collect();
    let words = [&words[..1], &[&file], &words[1..]].concat();
    Walker::checked()?.run(&words, Vec::new())
}

#[test]
fn c_header_finds_the_best_view() -> Result<()> {
    for (target, view) in [
        ("gfx906:sramecc+:xnack-", "view gfx9-generic\n"),
        ("gfx1100", "view gfx1100\n"),
        ("gfx1030", "view: none\n"),
    ] {
        assert_eq!(closure(&["best", target])?, view, "{target}");
    }
    Ok(())
}

/// Each member once, a cycle, undefined symbols, and the definition of the view's first layer.
#[test]
fn c_header_finds_what_a_symbol_needs() -> Result<()> {
    let needs = closure(&["needs", "gfx9-generic", "cos16"])?;
    assert_eq!(
        needs,
        "member cos16.o\nundefined printf\nmember cos8.o\nmember cos1.o\nmember terms.o\n\
         undefined memcpy\nok\n"
    );
    let needs = closure(&["needs", "gfx1100", "cos8"])?;
    assert_eq!(needs, "member cos8.o\nmember cos1.o\nok\n");
    assert_eq!(closure(&["needs", "gfx1100", "printf"])?, "none\n");
    Ok(())
}

/// The hexadecimal blocks of FORMAT.md are the files that it names.
#[test]
fn vectors_of_the_format_are_conformance_files() -> Result<()> {
    let format = fs::read_to_string(repository().join("crates/archive/FORMAT.md"))?;
    let (_, vectors) = format.split_once("\n## Vectors\n").ok_or("no vectors")?;
    let blocks: Vec<_> = (vectors.split("```text\n").skip(1))
        .filter_map(|block| block.split_once("```"))
        .collect();
    assert_eq!(blocks.len(), 3);
    let cases = all()?;
    for ((block, _), name) in blocks.iter().zip(["index", "elf", "bitcode"]) {
        let name = format!("vector-{name}");
        let case = cases.iter().find(|case| case.name == name);
        let mut expected = String::new();
        for (row, bytes) in case.ok_or(&*name)?.bytes.chunks(32).enumerate() {
            let groups: Vec<String> = (bytes.chunks(8))
                .map(|group| group.iter().map(|byte| format!("{byte:02x}")).collect())
                .collect();
            expected += &format!("{:04x}  {}\n", row * 32, groups.join(" "));
        }
        assert_eq!(*block, expected, "{name}");
    }
    Ok(())
}
