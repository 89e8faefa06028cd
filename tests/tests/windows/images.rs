//! Programs and DLLs with stubs, as Windows loads and ends them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::stubs::{list_of, plan_or_fail, trap_manifest};
use gpustub_tests::wine::{run, target, windows_path};
use gpustub_tests::{Result, repository};

use crate::trial::{Abi, Trial, expect, expect_errors};

/// A program of `tests/programs/windows` with the stubs of one function, and the library.
fn program_with(abi: Abi, source: &str, library: &str) -> Result<Trial> {
    let trial = Trial::with(abi)?;
    trial.library("trap1.dll", library, &[])?;
    let list = trial.functions("trap1.dll")?;
    let archives = [trial.trap_stubs("", &list, None)?];
    let source = format!("programs/windows/{source}.c");
    trial.link("program.exe", &[&source], &archives, &[])?;
    Ok(trial)
}

/// Output of `value.c` with this library, or without one.
fn printed(library: Option<&Path>) -> String {
    match library {
        Some(path) => {
            let path = windows_path(path).replace('\\', "/");
            format!("available 1, functions 1 0, path {path}, reason: \n")
        }
        None => "available 0, functions 0 0, path none, reason: ".to_owned(),
    }
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn libraries_that_a_program_takes() -> Result<()> {
    check_choice(Abi::Gnu)
}

fn check_choice(abi: Abi) -> Result<()> {
    let trial = program_with(abi, "value", "traps/override/lib.c")?;
    let library = trial.dir().join("trap1.dll");
    let elsewhere = trial.dir().join("elsewhere");
    fs::create_dir(&elsewhere)?;
    let decoy = trial.library("elsewhere/trap1.dll", "traps/override/decoy.c", &[])?;
    let beside = trial.run(&[("GPUSTUB_LOG", "1")])?;
    assert_eq!(
        beside.stdout,
        format!("value 1, {}", printed(Some(&library)))
    );
    expect_errors(
        &beside,
        &["gpustub: trap: ", "trap1.dll", "1 functions bound"],
    )?;
    let named = trial.run(&[("GPUSTUB_TRAP_PATH", "{dir}\\elsewhere\\trap1.dll")])?;
    expect(&named, &format!("value 2, {}", printed(Some(&decoy))), "")?;
    for value in ["off", "elsewhere\\trap1.dll", "{dir}\\program.c"] {
        let none = trial.run(&[("GPUSTUB_TRAP_PATH", value)])?;
        let text = format!("value 77, {}", printed(None));
        assert!(none.stdout.starts_with(&text), "{value}: {}", none.stdout);
    }
    fs::remove_file(library)?;
    let mut there = trial.command()?;
    let there = run(there.current_dir(elsewhere))?;
    let text = format!("value 77, {}", printed(None));
    assert!(there.stdout.starts_with(&text), "{}", there.stdout);
    Ok(())
}

/// A DLL for another processor, one that ends in its sections, a program of DOS, a text, and a DLL that needs another.
#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn files_that_are_no_library() -> Result<()> {
    check_files(Abi::Gnu)
}

