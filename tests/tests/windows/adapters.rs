//! Functions whose ABI differs between the program's headers and the library.

use std::path::Path;
use std::process::Command;

use gpustub_core::library::override_variable;
use gpustub_tests::command::succeed;
use gpustub_tests::device_properties::{Release, attributes};
use gpustub_tests::scratch::scratch;
use gpustub_tests::wine::{compiler, run, windows_path};
use gpustub_tests::{Result, repository};

use crate::trial::{Trial, expect};

/// Version of the driver that the fakes report.
const DRIVER: (&str, &str) = ("FAKE_DRIVER", "12030");

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn null_arguments_and_other_names() -> Result<()> {
    let trial = Trial::new()?;
    trial.library("trap1.dll", "traps/adapted/lib.c", &["-DNO_FRAMES"])?;
    let mut list = trial.functions("trap1.dll")?;
    // The program calls it by its adapter only.
    list.symbols.retain(|symbol| symbol.name != "trap_frames");
    let archives = [trial.trap_stubs("", &list, Some("traps/adapted/trap.abi"))?];
    trial.link(
        "program.exe",
        &["programs/windows/adapted.c"],
        &archives,
        &[],
    )?;
    expect(&trial.run(&[])?, "passed\n", "")
}

/// Output that a source of `tests/device-properties` is compiled to, with the real headers of a release.
fn compile(release: &Release, output: &Path, source: &str, more: &[&str]) -> Result<()> {
    let headers = release.real.parent().ok_or("no directory")?;
    let generated = release.fake.parent().ok_or("no directory")?;
    let mut gcc = Command::new(compiler("c"));
    gcc.args(["-O1", "-static-libgcc", "-o"]).arg(output);
    gcc.arg("-I").arg(generated);
    gcc.arg("-isystem").arg(repository().join("xtask/headers"));
    gcc.arg("-isystem").arg(headers.with_file_name("include"));
    gcc.arg(repository().join("tests/device-properties").join(source));
    succeed(gcc.args(more))?;
    Ok(())
}

/// `cudaGetDeviceProperties` between two majors, by fake DLLs with the real headers: a program prints what it prints on
/// Linux, which the suite `device_properties` proves.
#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn device_properties_are_those_of_linux() -> Result<()> {
    let dir = scratch()?;
    let attributes = attributes()?;
    let mut releases = Vec::new();
    for version in ["12.9", "13.5"] {
        let release = Release::new(dir.path(), version, &attributes)?;
        let trial = Trial::new()?;
        let manifest = format!("schema = 1\n[stub.cudart]\nheader-version = \"{version}\"\n");
        let stubs = trial.stubs("", &manifest)?;
        let archive = stubs.to_string_lossy();
        let flags = [
            "-Wl,--whole-archive",
            &archive,
            "-Wl,--no-whole-archive,--gc-sections",
        ];
        compile(
            &release,
            &trial.dir().join("program.exe"),
            "program.c",
            &flags,
        )?;
        compile(
            &release,
            &trial.dir().join("cudart.dll"),
            "fake.c",
            &["-shared"],
        )?;
        releases.push((release, trial));
    }
    let variable = override_variable("cudart");
    for (program, trial) in &releases {
        for (library, other) in &releases {
            let mut linux = Command::new(&program.stubbed);
            linux.env(&variable, &library.fake);
            let linux = succeed(linux.env(DRIVER.0, DRIVER.1))?;
            let mut windows = trial.command()?;
            let path = windows_path(&other.dir().join("cudart.dll"));
            windows.env(&variable, path).env(DRIVER.0, DRIVER.1);
            let windows = run(&mut windows)?.success()?;
            assert!(linux.stdout.contains("code 0\n"), "{}", linux.stdout);
            assert_eq!(linux.stdout, windows.stdout);
        }
    }
    Ok(())
}
