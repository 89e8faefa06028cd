//! `export stubs --soname` and `--for`: unchanged programs over stubs with the name of the real library.

mod binding;
mod crates;
mod data;
mod importers;
mod page;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{Ran, succeed};
use gpustub_tests::{Result, repository};

/// Program of the CUDA runtime, in C.
const SOURCE: &str = "tests/programs/finished.c";

/// Runs `export stubs` with these options into `out`.
fn export(out: &Path, options: &[&str]) -> Result<Ran> {
    let mut command = gpustub(&["export", "stubs", "--out-dir"])?;
    succeed(command.arg(out).args(options))
}

/// Shared library of one C file, with this soname and version script.
fn library(dir: &Path, soname: &str, source: &str, script: &str) -> Result<PathBuf> {
    fs::create_dir_all(dir)?;
    let (c, map) = (dir.join("library.c"), dir.join("library.map"));
    fs::write(&c, source)?;
    fs::write(&map, script)?;
    let file = dir.join(soname);
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&file).arg(c);
    cc.arg(format!("-Wl,-soname,{soname}"));
    if !script.is_empty() {
        cc.arg(format!("-Wl,--version-script={}", map.display()));
    }
    succeed(&mut cc)?;
    Ok(file)
}

/// A CUDA runtime as a toolkit has it: one version node, which is the soname.
fn fake_runtime(dir: &Path) -> Result<PathBuf> {
    let source = "int cudaGetDeviceCount(int *n) { *n = 3; return 0; }\n\
                  int cudaRuntimeGetVersion(int *v) { *v = 12080; return 0; }\n\
                  const char *cudaGetErrorName(int e) { return e ? \"error\" : \"cudaSuccess\"; }\n\
                  int cudaBindTexture(void) { return 0; }\n";
    library(
        dir,
        "libcudart.so.12",
        source,
        "libcudart.so.12 { global: cuda*; local: *; };\n",
    )
}

/// The program, linked to that library: a finished program.
fn finished(dir: &Path, runtime: &Path) -> Result<PathBuf> {
    let program = dir.join("program");
    let mut cc = Command::new("cc");
    cc.arg(repository().join(SOURCE)).arg(runtime);
    succeed(cc.args(["-ldl", "-o"]).arg(&program))?;
    Ok(program)
}
