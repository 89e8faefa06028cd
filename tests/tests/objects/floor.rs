//! Oldest glibc that images with stubs start on. The machine that builds them has a newer one.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::elf::{needed, symbols};
use gpustub_tests::stubs::{Machine, Stubs, list_of, plan_or_fail, trap_manifest};
use gpustub_tests::{Result, scratch};

use super::NAMES;

/// Oldest glibc of Rust's targets, and of manylinux2014.
const FLOOR: (u32, u32) = (2, 17);

/// glibc 2.38 redirects functions in its headers if `_GNU_SOURCE` is defined; here for any glibc.
const NEWER_HEADERS: &str = "#ifndef __ASSEMBLER__\n\
    long strtol(const char *, char **, int) __asm__(\"__isoc23_strtol\");\n\
    unsigned long strtoul(const char *, char **, int) __asm__(\"__isoc23_strtoul\");\n\
    #endif\n";

/// Symbols of glibc that an image imports in a version above the floor.
fn too_recent(image: &Path) -> Result<Vec<String>> {
    let mut versioned = 0;
    let mut recent = Vec::new();
    for symbol in symbols("--dyn-syms", image)? {
        let Some((_, version)) = symbol.name.split_once("@GLIBC_") else {
            continue;
        };
        let mut numbers = version.split('.').map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
            return Err(format!("{}: not a version", symbol.name).into());
        };
        versioned += 1;
        if (major, minor) > FLOOR {
            recent.push(symbol.name);
        }
    }
    if versioned == 0 {
        return Err("no symbol has a version of glibc".into());
    }
    Ok(recent)
}

/// Both forms of stubs need no version above the floor, and no library but libc.
fn needs_no_newer_glibc(machine: Machine, flags: &[&str]) -> Result<()> {
    let dir = scratch()?;
    let lists = [("trap.symbols", list_of(NAMES))];
    let plan = plan_or_fail(&trap_manifest(""), &lists, &machine.target())?;
    fs::write(dir.path().join("newer.h"), NEWER_HEADERS)?;
    let flags: Vec<String> = flags
        .iter()
        .map(|flag| flag.replace("{dir}", &dir.path().to_string_lossy()))
        .collect();
    let stubs = Stubs::write(dir.path(), &plan, machine.compiler("c"), &flags)?;
    let extension = dir.path().join("extension.so");
    let source = dir.path().join("extension.c");
    fs::write(
        &source,
        "int trapOpen(void);\nint used(void) { return trapOpen(); }\n",
    )?;
    let mut cc = Command::new(machine.compiler("c"));
    cc.args(["-shared", "-fPIC", "-O1", "-Wl,-z,defs"])
        .arg(&source);
    succeed(cc.arg(stubs.archive()?).arg("-o").arg(&extension))?;
    for image in [extension, stubs.shared(dir.path())?] {
        let recent = too_recent(&image)?;
        assert!(
            recent.is_empty(),
            "{}, {flags:?}: {recent:?}",
            image.display()
        );
        let needed = needed(&image)?;
        assert!(needed.iter().all(|name| name == "libc.so.6"), "{needed:?}");
    }
    Ok(())
}

const FLAGS: [&[&str]; 3] = [
    &[],
    &["-O2", "-D_FORTIFY_SOURCE=3"],
    &["-include", "{dir}/newer.h"],
];

#[test]
fn stubs_need_no_newer_glibc_than_2_17() -> Result<()> {
    FLAGS
        .iter()
        .try_for_each(|flags| needs_no_newer_glibc(Machine::X86_64, flags))
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn stubs_need_no_newer_glibc_than_2_17_on_aarch64() -> Result<()> {
    FLAGS
        .iter()
        .try_for_each(|flags| needs_no_newer_glibc(Machine::Aarch64, flags))
}
