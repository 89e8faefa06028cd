//! The program of the loader's README, run by a fake driver and compiled for GPUs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use gpustub_tests::command::{run, succeed};
use gpustub_tests::nvcc::TOOLKIT_13;
use gpustub_tests::{Result, repository};

use crate::{Bench, CUDA, Driver, HIP, compile};

/// Path of the README's program.
fn hello() -> PathBuf {
    repository().join("rpc/loader/programs/hello.c")
}

#[test]
fn readme_program_prints_hello() -> Result<()> {
    let bench = Bench::new()?;
    compile(&hello(), &bench.path("hello.so"), &["-Wpedantic"])?;
    let mut command = bench.loader(&CUDA)?;
    command.args(["--runtime", "cuda", "--timeout", "300", "--threads", "2"]);
    let ran = succeed(command.arg(bench.path("hello.so")))?;
    // A warp of the host has one lane.
    assert_eq!(ran.stdout, "hello from lane 00\nhello from lane 00\n");
    Ok(())
}

/// Compiles the README's program by each of these commands, and runs the loader, which detects the
/// image's runtime: the fake driver loads no such image.
fn known(commands: impl IntoIterator<Item = Command>, name: &str, driver: &Driver) -> Result<()> {
    let bench = Bench::new()?;
    for mut compile in commands {
        let image = bench.path(name);
        compile.arg("-I").arg(repository().join("rpc/capi/include"));
        succeed(compile.arg("-o").arg(&image).arg(hello()))?;
        let code = fs::read(&image)?;
        let code = String::from_utf8_lossy(&code);
        assert!(
            code.contains("_start") && code.contains("__llvm_rpc_client"),
            "{name}"
        );
        if name.ends_with(".ptx") {
            assert!(code.contains(".visible .entry _start("), "{code}");
            assert!(
                code.contains(".visible .global .align 8 .b8 __llvm_rpc_client[552]"),
                "{code}"
            );
        }
        let ran = run(bench.loader(driver)?.arg(&image))?;
        assert_eq!(ran.status.code(), Some(126), "{}", ran.stderr);
        let calls = bench.calls()?;
        assert!(
            calls
                .last()
                .is_some_and(|call| call.contains("ModuleLoadData")),
            "{calls:?}"
        );
    }
    Ok(())
}

#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn clang_compiles_the_program_of_the_readme() -> Result<()> {
    let clang = |words: &[&str]| {
        [["-x", "c", "-std=c11"], ["-x", "c++", "-std=c++17"]].map(|language| {
            let mut clang = Command::new("clang-19");
            clang
                .args(language)
                .args(["-Wall", "-Wextra", "-Werror", "-O2"])
                .args(words);
            clang.args(["-nogpulib", "-ffreestanding", "-fconvergent-functions"]);
            clang
        })
    };
    let ptx = ["-Xclang", "-target-feature", "-Xclang", "+ptx63", "-S"];
    let nvptx = [&["--target=nvptx64-nvidia-cuda", "-march=sm_70"], &ptx[..]].concat();
    known(clang(&nvptx), "hello.ptx", &CUDA)?;
    let amdgcn = ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a"];
    known(clang(&amdgcn), "hello", &HIP)
}

#[test]
#[ignore = "needs nvcc 13: ./tests/run"]
fn nvcc_compiles_the_program_of_the_readme() -> Result<()> {
    // In a whole program, nvcc hides variables.
    for (form, name) in [
        (&["-ptx", "-rdc=true"][..], "hello.ptx"),
        (&["-cubin"], "hello.cubin"),
        (&["-fatbin"], "hello.fatbin"),
    ] {
        let mut nvcc = TOOLKIT_13.nvcc()?;
        nvcc.args(["-x", "cu", "-arch=sm_75", "-std=c++17"])
            .args(form);
        known([nvcc], name, &CUDA)?;
    }
    Ok(())
}
