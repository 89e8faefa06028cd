//! Packages that compile for both ABIs of Windows, and their unit tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::wine::{PROGRAM, TRIPLE, install_random_numbers, variables};

use crate::host::{cross_cargo, target};

/// Tests that run clang or cargo of this machine.
const SKIPPED: [&str; 3] = [
    "bitcode::",
    "find_agrees_with_cargo",
    "definitions::bitcode",
];

#[test]
#[ignore = "downloads a standard library: tests/run --all"]
fn heavy_unit_tests_pass() -> Result<()> {
    let dir = scratch()?;
    let runner = dir.path().join("runner");
    fs::write(
        &runner,
        format!("#!/bin/sh\nexec timeout 300 {PROGRAM} \"$@\"\n"),
    )?;
    fs::set_permissions(&runner, fs::Permissions::from_mode(0o755))?;
    let mut cargo = cross_cargo(TRIPLE)?;
    cargo.args(["test", "--quiet", "--target", TRIPLE, "--lib"]);
    for package in [
        "gpustub-archive",
        "gpustub-check",
        "gpustub-core",
        "gpustub-image",
        "gpustub-repair",
        "gpustub-superarchive",
        "gpustub-workspace",
    ] {
        cargo.args(["--package", package]);
    }
    cargo
        .envs(variables()?)
        .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", &runner);
    let programs = target().join(TRIPLE).join("debug/deps");
    fs::create_dir_all(&programs)?;
    install_random_numbers(&programs)?;
    cargo
        .arg("--")
        .args(SKIPPED.map(|name| format!("--skip={name}")));
    succeed(&mut cargo)?;
    Ok(())
}

/// The C code of dependencies is compiled with the headers of MinGW, as only Microsoft's SDK has those for this ABI: nothing
/// links it.
#[test]
#[ignore = "downloads a standard library: tests/run --all"]
fn heavy_packages_compile_for_msvc() -> Result<()> {
    const MSVC: &str = "x86_64-pc-windows-msvc";
    let mut cargo = cross_cargo(MSVC)?;
    cargo.args(["check", "--quiet", "--target", MSVC]);
    for package in [
        "cargo-gpustub",
        "gpustub-build",
        "gpustub",
        "gpustub-archive",
    ] {
        cargo.args(["--package", package]);
    }
    cargo.env("CC_x86_64_pc_windows_msvc", "clang-19");
    cargo.env("AR_x86_64_pc_windows_msvc", "llvm-ar-19");
    cargo.env(
        "CFLAGS_x86_64_pc_windows_msvc",
        "--target=x86_64-w64-mingw32",
    );
    succeed(&mut cargo)?;
    Ok(())
}
