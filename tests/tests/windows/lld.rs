//! Images that lld links as link.exe would, with libraries that stand for those of Microsoft's SDK.

use std::path::PathBuf;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::{Result, msvc};

use crate::trial::{Abi, Trial, expect};

/// Compiles `ends.c` and links an image with all members of the archives.
fn link(
    trial: &Trial,
    image: &str,
    archives: &[PathBuf],
    compile: &[&str],
    link: &[&str],
) -> Result<()> {
    let object = format!("{image}.obj");
    let mut clang = Command::new(msvc::CLANG);
    clang.current_dir(trial.dir());
    clang
        .arg(format!("--target={}", msvc::TRIPLE))
        .args(compile);
    clang.arg("-c").arg(msvc::directory().join("ends.c"));
    succeed(clang.args(["-o", &object]))?;
    let mut linker = Command::new("lld-link-19");
    linker.current_dir(trial.dir());
    linker.args([&object, "/subsystem:console", "/opt:ref", "/WX"]);
    linker.args(link).arg(format!("/out:{image}"));
    for archive in archives {
        linker.arg(format!("/wholearchive:{}", archive.display()));
    }
    linker.arg(format!("/libpath:{}", msvc::libraries()?.display()));
    for library in ["msvcrt", "ucrt", "vcruntime", "kernel32"] {
        linker.arg(format!("{library}.lib"));
    }
    succeed(&mut linker)?;
    Ok(())
}

/// The program has the stubs of two packages. Each image calls its own stub after its other destructors.
#[test]
#[ignore = "needs mingw-w64, clang, lld, LLVM and wine: ./tests/run"]
fn calls_at_the_end_of_the_process() -> Result<()> {
    let trial = Trial::with(Abi::Msvc)?;
    trial.library("trap1.dll", "programs/windows/ending.c", &[])?;
    let value = "@gpustub-symbols 1\ntrap_value returns=status\n";
    let first = trial.trap_stubs_of_list("first", value)?;
    let both = value.replace("1\n", "1\ntrap_other returns=status\n");
    let second = trial.trap_stubs_of_list("second", &both)?;
    let plugin = ["/dll", "/export:plugin"];
    link(
        &trial,
        "plugin.dll",
        std::slice::from_ref(&first),
        &["-DPLUGIN"],
        &plugin,
    )?;
    link(&trial, "program.exe", &[first, second], &[], &[])?;
    expect(
        &trial.run(&[])?,
        "plugin: 42\nprogram: 42\nprogram ends: 42\nlibrary ends\nplugin ends: another value\n",
        "",
    )
}
