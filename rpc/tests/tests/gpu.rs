//! Device code that calls the host, for a machine with a GPU: the test builds it into `gpu` of the target directory, which
//! needs no toolchain, and runs it here, where the loader finds no driver. On a machine with a GPU of NVIDIA, `run.py` of that
//! directory runs it.

use std::fs;
use std::process::Command;

use gpurpc_tests::cargo::loader;
use gpurpc_tests::command::{run, succeed};
use gpurpc_tests::compilers::Clang;
use gpurpc_tests::components::target_dir;
use gpurpc_tests::{Result, workspace};

#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn a_program_for_a_gpu_reports_that_there_is_no_driver() -> Result<()> {
    let bundle = target_dir().join("gpu");
    if bundle.exists() {
        fs::remove_dir_all(&bundle)?;
    }
    fs::create_dir(&bundle)?;
    let sources = workspace().join("tests/gpu");
    let mut clang = Clang::System(19).command()?;
    clang.args(["--target=nvptx64-nvidia-cuda", "-march=sm_70", "-Xclang"]);
    clang.args(["-target-feature", "-Xclang", "+ptx63", "-nogpulib"]);
    clang.args(["-ffreestanding", "-fconvergent-functions", "-O2"]);
    clang.args(["-Wall", "-Wextra", "-Werror", "-I"]);
    clang.arg(workspace().join("capi/include"));
    clang.arg("-S").arg(sources.join("rpc.c")).arg("-o");
    succeed(clang.arg(bundle.join("rpc.ptx")))?;
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(bundle.join("gpurpc-loader"));
    succeed(strip.arg(loader()?))?;
    fs::copy(sources.join("run.py"), bundle.join("run.py"))?;

    let mut loader = Command::new(bundle.join("gpurpc-loader"));
    let ran = run(loader.arg(bundle.join("rpc.ptx")).arg("lines"))?;
    assert_eq!(ran.status.code(), Some(123), "{ran:?}");
    let python = run(Command::new("python3").arg(bundle.join("run.py")))?;
    assert_eq!(python.status.code(), Some(3), "{python:?}");
    Ok(())
}
