//! A program of a device and its hosts, in C, C++, Rust, CUDA and HIP: built as the example's README
//! describes, with the installed files. A kernel in Rust, on a host.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpurpc_tests::cargo::{capi, cargo};
use gpurpc_tests::command::{run, succeed};
use gpurpc_tests::compilers::Clang;
use gpurpc_tests::compilers::TOOLKIT_13;
use gpurpc_tests::components::{component, target_dir};
use gpurpc_tests::readme::{commands, shows};
use gpurpc_tests::{Result, scratch, workspace};

#[test]
#[ignore = "needs pkg-config: ./tests/run"]
fn example_readme_shows_the_real_output() -> Result<()> {
    let dir = scratch()?;
    // Without a space, which the shell would need escaped, unlike the README.
    let root = dir.path().join("example");
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(workspace().join("examples/rpc"));
    succeed(copy.arg(&root))?;
    let manifest = root.join("rust/Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    assert_eq!(text.matches("../../../").count(), 1);
    let here = format!("{}/", workspace().display());
    fs::write(&manifest, text.replace("../../../", &here))?;

    let mut commands = commands("examples/rpc/README.md")?;
    assert_eq!(commands.len(), 9);
    for (command, _) in &mut commands {
        *command = command.replace("../../", &here);
    }
    // Most dependencies are already compiled there.
    let target = target_dir();
    let target = target.to_str().ok_or("the directory's name is not UTF-8")?;
    let variables = [("CARGO_TARGET_DIR", target), ("CARGO_PROFILE", "dev")];
    shows(&commands, &root, &variables)?;

    // The error for a missing directory names it.
    let mut elsewhere = Command::new(target_dir().join("debug/rpc-host"));
    elsewhere.env("LD_LIBRARY_PATH", root.join("installed/lib"));
    let ran = run(elsewhere.current_dir(root.join("rust")))?;
    if ran.status.success() || !ran.stderr.contains("directory `files`: ") {
        return Err(ran.error("an error that names the directory"));
    }
    Ok(())
}

/// The kernel of `examples/rpc-device`, as its README says.
#[test]
fn rust_kernels_run_on_hosts() -> Result<()> {
    let mut tests = cargo(&workspace().join("examples/rpc-device"));
    tests.arg("test").arg("--target-dir").arg(target_dir());
    let ran = succeed(&mut tests)?;
    let passed = "test result: ok. 3 passed; 0 failed; 0 ignored";
    if ran.stdout.contains(passed) {
        Ok(())
    } else {
        Err(ran.error("three tests"))
    }
}

/// Library of the C interface.
fn library() -> Result<PathBuf> {
    Ok(capi()?.join("libgpurpc_capi.a"))
}

/// Runs a program of a GPU. Without a GPU it prints one of these errors.
fn runs_or_reports(program: &Path, errors: &[&str]) -> Result<()> {
    let ran = run(Command::new(program).current_dir(workspace().join("examples/rpc")))?;
    let expected = if ran.status.success() {
        ran.stdout.ends_with("the sum up to 1000 is 500500\n")
    } else {
        errors.contains(&&ran.stderr[..])
    };
    if expected {
        Ok(())
    } else {
        Err(ran.error("neither the sum nor an error about a missing GPU"))
    }
}

/// The device's program also runs on GPUs.
#[test]
#[ignore = "needs nvcc 13: ./tests/run"]
fn nvcc_compiles_the_example_for_a_device() -> Result<()> {
    let dir = scratch()?;
    let program = dir.path().join("on-gpu");
    let mut compile = TOOLKIT_13.nvcc()?;
    compile.args(["-arch=sm_75", "-std=c++17", "-Werror", "all-warnings"]);
    let headers = workspace().join("capi/include");
    compile.arg("-I").arg(headers).arg("-o").arg(&program);
    compile.arg(workspace().join("examples/rpc/cuda.cu"));
    succeed(compile.arg(library()?))?;
    let error = "error: CUDA driver version is insufficient for CUDA runtime version\n";
    runs_or_reports(&program, &[error])
}

/// In the steps of hipcc, which Debian's clang lacks tools for: a code object for each GPU, the program around one of
/// them, and the link.
#[test]
#[ignore = "needs clang 19 and HIP: ./tests/run"]
fn clang_compiles_the_example_for_a_device_of_amd() -> Result<()> {
    let dir = scratch()?;
    let [code, object, program] = ["code", "host.o", "on-gpu"].map(|name| dir.path().join(name));
    let clang = |half: &str| -> Result<Command> {
        let mut clang = Clang::System(19).command()?;
        clang.args(["-x", "hip", "-std=c++17", "-O2", "-nogpuinc", half]);
        clang.args(["-Wall", "-Wextra", "-Werror", "-isystem"]);
        clang.arg(component("hip-5.7/include")?).arg("-I");
        clang.arg(workspace().join("capi/include")).arg("-c");
        clang.arg(workspace().join("examples/rpc/hip.hip"));
        Ok(clang)
    };
    // Wavefronts of 64 and of 32 lanes.
    for machine in ["gfx1030", "gfx90a"] {
        let mut device = clang("--cuda-device-only")?;
        device.arg(format!("--offload-arch={machine}"));
        let mut libraries = OsString::from("--rocm-device-lib-path=");
        libraries.push(component("device-libs-5.2")?);
        device.arg(libraries).arg("--no-gpu-bundle-output");
        succeed(device.arg("-o").arg(&code))?;
        let mut symbols = Command::new("readelf");
        let symbols = succeed(symbols.args(["-sW"]).arg(&code))?.stdout;
        assert!(symbols.contains("program"), "{machine}: {symbols}");
    }
    let mut host = clang("--cuda-host-only")?;
    host.args(["-nogpulib", "-Xclang", "-fcuda-include-gpubinary"]);
    host.arg("-Xclang").arg(&code);
    succeed(host.arg("-o").arg(&object))?;
    let mut link = Command::new("c++");
    link.arg("-o").arg(&program).arg(&object).arg(library()?);
    succeed(link.args(["-l:libamdhip64.so.5", "-lm", "-ldl"]))?;
    runs_or_reports(&program, &["error: hipErrorNoDevice\n"])
}
