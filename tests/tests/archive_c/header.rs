//! The header in C and C++, without warnings, dependencies or allocation.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, wine};

use crate::cases::all;
use crate::walker::{Machine, Walker, include};

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

#[test]
fn each_status_has_a_text() -> Result<()> {
    let scratch = scratch()?;
    let directory = scratch.path();
    let source = "#include <gpustub_archive.h>\n#include <stdio.h>\n\
        int main(void) { for (int i = -9; i <= 2; i++) puts(gpustub_archive_status_text(i)); return 0; }";
    fs::write(directory.join("texts.c"), source)?;
    let mut compiler = Command::new("cc");
    let compiler = compiler
        .current_dir(directory)
        .args(STRICT)
        .arg("-I")
        .arg(include());
    succeed(compiler.args(["texts.c", "-o", "texts"]))?;
    let output = Command::new(directory.join("texts")).output()?;
    let text = String::from_utf8(output.stdout)?;
    let texts = Vec::from_iter(text.lines());
    let known: BTreeSet<&str> = texts[1..11].iter().copied().collect();
    assert_eq!(known.len(), 10, "{texts:#?}");
    assert_eq!([texts[0], texts[11]], ["unknown status"; 2], "{texts:#?}");
    assert!(!known.contains(texts[0]), "{texts:#?}");
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
        let walker = compile(&compiler)?.on(Machine::Emulated(emulator));
        answers_are_right(&walker, &compiler)?;
    }
    Ok(())
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn windows_gives_the_same_answers() -> Result<()> {
    for [language, standard] in [["c", "-std=c99"], ["c++", "-std=c++11"]] {
        let compiler = [wine::compiler(language), standard, "-x", language, "-O2"];
        answers_are_right(&compile(&compiler)?.on(Machine::Windows), &compiler)?;
    }
    Ok(())
}

/// The functions of `<string.h>` that the header calls. Microsoft's headers are at hand in its SDK alone.
const STRING_H: &str = "#include <stddef.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\
    int memcmp(const void *, const void *, size_t);\nvoid *memcpy(void *, const void *, size_t);\n\
    void *memset(void *, int, size_t);\nsize_t strlen(const char *);\n\
    #ifdef __cplusplus\nconst void *memchr(const void *, int, size_t);\n}\n\
    #else\nvoid *memchr(const void *, int, size_t);\n#endif\n";

/// As Microsoft's compiler, clang takes no extension of GNU's.
#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn compilers_for_msvc_compile_it_without_warnings() -> Result<()> {
    let dir = scratch()?;
    fs::write(dir.path().join("string.h"), STRING_H)?;
    for file in ["all.c", "all.cpp"] {
        fs::write(
            dir.path().join(file),
            "#include <gpustub_archive_verify.h>\n",
        )?;
    }
    for (standard, file) in [
        ("c11", "all.c"),
        ("c17", "all.c"),
        ("c++14", "all.cpp"),
        ("c++17", "all.cpp"),
        ("c++20", "all.cpp"),
    ] {
        let mut clang = Command::new("clang-19");
        clang.current_dir(dir.path()).args(MSVC);
        clang.args(["-imsvc", ".", "-I"]).arg(include());
        succeed(clang.args([&format!("/std:{standard}"), file]))?;
    }
    Ok(())
}

const MSVC: [&str; 12] = [
    "--driver-mode=cl",
    "--target=x86_64-pc-windows-msvc",
    "/nologo",
    "/Zs",
    "/W4",
    "/WX",
    "/permissive-",
    "-Wpedantic",
    "-Wgnu",
    "-Xclang",
    "-fgnuc-version=0",
    "-fms-compatibility-version=19.29",
];

/// A file with all functions refers to these of the C library, which allocate nothing.
#[test]
fn it_needs_no_library_and_allocates_nothing() -> Result<()> {
    let dir = scratch()?;
    // As ordinary functions, all are compiled.
    let source = "#define inline\n#include <string.h>\n#define static\n#include <gpustub_archive_verify.h>\n";
    fs::write(dir.path().join("all.c"), source)?;
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
