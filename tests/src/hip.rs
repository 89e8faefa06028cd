//! ROCm in AMD's layout, of Debian's packages, which are not installed; the compiler is that of LLVM 19.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::components::component;

/// Directory of clang and its tools.
const TOOLS: &str = "/usr/lib/llvm-19/bin";

/// Makes a directory of ROCm.
pub fn install(root: &Path) -> Result<()> {
    fs::create_dir_all(root.join("amdgcn"))?;
    fs::create_dir_all(root.join("share/hip"))?;
    symlink(component("hip-5.2/include")?, root.join("include"))?;
    symlink(component("device-libs-5.2")?, root.join("amdgcn/bitcode"))?;
    let version = "HIP_VERSION_MAJOR=5\nHIP_VERSION_MINOR=2\nHIP_VERSION_PATCH=21153\n";
    fs::write(root.join("share/hip/version"), version)?;
    Ok(())
}

/// clang for relocatable code of `gfx90a`, with this directory of ROCm.
pub fn clang(rocm: &Path) -> Command {
    let mut clang = Command::new(Path::new(TOOLS).join("clang++"));
    clang.arg(format!("--rocm-path={}", rocm.display()));
    clang.args([
        "--no-offload-new-driver",
        "-fgpu-rdc",
        "--offload-arch=gfx90a",
    ]);
    let path = std::env::var("PATH").unwrap_or_default();
    clang.env("PATH", format!("{TOOLS}:{path}"));
    clang
}
