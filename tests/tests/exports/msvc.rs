//! Exports for the ABI of MSVC: CMake with clang-cl and lld-link, and a program that runs under wine.

use std::fs;
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

/// Directories for other targets name theirs, and that of the project.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_cmake_refuses_stubs_for_other_targets() -> Result<()> {
    const GNU: &str = "x86_64-pc-windows-gnu";
    const LINUX: &str = "x86_64-unknown-linux-gnu";
    let dir = scratch()?;
    let project = dir.path().join("project");
    fs::create_dir(&project)?;
    let text = "cmake_minimum_required(VERSION 3.18)\nproject(example C)\nfind_package(gpustub REQUIRED COMPONENTS cudart)\n";
    fs::write(project.join("CMakeLists.txt"), text)?;
    let tools = repository().join("tests/exports");
    let toolchains = [
        (TRIPLE, Some(tools.join("msvc/toolchain.cmake"))),
        (GNU, Some(tools.join("windows/toolchain.cmake"))),
        (LINUX, None),
    ];
    for (exported, form) in [
        (TRIPLE, "--sources-only"),
        (GNU, "--sources-only"),
        (GNU, "--type=static"),
        (LINUX, "--sources-only"),
        (LINUX, "--type=shared"),
    ] {
        let stubs = dir.path().join(format!("{exported}{form}"));
        let mut export = gpustub(&["export", "stubs", "cudart", "--quiet", form])?;
        export.args(["--header-version=none", "--target", exported, "--out-dir"]);
        succeed(export.arg(&stubs).envs(variables()?))?;
        for (triple, toolchain) in &toolchains {
            let build = dir.path().join(format!("{exported}{form} {triple}"));
            let mut cmake = Command::new("cmake");
            cmake.args(["-G", "Ninja", "-S"]).arg(&project);
            cmake.arg("-B").arg(build);
            cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", stubs.display()));
            cmake.args(
                toolchain
                    .iter()
                    .map(|file| format!("-DCMAKE_TOOLCHAIN_FILE={}", file.display())),
            );
            let ran = run(cmake.env("MSVC_LIBRARIES", libraries()?))?;
            let words: Vec<&str> = ran.stderr.split_whitespace().collect();
            let message = words.join(" ");
            let is_accepted = exported == *triple;
            assert_eq!(
                ran.status.success(),
                is_accepted,
                "{exported} {form}, {triple}: {message}"
            );
            if !is_accepted {
                let theirs = format!("has GPU stubs for {exported}:");
                assert!(message.contains(&theirs), "{message}");
                let option = format!("--target {triple}`");
                assert!(message.contains(&option), "{message}");
            }
        }
    }
    Ok(())
}
