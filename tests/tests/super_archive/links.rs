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
    for (first, last) in FORMS {
        let linked = |main: &str| -> Result<Ran> {
            let mut command = Command::new(&linker[0]);
            command.args(&linker[1..]).current_dir(sample.dir());
            command.args(["-e", "start", "-o", "program"]);
            for word in first.iter().chain(last) {
                let word = word.replace("{archive}", "lib.a");
                command.arg(word.replace("{main}", main));
            }
            run(&mut command)
        };
        let ran = linked("main.o")?.success()?;
        if !ran.stderr.is_empty() || !ran.stdout.is_empty() {
            return Err(ran.error("a complaint"));
        }
        let program = sample.dir().join("program");
        let kept = find(&fs::read(&program)?, DEFAULT_MARK.as_bytes());
        kept.ok_or_else(|| ran.error("the default view's bar is missing"))?;
        nothing_is_linked_of_what_is_hidden(&program, &ran)?;
        if runs {
            let ended = run(&mut Command::new(&program))?;
            if ended.status.code() != Some(STATUS) {
                return Err(ran.error(&format!("the program ended with {}", ended.status)));
            }
        }
        refuses_only1(linked("other.o")?)?;
    }
    Ok(())
}

fn nothing_is_linked_of_what_is_hidden(program: &Path, ran: &Ran) -> Result<()> {
    let bytes = fs::read(program)?;
    let has = |text: &[u8]| find(&bytes, text).is_some();
    let hidden = HIDDEN_MARKS.iter().find(|mark| has(mark.as_bytes()));
    match hidden {
        Some(mark) => Err(ran.error(&format!("{mark:?} is hidden, and was linked"))),
        None if has(&MAGIC) => Err(ran.error("the tables were linked")),
        None => Ok(()),
    }
}

fn refuses_only1(ran: Ran) -> Result<()> {
    let says = |text| ran.stderr.contains(text);
    if !ran.status.success() && says("undefined") && says("only1") {
        Ok(())
    } else {
        Err(ran.error("only1 is in the hidden view: it should be undefined"))
    }
}

fn all(linkers: &[String]) -> Result<()> {
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
            // lld reports text files, which the writer did not hide.
            let known = |line: &str| {
                let known = [
                    "undefined",
                    ">>> ",
                    "main.o",
                    "archive member 'foo.txt'",
                    "archive member 'bar.txt'",
                ];
                line.trim().is_empty() || known.iter().any(|text| line.contains(text))
            };
            if ran.status.success() || !ran.stderr.lines().all(known) {
                return Err(ran.error(&format!("{name}: only undefined symbols are wrong here")));
            }
        }
    }
    Ok(())
}

#[test]
fn binutils_link_the_default_view_alone() -> Result<()> {
    all(&Cases::read()?.linkers.everywhere)
}

#[test]
#[ignore = "needs lld of two releases, mold: ./tests/run"]
fn linkers_link_the_default_view_alone() -> Result<()> {
    all(&Cases::read()?.linkers.others)
}

/// rustc opens static libraries itself to add them to a Rust library.
#[test]
fn rustc_links_the_default_view_alone() -> Result<()> {
    let sample = Sample::new(Default::Objects)?;
    let write = |name: &str, text: &str| fs::write(sample.dir().join(name), text);
    write(
        "views.rs",
        "unsafe extern \"C\" {\n    pub safe fn foo() -> i32;\n    pub safe fn bar() -> i32;\n    pub safe fn only1() -> i32;\n}\n",
    )?;
    let calls = "std::process::exit(views::foo() + views::bar())";
    write("main.rs", &format!("mod views;\nfn main() {{ {calls} }}\n"))?;
    write(
        "other.rs",
        "mod views;\nfn main() { std::process::exit(views::only1()) }\n",
    )?;
    write("user.rs", &format!("fn main() {{ {calls} }}\n"))?;
    fs::copy(sample.archive(), sample.dir().join("libdefault_view.a"))?;
    let rustc = |words: &[&str]| {
        let mut rustc = Command::new("rustc");
        rustc.current_dir(sample.dir());
        rustc.args(["--edition", "2024", "-Adead_code", "-L", "."]);
        rustc.args(words);
        rustc
    };
    let runs = |ran: Ran| -> Result<()> {
        let program = sample.dir().join("program");
        nothing_is_linked_of_what_is_hidden(&program, &ran)?;
        let ended = run(&mut Command::new(&program))?;
        assert_eq!(ended.status.code(), Some(STATUS), "{}", ran.line);
        Ok(())
    };
    for modifier in ["", ":+whole-archive", ":-bundle"] {
        let library = format!("-lstatic{modifier}=default_view");
        runs(succeed(&mut rustc(&[
            "main.rs", &library, "-o", "program",
        ]))?)?;
        succeed(&mut rustc(&["views.rs", &library, "--crate-type", "rlib"]))?;
        let user = [
            "user.rs",
            "--extern",
            "views=libviews.rlib",
            "-o",
            "program",
        ];
        runs(succeed(&mut rustc(&user))?)?;
        let other = ["other.rs", &library, "-o", "program"];
        refuses_only1(run(&mut rustc(&other))?)?;
    }
    Ok(())
}
