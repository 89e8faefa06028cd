//! Exports for the ABI of MSVC: CMake with clang-cl and lld-link, and a program that runs under wine.

use std::path::Path;
use std::process::Command;

use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::msvc::{TRIPLE, libraries, variables};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

use super::windows::{nvrtc, output};

/// Builds the project of `tests/exports/msvc` in `dir`; returns the run of CMake.
fn configure(dir: &Path, stubs: &Path) -> Result<Command> {
    let project = repository().join("tests/exports/msvc");
    let mut cmake = Command::new("cmake");
    cmake.args(["-G", "Ninja", "-S"]).arg(&project);
    cmake.arg("-B").arg(dir.join("build"));
    for (name, value) in [
        ("CMAKE_BUILD_TYPE", "Release".into()),
        (
            "CMAKE_TOOLCHAIN_FILE",
            project.join("toolchain.cmake").display().to_string(),
        ),
        ("CMAKE_PREFIX_PATH", stubs.display().to_string()),
    ] {
        cmake.arg(format!("-D{name}={value}"));
    }
    cmake.env("MSVC_LIBRARIES", libraries()?);
    Ok(cmake)
}

#[test]
#[ignore = "needs CMake, clang, lld, llvm 19, mingw-w64 and wine: ./tests/run"]
fn cmake_builds_programs_of_msvc() -> Result<()> {
    for form in [&[][..], &["--sources-only"]] {
        let dir = scratch()?;
        let stubs = dir.path().join("stubs");
        let words = ["export", "stubs", "cuda", "cudart", "nvrtc", "--quiet"];
        let mut export = gpustub(&[&words, form].concat())?;
        export.args(["--header-version=none", "--target", TRIPLE, "--out-dir"]);
        succeed(export.arg(&stubs).envs(variables()?))?;
        succeed(&mut configure(dir.path(), &stubs)?)?;
        let build = dir.path().join("build");
        succeed(Command::new("cmake").arg("--build").arg(&build))?;
        let program = build.join("program.exe");
        assert_eq!(
            output(&program, &[])?,
            "no CUDA\nno NVRTC\nnot available\n",
            "{form:?}"
        );
        let library = nvrtc(dir.path())?;
        assert_eq!(
            output(&program, &[("GPUSTUB_NVRTC_PATH", &library)])?,
            "no CUDA\nNVRTC 12.9\navailable\n",
            "{form:?}"
        );
    }
    Ok(())
}

/// The directory for GCC's ABI names the other one.
#[test]
#[ignore = "needs CMake, clang, lld and llvm 19: ./tests/run"]
fn cmake_refuses_stubs_of_mingw() -> Result<()> {
    let dir = scratch()?;
    let stubs = dir.path().join("stubs");
    let words = ["export", "stubs", "cuda", "cudart", "nvrtc", "--quiet"];
    let mut export = gpustub(&words)?;
    export.args(["--sources-only", "--header-version=none", "--out-dir"]);
    succeed(
        export
            .arg(&stubs)
            .args(["--target", "x86_64-pc-windows-gnu"]),
    )?;
    let reported = run(&mut configure(dir.path(), &stubs)?)?;
    assert!(!reported.status.success());
    assert!(
        reported.stderr.contains("--target x86_64-pc-windows-msvc"),
        "{}",
        reported.stderr
    );
    Ok(())
}
