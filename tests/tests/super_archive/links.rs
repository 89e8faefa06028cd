//! Linkers use the default view, and leave the blob out of their output.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_archive::MAGIC;
use gpustub_tests::Result;
use gpustub_tests::command::{Ran, run, succeed};

use crate::cases::Cases;
use crate::sample::{DEFAULT_MARK, Default, HIDDEN_MARKS, STATUS, Sample, find};

/// Order of a command line, and whether it includes all members.
const FORMS: [(&[&str], &[&str]); 4] = [
    (&["{main}"], &["{archive}"]),
    (
        &[],
        &["--start-group", "{archive}", "{main}", "--end-group"],
    ),
    (&["{main}"], &["--whole-archive", "{archive}"]),
    (&["--whole-archive", "{archive}"], &["{main}"]),
];

/// Links with the archive in every form: the program has the default view's `bar`, and `only1` is
/// absent.
pub fn link(linker: &[String], sample: &Sample, runs: bool) -> Result<()> {
    for (first, second) in FORMS {
        let words = [first, second].concat();
        let ran = run_linker(linker, sample, &words, "main.o")?.success()?;
        if !ran.stderr.is_empty() || !ran.stdout.is_empty() {
            return Err(ran.error("a complaint"));
        }
        let program = sample.dir().join("program");
        find(&fs::read(&program)?, DEFAULT_MARK.as_bytes())
            .ok_or_else(|| ran.error("the default view's bar is missing"))?;
        check_hidden(&program, &ran)?;
        if runs {
            let status = run(&mut Command::new(&program))?.status;
            if status.code() != Some(STATUS) {
                return Err(ran.error(&format!("the program ended with {status}")));
            }
        }
        check_only1_is_undefined(run_linker(linker, sample, &words, "other.o")?)?;
    }
    Ok(())
}

/// Links an object in a form.
fn run_linker(linker: &[String], sample: &Sample, words: &[&str], object: &str) -> Result<Ran> {
    let mut command = Command::new(&linker[0]);
    command.args(&linker[1..]).current_dir(sample.dir());
    command.args(["-e", "start", "-o", "program"]);
    for word in words {
        let word = word.replace("{archive}", "lib.a");
        command.arg(word.replace("{main}", object));
    }
    run(&mut command)
}

/// A program has nothing of the hidden view.
fn check_hidden(program: &Path, ran: &Ran) -> Result<()> {
    let bytes = fs::read(program)?;
    for mark in HIDDEN_MARKS {
        if find(&bytes, mark.as_bytes()).is_some() {
            return Err(ran.error(&format!("{mark:?} is hidden, and was linked")));
        }
    }
    if find(&bytes, &MAGIC).is_some() {
        return Err(ran.error("the tables were linked"));
    }
    Ok(())
}

fn check_only1_is_undefined(ran: Ran) -> Result<()> {
    let is_reported = ran.stderr.contains("undefined") && ran.stderr.contains("only1");
    if !ran.status.success() && is_reported {
        Ok(())
    } else {
        Err(ran.error("only1 is in the hidden view: it should be undefined"))
    }
}

/// Parts of lines that linkers print about undefined symbols. lld reports text files, which the writer did not hide.
const UNDEFINED_LINES: [&str; 5] = [
    "undefined",
    ">>> ",
    "main.o",
    "archive member 'foo.txt'",
    "archive member 'bar.txt'",
];

fn link_all(linkers: &[String]) -> Result<()> {
    for (name, default) in Default::ALL {
        let sample = Sample::new(default)?;
        for linker in linkers {
            if default == Default::Objects {
                link(
                    std::slice::from_ref(linker),
                    &sample,
                    cfg!(target_arch = "x86_64"),
                )?;
                continue;
            }
            // The view defines no symbol, and linkers must not report the archive itself.
            let mut command = Command::new(linker);
            command.args(["-e", "start", "-o", "program", "main.o", "lib.a"]);
            let ran = run(command.current_dir(sample.dir()))?;
            let has_other_lines = ran.stderr.lines().any(|line| {
                let is_expected = UNDEFINED_LINES.iter().any(|part| line.contains(part));
                !line.trim().is_empty() && !is_expected
            });
            if ran.status.success() || has_other_lines {
                return Err(ran.error(&format!("{name}: only undefined symbols are wrong here")));
            }
        }
    }
    Ok(())
}

#[test]
fn binutils_link_the_default_view_alone() -> Result<()> {
    link_all(&Cases::read()?.linkers.everywhere)
}

#[test]
#[ignore = "needs lld of two releases, mold: ./tests/run"]
fn linkers_link_the_default_view_alone() -> Result<()> {
    link_all(&Cases::read()?.linkers.others)
}

/// rustc opens static libraries itself to add them to a Rust library.
#[test]
fn rustc_links_the_default_view_alone() -> Result<()> {
    let sample = Sample::new(Default::Objects)?;
    let calls = "std::process::exit(views::foo() + views::bar())";
    for (name, text) in [
        (
            "views.rs",
            "unsafe extern \"C\" {\n    pub safe fn foo() -> i32;\n    pub safe fn bar() -> i32;\n    pub safe fn only1() -> i32;\n}\n",
        ),
        ("main.rs", &format!("mod views;\nfn main() {{ {calls} }}\n")),
        (
            "other.rs",
            "mod views;\nfn main() { std::process::exit(views::only1()) }\n",
        ),
        ("user.rs", &format!("fn main() {{ {calls} }}\n")),
    ] {
        fs::write(sample.dir().join(name), text)?;
    }
    fs::copy(sample.archive(), sample.dir().join("libdefault_view.a"))?;
    for modifier in ["", ":+whole-archive", ":-bundle"] {
        let library = format!("-lstatic{modifier}=default_view");
        let direct = ["main.rs", &library, "-o", "program"];
        check_rust_program(&sample, succeed(&mut rustc(&sample, &direct))?)?;
        let rlib = ["views.rs", &library, "--crate-type", "rlib"];
        succeed(&mut rustc(&sample, &rlib))?;
        let user = [
            "user.rs",
            "--extern",
            "views=libviews.rlib",
            "-o",
            "program",
        ];
        check_rust_program(&sample, succeed(&mut rustc(&sample, &user))?)?;
        let hidden = ["other.rs", &library, "-o", "program"];
        check_only1_is_undefined(run(&mut rustc(&sample, &hidden))?)?;
    }
    Ok(())
}

fn rustc(sample: &Sample, words: &[&str]) -> Command {
    let mut rustc = Command::new("rustc");
    rustc.current_dir(sample.dir());
    rustc.args(["--edition", "2024", "-Adead_code", "-L", "."]);
    rustc.args(words);
    rustc
}

/// Runs the program that rustc linked.
fn check_rust_program(sample: &Sample, linked: Ran) -> Result<()> {
    let program = sample.dir().join("program");
    check_hidden(&program, &linked)?;
    let ran = run(&mut Command::new(&program))?;
    assert_eq!(ran.status.code(), Some(STATUS), "{}", linked.line);
    Ok(())
}
