//! Crates of the registry that open GPU libraries themselves: cudarc with `dynamic-loading`, cubecl-hip-sys,
//! opencl3 and nvml-wrapper, unchanged, with the stubs that `docs/finished-programs.md` makes for them.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::{cargo, gpustub};
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::components::{component, target_dir, wheel_libraries};
use gpustub_tests::readme::commands;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

use super::page::PAGE;

/// Builds the programs, and returns their directory.
fn programs() -> Result<PathBuf> {
    let target = target_dir().join("soname-stubs");
    let project = repository().join("tests/fixtures/soname-stubs");
    let mut build = cargo(&project);
    build.args(["build", "--quiet", "--locked", "--target-dir"]);
    for variable in [
        "ROCM_PATH",
        "HIP_PATH",
        "CUDA_PATH",
        "CUDA_HOME",
        "CUDA_ROOT",
    ] {
        build.env_remove(variable);
    }
    succeed(build.arg(&target))?;
    Ok(target.join("debug"))
}

/// The program that uses a crate.
fn program(programs: &Path, name: &str) -> PathBuf {
    programs.join(format!("uses-{name}"))
}

/// Carries out the commands of the page that make soname stubs, in `dir`.
fn stubs(dir: &Path) -> Result<PathBuf> {
    for (line, _) in commands(PAGE)? {
        let is_export = line.contains("--soname") && !line.contains("--for");
        let Some(words) = line.strip_prefix("cargo gpustub ").filter(|_| is_export) else {
            continue;
        };
        let words: Vec<&str> = words.split(' ').collect();
        succeed(gpustub(&words)?.arg("--quiet").current_dir(dir))?;
    }
    Ok(dir.join("stubs/lib"))
}

/// Runs a program with these directories as the loader's path.
fn start(program: &Path, path: &[&Path], more: &[(&str, &str)]) -> Result<Ran> {
    let path: Vec<OsString> = path.iter().map(Into::into).collect();
    let mut command = Command::new(program);
    for variable in ["ROCM_PATH", "HIP_PATH", "CUDA_PATH", "CUDA_HOME"] {
        command.env_remove(variable);
    }
    command.env("LD_LIBRARY_PATH", path.join(&OsString::from(":")));
    run(command.envs(more.iter().copied()))
}

/// Lines of a program that succeeds.
fn lines(program: &Path, path: &[&Path], more: &[(&str, &str)]) -> Result<Vec<String>> {
    let ran = start(program, path, more)?.success()?;
    Ok(ran.stdout.lines().map(str::to_owned).collect())
}

#[test]
#[ignore = "needs crates from the registry, PoCL, HIP and real libraries: ./tests/run"]
fn crates_that_open_libraries_get_errors_or_the_library() -> Result<()> {
    let programs = programs()?;
    let dir = scratch()?;
    let stubs = stubs(dir.path())?;

    // Before: a panic, an abort, errors of the loader. OpenCL and HIP are installed here.
    let ran = start(&program(&programs, "cudarc"), &[], &[])?;
    assert_eq!(ran.status.code(), Some(101), "{ran:?}");
    assert!(ran.stderr.contains("Unable to dynamically load"), "{ran:?}");
    let ran = start(&program(&programs, "hip"), &[], &[])?;
    assert!(ran.status.signal().is_some(), "{ran:?}");
    assert!(
        ran.stderr.contains("libamdhip64.so: cannot open"),
        "{ran:?}"
    );
    let driver = component("driver-550")?;
    for path in [&[][..], &[driver.as_path()]] {
        let ran = start(&program(&programs, "nvml"), path, &[])?;
        let why = "libnvidia-ml.so: cannot open shared object file";
        assert!(ran.stdout.contains(why), "{ran:?}");
    }

    // After: the errors of the APIs.
    let off = [
        ("GPUSTUB_CUDA_PATH", "off"),
        ("GPUSTUB_CUDART_PATH", "off"),
        ("GPUSTUB_HIP_PATH", "off"),
        ("GPUSTUB_HIPRTC_PATH", "off"),
        ("GPUSTUB_NVML_PATH", "off"),
        ("GPUSTUB_NVRTC_PATH", "off"),
        ("GPUSTUB_OPENCL_PATH", "off"),
    ];
    for (name, expected) in [
        (
            "cudarc",
            &[
                "cuInit Err(CUDA_ERROR_NO_DEVICE)",
                "cudaGetDeviceCount Err(cudaErrorInsufficientDriver)",
                "nvrtc CreationError(NvrtcError(NVRTC_ERROR_INTERNAL_ERROR))",
            ][..],
        ),
        (
            "hip",
            &[
                "hipGetDeviceCount 100 0",
                "hipRuntimeGetVersion 100 false",
                "hiprtcCreateProgram 11 false",
            ],
        ),
        ("opencl3", &["sum Err(-1001)"]),
        ("nvml", &["Err(LibraryNotFound)"]),
    ] {
        assert_eq!(
            lines(&program(&programs, name), &[&stubs], &off)?,
            expected,
            "{name}"
        );
    }

    // Real work with the libraries.
    let nvrtc = wheel_libraries("nvrtc-12.9")?;
    let output = lines(&program(&programs, "cudarc"), &[&stubs, &nvrtc], &[])?;
    assert_eq!(
        output.last().map(String::as_str),
        Some("nvrtc .target sm_52 true")
    );
    let nvrtc = wheel_libraries("nvrtc-13.5")?;
    let output = lines(&program(&programs, "cudarc"), &[&stubs, &nvrtc], &[])?;
    assert_eq!(
        output.last().map(String::as_str),
        Some("nvrtc .target sm_75 true")
    );
    let output = lines(&program(&programs, "hip"), &[&stubs], &[])?;
    let expected = [
        "hipGetDeviceCount 100 0",
        "hipRuntimeGetVersion 0 true",
        "hiprtcCreateProgram 0 true",
    ];
    assert_eq!(output, expected);
    assert_eq!(
        lines(&program(&programs, "opencl3"), &[&stubs], &[])?,
        ["sum Ok(6048)"]
    );
    let output = lines(&program(&programs, "nvml"), &[&stubs, &driver], &[])?;
    assert_eq!(output, ["Err(DriverNotLoaded)"]);

    // The files that answered.
    let runtime = wheel_libraries("cudart-12.9")?;
    let path = [stubs.as_path(), &driver, &runtime];
    let ran = start(
        &program(&programs, "cudarc"),
        &path,
        &[("GPUSTUB_LOG", "1")],
    )?
    .success()?;
    for (library, file) in [
        ("cuda", driver.join("libcuda.so.1")),
        ("cudart", runtime.join("libcudart.so.12")),
    ] {
        let bound = format!("gpustub: {library}: {}, version 12.", file.display());
        assert!(ran.stderr.contains(&bound), "{}", ran.stderr);
        let soname = file.file_name().unwrap_or_default();
        let rejected = format!(
            "rejected {}: the stubs themselves, not the library",
            stubs.join(soname).display()
        );
        assert!(ran.stderr.contains(&rejected), "{}", ran.stderr);
    }
    Ok(())
}
