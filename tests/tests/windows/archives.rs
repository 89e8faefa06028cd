//! Archives for the linkers of MSVC targets, compared with those of LLVM's archiver.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_engine::toolchain::Toolchain;
use gpustub_tests::command::succeed;
use gpustub_tests::rustup::HOST;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, msvc};

use crate::trial::{Abi, Trial};

/// Output of a tool of LLVM.
fn llvm(tool: &str, words: &[&str], file: &Path) -> Result<String> {
    let mut command = Command::new(format!("{tool}-19"));
    Ok(succeed(command.args(words).arg(file))?.stdout)
}

/// Lines of the index, of which LLVM's archiver has those of one symbol in any order.
fn index(file: &Path) -> Result<Vec<String>> {
    let text = llvm("llvm-nm", &["--print-armap"], file)?;
    let (_, map) = text.split_once("Archive map\n").ok_or("no index")?;
    let (map, _) = map.split_once("\n\n").ok_or("no end of the index")?;
    let mut lines: Vec<String> = map.lines().map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

#[test]
#[ignore = "needs clang and LLVM: ./tests/run"]
fn an_archive_has_the_index_of_another_archiver() -> Result<()> {
    let trial = Trial::with(Abi::Msvc)?;
    let list = "@gpustub-symbols 1\ntrap_add returns=status\ntrap_value returns=status\n";
    let archive = trial.trap_stubs_of_list("", list)?;
    let names = [
        "gpustub_stubs.o",
        "gpustub_runtime.o",
        "gpustub_libraries.o",
        "gpustub_adapters.o",
    ];
    let listed = llvm("llvm-ar", &["t"], &archive)?;
    assert_eq!(listed.lines().collect::<Vec<_>>(), names);
    // lib.exe has the last member first.
    let listed = llvm("llvm-lib", &["/list"], &archive)?;
    assert_eq!(listed.lines().count(), names.len(), "{listed}");
    let sources = archive.parent().ok_or("no directory")?;
    let other = sources.join("other.lib");
    let mut archiver = Command::new("llvm-lib-19");
    archiver.current_dir(sources).arg("/out:other.lib");
    succeed(archiver.args(names))?;
    // Its options are cl's: the C run time is the program's choice.
    let object = sources.join("gpustub_runtime.o");
    let facts = llvm("llvm-readobj", &["--sections"], &object)?;
    assert!(!facts.contains(".drectve"), "{facts}");
    let lines = index(&archive)?;
    assert_eq!(lines, index(&other)?);
    assert!(lines.contains(&"trap_add in gpustub_stubs.o".to_owned()));
    // The linker takes the member that an undefined symbol names, by the second index.
    let mut linker = Command::new("lld-link-19");
    linker.current_dir(sources);
    linker.args(["/dll", "/noentry", "/nodefaultlib", "/force:unresolved"]);
    linker.args(["/out:x.dll", "/include:trap_add", "/verbose"]);
    linker.arg(&archive);
    let ran = succeed(&mut linker)?;
    assert!(
        ran.stderr
            .contains("Loaded libgpustub_stubs.a(gpustub_stubs.o)"),
        "{}",
        ran.stderr
    );
    assert!(
        !ran.stderr.contains("(gpustub_adapters.o)"),
        "{}",
        ran.stderr
    );
    Ok(())
}

/// Archives for the names of libraries: of several, all members can be linked.
#[test]
#[ignore = "needs LLVM: ./tests/run"]
fn stand_ins_link_with_everything_else() -> Result<()> {
    let dir = scratch()?;
    let compiler = Some(Path::new(msvc::CLANG));
    let tools = Toolchain::find(&msvc::target(), HOST, dir.path(), compiler, None)?;
    let stand_in = tools.stand_in(dir.path())?;
    for name in ["cuda.lib", "cudart.lib"] {
        fs::write(dir.path().join(name), &stand_in)?;
    }
    let file = dir.path().join("cuda.lib");
    assert_eq!(index(&file)?, ["gpustub1_stand_in in stand_in.o"]);
    let facts = llvm("llvm-readobj", &["--sections", "--symbols"], &file)?;
    for fact in [
        "Machine: IMAGE_FILE_MACHINE_AMD64",
        "Selection: Any",
        "StorageClass: External",
    ] {
        assert!(
            facts.contains(fact) || fact.starts_with("Machine"),
            "{fact}: {facts}"
        );
    }
    fs::write(dir.path().join("main.c"), "int main(void) { return 0; }\n")?;
    let mut clang = Command::new(msvc::CLANG);
    clang.current_dir(dir.path());
    clang.arg(format!("--target={}", msvc::TRIPLE));
    succeed(clang.args(["-c", "main.c", "-o", "main.o"]))?;
    let mut linker = Command::new("lld-link-19");
    linker.current_dir(dir.path());
    linker.args(["main.o", "/entry:main", "/subsystem:console", "/WX"]);
    linker.args(["/wholearchive:cuda.lib", "/wholearchive:cudart.lib"]);
    succeed(&mut linker)?;
    Ok(())
}
