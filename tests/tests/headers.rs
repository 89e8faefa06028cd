//! Objects contain a mark of the headers that they were compiled against: objects of incompatible versions
//! do not link, nor objects that contradict `header-version` of GpuStub.toml.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, components};

const ERROR: &str =
    "gpustub_error_incompatible_header_versions_of_cudart__see_header_version_in_GpuStub_toml";

/// Stubs of a library for headers of this version.
fn stubs(dir: &Path, library: &str, header: &str) -> Result<Stubs> {
    let manifest = format!("schema = 1\n[stub.{library}]\nheader-version = \"{header}\"\n");
    let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
    let directory = dir.join("stubs");
    fs::create_dir_all(&directory)?;
    Stubs::write(&directory, &plan, "cc", &[])
}

/// An object compiled against the real `cuda_runtime_api.h` and `cuda.h` of this version.
fn object(dir: &Path, stubs: &Stubs, version: &str, text: &str) -> Result<PathBuf> {
    let wheel = components::component(&format!("wheels/cudart-{version}"))?;
    let header = succeed(Command::new("find").arg(&wheel).args(["-name", "cuda.h"]))?.stdout;
    let headers = Path::new(header.trim())
        .parent()
        .unwrap_or(&wheel)
        .to_owned();
    let source = dir.join(format!("headers-{version}.c"));
    // Included before and after: neither order loses the mark, and twice makes no second.
    let includes = "#include \"gpustub.h\"\n#include <cuda_runtime_api.h>\n#include <cuda.h>\n#include \"gpustub.h\"\n";
    fs::write(&source, format!("{includes}{text}\n"))?;
    let object = source.with_extension("o");
    let mut command = Command::new("cc");
    command
        .args(["-O1", "-Wall", "-Werror", "-c", "-o"])
        .arg(&object);
    command.arg("-I").arg(&stubs.sources).arg("-I").arg(headers);
    // `crt/host_defines.h`, which is in the compiler's wheel.
    let compiler = components::component("wheels/crt")?;
    command.arg("-I").arg(compiler.join("nvidia/cu13/include"));
    succeed(command.arg(&source))?;
    Ok(object)
}

fn link(dir: &Path, inputs: &[&Path], linker: &str) -> Result<Ran> {
    let mut command = Command::new("cc");
    command
        .args(inputs)
        .arg("-Wl,--gc-sections")
        .arg("-o")
        .arg(dir.join("program"));
    run(command.arg(format!("-fuse-ld={linker}")))
}

const MAIN: &str = "int main(void) { return cudaFree(0) == cudaSuccess; }";
const DRIVER: &str = "int main(void) { return cuInit(0) == CUDA_SUCCESS; }";

fn incompatible_headers_are_reported(linker: &str) -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    for (library, header, version, links) in [
        ("cudart", "12", "12.9", true),
        ("cudart", "12.4", "12.9", true),
        ("cudart", "13", "12.9", false),
        ("cudart", "12", "13.0", false),
        ("cudart", "12", "11.8", false),
        ("cudart", "none", "13.0", true),
        // No function of the driver has another ABI variant.
        ("cuda", "12", "13.0", true),
        ("cuda", "13", "12.9", true),
    ] {
        let stubs = stubs(dir, library, header)?;
        let text = if library == "cuda" { DRIVER } else { MAIN };
        let main = object(dir, &stubs, version, text)?;
        let ran = link(dir, &[&main, &stubs.archive()?], linker)?;
        assert_eq!(
            ran.status.success(),
            links,
            "{library} {header} {version}: {ran:?}"
        );
        assert!(links || ran.stderr.contains(ERROR), "{ran:?}");
    }
    let stubs = stubs(dir, "cudart", "none")?;
    let main = object(dir, &stubs, "12.9", MAIN)?;
    let newer = object(dir, &stubs, "13.0", "int other;")?;
    let archive = stubs.archive()?;
    let ran = link(dir, &[&main, &newer, &archive], linker)?;
    assert!(
        !ran.status.success() && ran.stderr.contains(ERROR),
        "{ran:?}"
    );
    let same_version = dir.join("again.o");
    fs::rename(object(dir, &stubs, "12.9", "int other;")?, &same_version)?;
    let main = object(dir, &stubs, "12.9", MAIN)?;
    link(dir, &[&main, &same_version, &archive], linker)?.success()?;
    Ok(())
}

#[test]
#[ignore = "needs the headers of three majors: ./tests/run"]
fn incompatible_headers_do_not_link() -> Result<()> {
    incompatible_headers_are_reported("bfd")
}

#[test]
#[ignore = "needs lld and the headers of three majors: ./tests/run"]
fn incompatible_headers_do_not_link_with_lld() -> Result<()> {
    incompatible_headers_are_reported("lld")
}

#[test]
#[ignore = "needs mold and the headers of three majors: ./tests/run"]
fn incompatible_headers_do_not_link_with_mold() -> Result<()> {
    incompatible_headers_are_reported("mold")
}

#[test]
#[ignore = "needs the headers of three majors: ./tests/run"]
fn incompatible_headers_do_not_link_with_gold() -> Result<()> {
    incompatible_headers_are_reported("gold")
}
