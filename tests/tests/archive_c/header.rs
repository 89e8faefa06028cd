//! The header in C and C++, without warnings, dependencies or allocation.

use std::collections::BTreeSet;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;

use crate::cases::all;
use crate::walker::{Walker, include};

const STRICT: [&str; 7] = [
    "-Wall",
    "-Wextra",
    "-pedantic",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wshadow",
    "-Werror",
];

fn agrees(compiler: &[&str]) -> Result<()> {
    answers_are_right(&compile(compiler)?, compiler)
}

fn compile(compiler: &[&str]) -> Result<Walker> {
    Walker::compile(&[compiler, &STRICT].concat())
}

fn answers_are_right(walker: &Walker, compiler: &[&str]) -> Result<()> {
    let cases = all()?;
    let answers = walker.walk(cases.iter().map(|case| &case.bytes[..]))?;
    for (case, answers) in cases.iter().zip(answers) {
        assert_eq!(answers, case.answers, "{compiler:?}, {}", case.name);
    }
    Ok(())
}

#[test]
fn gcc_compiles_it_without_warnings() -> Result<()> {
    agrees(&["gcc", "-std=c99", "-O2", "-Wdeclaration-after-statement"])?;
    agrees(&["gcc", "-std=c17", "-O0"])?;
    agrees(&["g++", "-std=c++11", "-O2", "-x", "c++"])?;
    agrees(&["g++", "-std=c++20", "-O0", "-x", "c++"])
}

#[test]
#[ignore = "needs clang of several releases: ./tests/run"]
fn clang_compiles_it_without_warnings() -> Result<()> {
    for release in ["14", "19"] {
        let (c, cpp) = (format!("clang-{release}"), format!("clang++-{release}"));
        agrees(&[&c, "-std=c99", "-O2"])?;
        agrees(&[&cpp, "-std=c++11", "-O0", "-x", "c++"])?;
        agrees(&[&cpp, "-std=c++20", "-O2", "-x", "c++"])?;
    }
    Ok(())
}

/// Big-endian, and 32 bits.
#[test]
#[ignore = "needs cross compilers and qemu-user: ./tests/run"]
fn other_hosts_give_the_same_answers() -> Result<()> {
    for (compiler, emulator) in [
        ("s390x-linux-gnu-gcc", "qemu-s390x"),
        ("arm-linux-gnueabihf-gcc", "qemu-arm"),
    ] {
        let compiler = [compiler, "-std=c99", "-O2", "-static"];
        answers_are_right(&compile(&compiler)?.emulated(emulator), &compiler)?;
    }
    Ok(())
}

/// A file with all functions refers to these of the C library, which allocate nothing.
#[test]
fn it_needs_no_library_and_allocates_nothing() -> Result<()> {
    let dir = scratch()?;
    // As ordinary functions, all are compiled.
    let source = "#define inline\n#include <string.h>\n#define static\n#include <gpustub_archive_verify.h>\n";
    std::fs::write(dir.path().join("all.c"), source)?;
    let mut compile = Command::new("gcc");
    compile.current_dir(dir.path()).arg("-I").arg(include());
    compile.args(["-std=c99", "-O2", "-ffreestanding", "-fno-stack-protector"]);
    succeed(compile.args(["-c", "all.c"]))?;
    let mut nm = Command::new("nm");
    nm.current_dir(dir.path()).args(["--format=posix", "all.o"]);
    let symbols = succeed(&mut nm)?.stdout;
    let with = |kind: &str| -> BTreeSet<&str> {
        let rows = symbols
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>());
        let rows = rows.filter(|row| row[1] == kind);
        rows.map(|row| row[0]).collect()
    };
    let (defined, undefined) = (with("T"), with("U"));
    assert!(
        defined.contains("gpustub_archive_open") && defined.len() > 30,
        "{symbols}"
    );
    let allowed = BTreeSet::from(["memchr", "memcmp", "memcpy", "memset", "strlen"]);
    assert!(undefined.is_subset(&allowed), "{undefined:?}");
    Ok(())
}
