//! Figures of the row of `docs/targets.md` for Windows.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::stubs::list_of;
use gpustub_tests::wine::compiler;
use gpustub_tests::{Result, repository};

use crate::trial::Trial;

/// Functions whose slots fill one page and two.
const FEW: usize = 256;
const MANY: usize = 512;

/// The linkers of mingw-w64's compiler.
const LINKERS: [&str; 2] = ["-fuse-ld=bfd", "-fuse-ld=lld"];

/// Names as long as those of the other targets' figures.
fn numbered(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("trap{number:05}"))
}

/// Sizes of an image's sections, by objdump.
fn section_sizes(image: &Path) -> Result<Vec<(String, u64)>> {
    let mut objdump = Command::new("x86_64-w64-mingw32-objdump");
    let text = succeed(objdump.arg("-h").arg(image))?.stdout;
    let mut sizes = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [number, name, size, ..] = words[..]
            && number.parse::<u32>().is_ok()
        {
            sizes.push((name.to_owned(), u64::from_str_radix(size, 16)?));
        }
    }
    Ok(sizes)
}

/// Bytes that Windows maps of a program that calls the first functions of an archive, without the code of the calls.
fn loaded_bytes(trial: &Trial, archive: &Path, count: usize, linker: &str) -> Result<u64> {
    let (mut declarations, mut calls) = (String::new(), String::new());
    for name in numbered(count) {
        writeln!(declarations, "int {name}(void);")?;
        writeln!(calls, " sum += {name}();")?;
    }
    let main = trial.dir().join("main.c");
    fs::write(
        &main,
        format!("{declarations}int main(void)\n{{\n long sum = 0;\n{calls} return sum == 1;\n}}\n"),
    )?;
    let object = trial.dir().join("main.o");
    let mut gcc = Command::new(compiler("c"));
    succeed(gcc.args(["-O1", "-c", "-o"]).arg(&object).arg(&main))?;
    let program = trial.dir().join("program.exe");
    let mut gcc = Command::new(compiler("c"));
    gcc.args(["-s", linker, "-Wl,--whole-archive"]).arg(archive);
    gcc.args(["-Wl,--no-whole-archive,--gc-sections", "-o"]);
    succeed(gcc.arg(&program).arg(&object))?;
    let code = section_sizes(&object)?;
    let code = code.iter().find(|(name, _)| name == ".text");
    let (_, code) = code.ok_or("an object without code")?;
    let sections = section_sizes(&program)?;
    Ok(sections.iter().map(|(_, size)| size).sum::<u64>() - code)
}

/// Instructions of a warm call's trampoline, and of one through `__imp_`, which is its address.
fn warm_instructions(archive: &Path) -> Result<usize> {
    let mut objdump = Command::new("x86_64-w64-mingw32-objdump");
    objdump.args(["-d", "--no-show-raw-insn"]).arg(archive);
    let listing = succeed(&mut objdump)?.stdout;
    let (_, code) = listing
        .split_once("<trap00000>:\n")
        .ok_or("no trampoline")?;
    let jump = code.lines().position(|line| line.contains("\tjmp "));
    Ok(jump.ok_or("no jump")? + 1)
}

#[test]
#[ignore = "needs mingw-w64 and lld: ./tests/run"]
fn figures_of_the_table_of_targets() -> Result<()> {
    let trial = Trial::new()?;
    let archives = [FEW, MANY].map(|count| {
        let package = format!("stubs{count}");
        trial.trap_stubs_of_list(&package, &list_of(numbered(count)))
    });
    let [few, many] = archives;
    let (few, many) = (few?, many?);
    let mut figures = Vec::new();
    for linker in LINKERS {
        let used = loaded_bytes(&trial, &many, MANY, linker)?;
        let unused = loaded_bytes(&trial, &many, FEW, linker)?;
        assert_eq!(unused, loaded_bytes(&trial, &few, FEW, linker)?, "{linker}");
        figures.push((used - unused) / (MANY - FEW) as u64);
    }
    assert_eq!(figures[0], figures[1], "{LINKERS:?}");
    let page = fs::read_to_string(repository().join("docs/targets.md"))?;
    let row = format!(
        "| `x86_64-pc-windows-gnu` | rustc | bfd (mingw-w64) | wine 8 | {} | {} |\n",
        figures[0],
        warm_instructions(&many)?
    );
    assert!(page.contains(&row), "{row}");
    Ok(())
}