fn check_files(abi: Abi) -> Result<()> {
    let trial = program_with(abi, "value", "traps/override/lib.c")?;
    let library = trial.dir().join("trap1.dll");
    let mut bytes = fs::read(&library)?;
    let header = usize::try_from(u32::from_le_bytes(bytes[0x3c..0x40].try_into()?))?;
    let whole = bytes.clone();
    let cut = &whole[..header + 0x200];
    let mut dos = whole.clone();
    dos[header..header + 4].fill(0);
    let foreign: u16 = if abi == Abi::Arm64 { 0x8664 } else { 0xaa64 };
    bytes[header + 4..header + 6].copy_from_slice(&foreign.to_le_bytes());
    let needed = b"KERNEL32.dll";
    let name = whole.windows(needed.len()).position(|name| name == needed);
    let name = name.ok_or("no import of KERNEL32.dll")?;
    let mut unmet = whole.clone();
    unmet[name..name + needed.len()].copy_from_slice(b"MISSING2.dll");
    for (bytes, reason) in [
        (&bytes[..], "a library for another processor"),
        (cut, "not a DLL, or a damaged one"),
        (&dos[..], "not a DLL, or a damaged one"),
        (b"text", "not a DLL, or a damaged one"),
        (&unmet[..], "a DLL that it needs is missing"),
    ] {
        fs::write(&library, bytes)?;
        for environment in [&[][..], &[("GPUSTUB_TRAP_PATH", "{dir}\\trap1.dll")]] {
            let ran = trial.run(environment)?;
            if !ran.stdout.contains("value 77") || !ran.stdout.contains(reason) {
                return Err(ran.error(reason));
            }
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn addresses_slots_and_the_last_error() -> Result<()> {
    check_state(Abi::Gnu)
}

fn check_state(abi: Abi) -> Result<()> {
    let trial = Trial::with(abi)?;
    let library = trial.library("trap1.dll", "programs/windows/disturbing.c", &[])?;
    let archives = [trial.trap_stubs("", &trial.functions("trap1.dll")?, None)?];
    let sources = ["programs/windows/state.c", "programs/windows/imported.c"];
    trial.link("program.exe", &sources, &archives, &["-DEXPECTED=1"])?;
    expect(&trial.run(&[])?, "passed\n", "")?;
    fs::remove_file(library)?;
    trial.link("program.exe", &sources, &archives, &["-DEXPECTED=77"])?;
    expect(&trial.run(&[])?, "passed\n", "")
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn stacks_are_whole() -> Result<()> {
    check_stacks(Abi::Gnu)
}

/// The unwinder finds the caller of a first call, from the library's start, and of a traced call.
fn check_stacks(abi: Abi) -> Result<()> {
    let trial = program_with(abi, "backtrace", "programs/windows/frames.c")?;
    expect(&trial.run(&[])?, "passed\n", "")?;
    let traced = trial.run(&[("GPUSTUB_TRACE", "1")])?;
    expect_errors(&traced, &["trap_frames(", "trap_frames = "])
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn missing_functions() -> Result<()> {
    check_missing_functions(Abi::Gnu)
}

fn check_missing_functions(abi: Abi) -> Result<()> {
    let trial = program_with(abi, "newer", "traps/missing-function/lib.c")?;
    trial.library("trap1.dll", "traps/missing-function/lib.c", &["-DOLDER"])?;
    expect(&trial.run(&[])?, "passed\n", "")
}

/// A program, and a DLL that it loads, each with stubs and a run time of its own.
fn host_and_plugin(abi: Abi, host: &[&str], plugin: &[&str]) -> Result<String> {
    let trial = Trial::with(abi)?;
    trial.library("guest.dll", "traps/late-destructor/guest.c", &[])?;
    trial.library("trap1.dll", "programs/windows/ending.c", &[])?;
    let archives = [trial.trap_stubs("", &trial.functions("trap1.dll")?, None)?];
    let source = ["programs/windows/plugin.c"];
    trial.link(
        "plugin.dll",
        &source,
        &archives,
        &[&["-shared"], plugin].concat(),
    )?;
    let source = ["programs/windows/host.c"];
    let flags = [&["guest.dll"], host].concat();
    trial.link("program.exe", &source, &archives, &flags)?;
    Ok(trial.run(&[])?.stdout)
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn calls_at_the_end_of_the_process() -> Result<()> {
    check_end_of_process(Abi::Gnu)
}

fn check_end_of_process(abi: Abi) -> Result<()> {
    assert_eq!(
        host_and_plugin(abi, &[], &[])?,
        "plugin: 42\nprogram: 42\nprogram ends: 42\nlibrary ends\nplugin ends: 77\nguest ends: 77\n"
    );
    Ok(())
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn calls_at_the_end_of_a_dll() -> Result<()> {
    check_end_of_dll(Abi::Gnu)
}

fn check_end_of_dll(abi: Abi) -> Result<()> {
    let cycles = "plugin: 42\nplugin ends: 77\n".repeat(20);
    assert_eq!(
        host_and_plugin(abi, &["-DCYCLES=20"], &[])?,
        format!("{cycles}program: 42\nprogram ends: 42\nlibrary ends\nguest ends: 77\n")
    );
    Ok(())
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn a_first_call_in_dll_main() -> Result<()> {
    check_dll_main(Abi::Gnu)
}

fn check_dll_main(abi: Abi) -> Result<()> {
    let printed = host_and_plugin(abi, &[], &["-DIN_DLLMAIN"])?;
    assert!(
        printed.starts_with("DllMain: 42\nplugin: 42\n"),
        "{printed}"
    );
    Ok(())
}

/// The size of a program without symbols.
fn stripped_size(program: &Path) -> Result<u64> {
    succeed(Command::new("x86_64-w64-mingw32-strip").arg(program))?;
    Ok(fs::metadata(program)?.len())
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn unused_functions_leave_nothing() -> Result<()> {
    let mut sizes = Vec::new();
    for count in [0, 500] {
        let trial = Trial::new()?;
        let names = (0..count).map(|number| format!("trap_unused{number}"));
        let text = list_of(names.chain(["trap_value".to_owned()]));
        let archives: [PathBuf; 1] = [trial.trap_stubs_of_list("", &text)?];
        let source = ["programs/windows/value.c"];
        sizes.push(stripped_size(&trial.link(
            "program.exe",
            &source,
            &archives,
            &[],
        )?)?);
    }
    assert_eq!(sizes[0], sizes[1]);
    Ok(())
}

/// Stubs that two packages declare for different headers do not link.
#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn incompatible_headers_do_not_link() -> Result<()> {
    let trial = Trial::new()?;
    let mut archives = Vec::new();
    for version in ["11.4", "12.9"] {
        let manifest = format!("schema = 1\n[stub.cudart]\nheader-version = \"{version}\"\n");
        archives.push(trial.stubs(version, &manifest)?);
    }
    let mut command = trial.compile("program.exe", &["programs/windows/count.c"], &[]);
    command.arg("-Wl,--whole-archive").args(&archives);
    let ran = gpustub_tests::command::run(command.arg("-Wl,--no-whole-archive"))?;
    if ran.status.success()
        || !ran
            .stderr
            .contains("gpustub_error_incompatible_header_versions_of_cudart")
    {
        return Err(ran.error("it links"));
    }
    Ok(())
}

/// Without the ends of DLLs: zig exports `atexit` from those that name no exports, and does not link what imports it.
#[test]
#[ignore = "needs zig and wine for ARM64: tests/run --all"]
fn heavy_images_for_arm64() -> Result<()> {
    let checks = [
        check_choice,
        check_files,
        check_state,
        check_stacks,
        check_missing_functions,
    ];
    checks.iter().try_for_each(|check| check(Abi::Arm64))
}

/// Structs that a missing function returns, and out-parameters behind arguments that Windows passes otherwise.
#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn structs_of_missing_functions() -> Result<()> {
    let trial = Trial::new()?;
    let list = fs::read_to_string(repository().join("tests/programs/results.symbols"))?;
    let keys = "zero-out = { trap_twelve = [{ arg = 0, size = 4 }], trap_pair = [{ arg = 1, size = 4 }], \
                trap_large = [{ arg = 0, size = 4 }], trap_mixed = [{ arg = 1, position = 3, size = 4 }] }";
    let plan = plan_or_fail(&trap_manifest(keys), &[("trap.symbols", list)], &target())?;
    let archives = [trial.stubs_of("", &plan)?];
    let source = ["programs/results.c"];
    trial.link("program.exe", &source, &archives, &["-DMIXED"])?;
    expect(&trial.run(&[])?, "passed\n", "")
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn shipped_functions_that_are_missing() -> Result<()> {
    let trial = Trial::new()?;
    let manifest = "schema = 1\n[stub.cublas]\n[stub.cuda]\nheader-version = \"12\"\n[stub.cudart]\n\
                    header-version = \"12\"\n[stub.curand]\n";
    let archives = [trial.stubs("", manifest)?];
    trial.link(
        "program.exe",
        &["programs/windows/results.c"],
        &archives,
        &[],
    )?;
    expect(&trial.run(&[])?, "passed\n", "")
}
