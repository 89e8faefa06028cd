//! Programs for a machine with a GPU: `tests/gpu`. The test builds them into `target/gpu`, a directory that needs no
//! toolchain, and runs them here, where they find no device. On a machine with a GPU of NVIDIA, `run.py` of that directory
//! compares them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::{component, target_dir, wheel_libraries};
use gpustub_tests::device_properties::{Release, attributes};
use gpustub_tests::nvcc::{self, TOOLKIT_11, TOOLKIT_12, TOOLKIT_13, Toolkit};
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, repository};

/// Runtimes in the bundle, by their components.
const RUNTIMES: [&str; 6] = ["11.8", "12.0", "12.4", "12.9", "13.0", "13.5"];

/// Programs that print the properties of a device, by version of their headers.
const PROPERTIES: [&str; 4] = ["11.8", "12.9", "13.0", "13.5"];

/// Libraries of `libraries.c` and components with their headers.
const LIBRARIES: [(&str, &str); 8] = [
    ("cuda", "cudart-12.9"),
    ("cudart", "cudart-12.9"),
    ("cublas", "cublas"),
    ("cufft", "cufft-12.9"),
    ("curand", "curand-12.9"),
    ("cusparse", "cusparse-12.9"),
    ("cusolver", "cusolver-12.9"),
    ("nvrtc", "nvrtc-12.9"),
];

/// Exit code of programs and of `run.py` without a device.
const NO_DEVICE: i32 = 3;

fn source(name: &str) -> PathBuf {
    repository().join("tests/gpu").join(name)
}

/// Stubs of these libraries for a program with headers of one version.
fn stubs(dir: &Path, libraries: &[&str], version: &str) -> Result<PathBuf> {
    let tables = libraries
        .iter()
        .map(|id| format!("[stub.{id}]\nheader-version = \"{version}\"\n"));
    let manifest = format!("schema = 1\n{}", tables.collect::<String>());
    let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
    Stubs::write(dir, &plan, "cc", &[])?.archive()
}

/// Work through the runtime: a program with stubs, and one linked with the runtime of its headers.
fn runtime_programs(dir: &Path, bundle: &Path, toolkit: Toolkit) -> Result<()> {
    let dir = dir.join(toolkit.version);
    let bundle = bundle.join("runtime").join(toolkit.version);
    fs::create_dir_all(&dir)?;
    fs::create_dir_all(&bundle)?;
    let object = dir.join("runtime.o");
    let mut nvcc = toolkit.nvcc()?;
    nvcc.args(["-std=c++17", "-cudart", "shared"]);
    nvcc.args(["sm_80", "sm_90"].map(|arch| {
        let number = &arch[3..];
        format!("-gencode=arch=compute_{number},code={arch}")
    }));
    // PTX for other GPUs.
    nvcc.arg("-gencode=arch=compute_80,code=compute_80");
    nvcc.arg("-allow-unsupported-compiler");
    nvcc.arg("-c").arg(source("runtime.cu")).arg("-o");
    succeed(nvcc.arg(&object))?;
    let link = |program: &str, with: &Path| {
        let mut link = Command::new("c++");
        link.arg(&object).arg(with).args(["-s", "-ldl", "-o"]);
        succeed(link.arg(bundle.join(program)))
    };
    link("stubs", &stubs(&dir, &["cuda", "cudart"], toolkit.version)?)?;
    link("direct", &nvcc::runtime(toolkit.version)?)?;
    Ok(())
}

/// Calls of libraries of one toolkit, and the cost of calls.
fn library_programs(dir: &Path, bundle: &Path) -> Result<()> {
    let dir = dir.join("libraries");
    // cuda_fp16.h includes it, a header of C++ that is in no package of C headers.
    fs::create_dir_all(dir.join("nv"))?;
    fs::write(dir.join("nv/target"), "")?;
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Werror", "-isystem"]).arg(&dir);
    for (_, wheel) in LIBRARIES {
        let include = wheel_libraries(wheel)?.with_file_name("include");
        cc.arg("-isystem").arg(include);
    }
    let crt = component("wheels/crt/nvidia/cu13/include")?;
    cc.arg("-isystem").arg(crt);
    cc.arg(source("libraries.c"));
    cc.arg(stubs(&dir, &LIBRARIES.map(|(id, _)| id), "12.9")?);
    succeed(
        cc.args(["-s", "-ldl", "-lm", "-o"])
            .arg(bundle.join("libraries-12.9")),
    )?;
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Werror"]).arg(source("calls.c"));
    cc.arg(stubs(&dir.join("calls"), &["cudart"], "12.9")?);
    succeed(cc.args(["-s", "-ldl", "-o"]).arg(bundle.join("calls")))?;
    Ok(())
}

/// Builds all programs that `run.py` runs.
fn build(bundle: &Path) -> Result<()> {
    if bundle.exists() {
        fs::remove_dir_all(bundle)?;
    }
    let dir = scratch()?;
    let dir = dir.path();
    for version in RUNTIMES {
        let library = nvcc::runtime(version)?;
        let to = bundle.join("lib").join(version);
        fs::create_dir_all(&to)?;
        fs::copy(&library, to.join(library.file_name().ok_or("no name")?))?;
    }
    for toolkit in [TOOLKIT_11, TOOLKIT_12, TOOLKIT_13] {
        runtime_programs(dir, bundle, toolkit)?;
    }
    let releases = dir.join("properties");
    fs::create_dir(&releases)?;
    for version in PROPERTIES {
        let release = Release::new(&releases, version, &attributes()?)?;
        let to = bundle.join("properties").join(version);
        fs::create_dir_all(&to)?;
        fs::copy(&release.stubbed, to.join("stubs"))?;
        fs::copy(&release.direct, to.join("direct"))?;
    }
    library_programs(dir, bundle)?;
    fs::copy(source("run.py"), bundle.join("run.py"))?;
    Ok(())
}

#[test]
#[ignore = "needs three toolkits of CUDA: ./tests/run --all"]
fn heavy_programs_for_a_gpu_report_that_there_is_none() -> Result<()> {
    let bundle = target_dir().join("gpu");
    build(&bundle)?;
    let python = run(Command::new("python3").arg(bundle.join("run.py")))?;
    assert_eq!(python.status.code(), Some(NO_DEVICE), "{python:?}");
    assert!(python.stdout.contains("cudaGetDeviceCount"), "{python:?}");
    for (program, words) in [("libraries-12.9", &[][..]), ("calls", &["none"])] {
        let ran = run(Command::new(bundle.join(program)).args(words))?;
        assert_eq!(ran.status.code(), Some(NO_DEVICE), "{ran:?}");
        assert_eq!(ran.stdout, "no device\n");
    }
    Ok(())
}
