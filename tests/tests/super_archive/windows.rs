//! Super-archives of COFF objects, linked into programs of Windows, which wine runs. Their tables follow the index.

use std::fs;
use std::process::Command;

use gpustub_archive::MAGIC;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::wine::{compiler, run, wine};
use gpustub_tests::{Result, repository};

use crate::sample::find;

/// Sections of each object have a name of more than 8 bytes, an alignment, and unwind data.
fn source(answer: u32) -> String {
    format!(
        "__attribute__((section(\".text_with_a_long_name\"), aligned(64))) int answer(void) {{ return {answer}; }}\n\
         __attribute__((aligned(4096))) int answer_page = {answer};\n"
    )
}

/// Commands that compile an object and link a program without a C library.
const TOOLS: [(&str, &[&str], &str, &[&str]); 3] = [
    (
        "x86_64-w64-mingw32-gcc",
        &[],
        "x86_64-w64-mingw32-ld",
        &["-e", "start", "-o", "program.exe"],
    ),
    (
        "clang-19",
        &["--target=x86_64-w64-windows-gnu"],
        "lld-link-19",
        &[
            "/nodefaultlib",
            "/entry:start",
            "/subsystem:console",
            "/out:program.exe",
        ],
    ),
    (
        "clang-19",
        &["--target=x86_64-pc-windows-msvc"],
        "lld-link-19",
        &[
            "/nodefaultlib",
            "/entry:start",
            "/subsystem:console",
            "/out:program.exe",
        ],
    ),
];

const START: &str = "int answer(void); extern int answer_page;\n\
                     int start(void) { return (long long)&answer_page % 4096 ? 1 : answer() + answer_page; }\n";

#[test]
#[ignore = "needs mingw-w64, clang 19 and wine: ./tests/run"]
fn programs_have_the_default_view() -> Result<()> {
    for (compiler, target, linker, options) in TOOLS {
        let dir = scratch()?;
        let dir = dir.path();
        for (name, text) in [
            ("one", source(20)),
            ("two", source(40)),
            ("start", START.to_owned()),
        ] {
            fs::write(dir.join(format!("{name}.c")), text)?;
            let mut compile = Command::new(compiler);
            compile.current_dir(dir).args(target);
            compile.args(["-O1", "-ffreestanding", "-c", &format!("{name}.c"), "-o"]);
            succeed(compile.arg(format!("{name}.o")))?;
        }
        let views = ["--view", "default=one.o", "--view", "hidden=two.o"];
        let mut build = gpustub(&["archive", "build", "-q", "-o", "lib.a"])?;
        succeed(build.current_dir(dir).args(views))?;
        let mut link = Command::new(linker);
        succeed(
            link.current_dir(dir)
                .args(options)
                .args(["start.o", "lib.a"]),
        )?;
        let program = dir.join("program.exe");
        assert!(find(&fs::read(&program)?, &MAGIC).is_none(), "{linker}");
        let ran = run(&mut wine(&program)?)?;
        assert_eq!(ran.status.code(), Some(40), "{linker}: {ran:?}");
    }
    Ok(())
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn programs_carry_an_archive_and_read_it() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    for (name, answer) in [("one", 20), ("two", 40)] {
        fs::write(dir.join(format!("{name}.c")), source(answer))?;
        let mut compile = Command::new(compiler("c"));
        succeed(compile.current_dir(dir).args(["-c", &format!("{name}.c")]))?;
    }
    let views = ["--view", "default=one.o", "--view", "hidden=two.o"];
    let mut build = gpustub(&["archive", "build", "-q", "-o", "lib.a"])?;
    succeed(build.current_dir(dir).args(views))?;
    let mut link = Command::new(compiler("c"));
    link.current_dir(dir)
        .args(["-O1", "-Wall", "-o", "program.exe", "-I"]);
    link.arg(repository().join("crates/archive/c"));
    link.arg(repository().join("tests/programs/windows/carries-archive.c"));
    succeed(link.arg("lib.a"))?;
    let ran = run(&mut wine(&dir.join("program.exe"))?)?.success()?;
    assert_eq!(ran.stdout, "20, two.o\n");
    Ok(())
}
