//! Libraries of HIP that `cargo gpustub export device-link` installs, linked by CMake.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::command::{run, succeed};
use gpustub_tests::nvcc::{hip_recorder, recorder};
use gpustub_tests::rdc::Project;
use gpustub_tests::{Result, repository};

use crate::shared::{SHARED, expect_shared, images};
use crate::{STUB, USED_STUB, both, library, records};

/// Libraries over `base`, which has the stubs: `top` and `side`, shared as it is, and `tally`, static.
fn project() -> Result<Project> {
    let project = Project::headers_alone()?;
    project.install_rocm()?;
    library(&project, "base", &[], SHARED)?;
    project.edit("base/GpuStub.toml", STUB, &format!("{STUB}{SHARED}\n"))?;
    for (name, table) in [("top", SHARED), ("side", SHARED), ("tally", "")] {
        library(&project, name, &["base"], table)?;
    }
    Ok(project)
}

fn prefix(project: &Project) -> PathBuf {
    project.path("installed")
}

/// Installs the packages, and moves the directory: the libraries find each other.
fn install(project: &Project) -> Result<()> {
    for package in ["top", "side", "tally"] {
        let mut command = project.gpustub(&["export", "device-link", "-p", package])?;
        succeed(command.arg("--prefix").arg(prefix(project)))?;
    }
    let moved = project.path("moved");
    fs::rename(prefix(project), &moved)?;
    Ok(fs::rename(moved, prefix(project))?)
}

/// CMake's command over the installed packages.
fn configure(project: &Project, options: &[&str]) -> Result<Command> {
    let mut cmake = Command::new("cmake");
    for name in ["HIPCXX", "ROCM_PATH", "HIP_PATH", "CXX", "CC"] {
        cmake.env_remove(name);
    }
    let source = repository().join("tests/tests/device_link_shared/consumers");
    cmake
        .arg("-S")
        .arg(source)
        .arg("-B")
        .arg(project.path("build"));
    cmake.args(["-G", "Ninja", "-DWITH=hip", "-DPACKAGES=top;side;tally"]);
    cmake.args([
        "-DCMAKE_CXX_COMPILER=g++",
        "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--as-needed",
    ]);
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix(project).display()));
    cmake.args(options);
    Ok(cmake)
}

/// Programs: the image of their device link, the images that have kernels, and the number of launches.
type Target = (&'static str, &'static str, &'static [&'static str], usize);

/// Programs with the final of `top`, and others.
const TARGETS: [Target; 7] = [
    ("chain", FINAL, &CHAIN, 1),
    ("opener", FINAL, &CHAIN, 1),
    ("through", FINAL, &CHAIN, 2),
    ("hand", FINAL, &CHAIN, 1),
    (
        "unrelated",
        "unrelated",
        &["libbase.so", "libside.so", "libtop.so"],
        2,
    ),
    ("mixed", "mixed", &["libbase.so", "libtop.so", "mixed"], 2),
    ("static", "static", &["libbase.so", "static"], 1),
];
const FINAL: &str = "libtop_final.so";
const CHAIN: [&str; 2] = ["libbase.so", "libtop.so"];

/// Builds all targets, and runs some. `variable` leads to the recorder.
fn expect_targets(
    project: &Project,
    targets: &[Target],
    cmake: &mut Command,
    (variable, value): (&str, &Path),
) -> Result<()> {
    succeed(cmake)?;
    let build = project.path("build");
    succeed(Command::new("cmake").arg("--build").arg(&build))?;
    // A program with a final runs no compiler for AMD.
    assert!(!build.join("gpustub/chain").exists());
    for (target, image, libraries, launches) in targets {
        let mut program = Command::new(build.join(target));
        let ran = succeed(program.env(variable, value))?;
        assert!(ran.stdout.contains("status 0"), "{target}: {}", ran.stdout);
        expect_shared(&ran, image, libraries, *launches);
    }
    Ok(())
}

/// A text in the output of CMake, which breaks lines.
fn expect_message(output: &str, text: &str) {
    let words = Vec::from_iter(output.split_whitespace());
    assert!(words.join(" ").contains(text), "{text}: {output}");
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_cmake_links_installed_libraries() -> Result<()> {
    let project = project()?;
    install(&project)?;
    let listed = fs::read_to_string(prefix(&project).join("lib/cmake/top/top-files.txt"))?;
    let libraries = listed.lines().filter(|line| line.starts_with("lib/lib"));
    let expected = [
        "lib/libbase.so",
        "lib/libbase_final.so",
        "lib/libbase_static.a",
        "lib/libgpustub_base.link.so",
        "lib/libgpustub_base.so",
        "lib/libtop.so",
        "lib/libtop_final.so",
        "lib/libtop_static.a",
    ];
    assert_eq!(Vec::from_iter(libraries), expected);

    let recorder = hip_recorder(&project.path("recorder"))?;
    let mut cmake = configure(&project, &[])?;
    let stubs = ("GPUSTUB_HIP_PATH", recorder.as_path());
    expect_targets(&project, &TARGETS, &mut cmake, stubs)?;

    let mut build = Command::new("cmake");
    build.arg("--build").arg(project.path("build"));
    let ran = run(build.args(["--target", "unregistered"]))?;
    let fault = "cannot be loaded: no device link defines gpustub_hip_code_";
    expect_message(&ran.stdout, fault);
    for (option, text) in [
        ("-DREFUSED=final-number", "`top::top` has none"),
        ("-DREFUSED=number", "no library has any"),
        ("-DREFUSED=archs", "`side::side` has code for gfx942, and"),
        ("-DGPUSTUB_CLANG=/no/clang++", "there is no clang with lld"),
    ] {
        let ran = run(&mut configure(&project, &[option])?)?;
        expect_message(&ran.stderr, text);
    }
    Ok(())
}

/// With a ROCm that CMake finds, to which programs get a run path, and without.
#[test]
#[ignore = "needs HIP's headers and device libraries: ./tests/run --all"]
fn heavy_installed_libraries_may_need_the_runtime_of_rocm() -> Result<()> {
    let project = project()?;
    project.edit("base/GpuStub.toml", &format!("{STUB}{SHARED}\n"), "")?;
    for name in ["top", "side", "tally"] {
        project.edit(&format!("{name}/GpuStub.toml"), USED_STUB, "")?;
    }
    let recorder = hip_recorder(&project.path("recorder"))?;
    let lib = project.rocm().join("lib");
    fs::create_dir(&lib)?;
    for name in ["libamdhip64.so", "libamdhip64.so.6"] {
        symlink(&recorder, lib.join(name))?;
    }
    install(&project)?;
    let directory = recorder.parent().unwrap_or(&recorder);
    let mut cmake = configure(&project, &[])?;
    // Device links call the runtime.
    let ran = run(&mut cmake)?;
    expect_message(&ran.stderr, "there is no libamdhip64.so");
    cmake.arg("-DFINALS=ON");
    let path = ("LD_LIBRARY_PATH", directory);
    expect_targets(&project, &TARGETS[..4], &mut cmake, path)?;
    let mut cmake = configure(&project, &["-DFINALS=OFF"])?;
    cmake.env("ROCM_PATH", project.rocm());
    let none = ("LD_LIBRARY_PATH", Path::new(""));
    expect_targets(&project, &TARGETS, &mut cmake, none)
}

/// By the final, and by two device links of the program, of which CMake makes one if the program has CUDA code.
#[test]
#[ignore = "needs CUDA's compiler, HIP's headers and device libraries: ./tests/run --all"]
fn heavy_installed_libraries_have_code_for_both_vendors() -> Result<()> {
    let project = both(&format!("{STUB}{SHARED}\n\n"), SHARED)?;
    let stub = "[stub.cudart]\n";
    project.edit("both/GpuStub.toml", stub, &format!("{stub}{SHARED}\n"))?;
    let mut export = project.gpustub(&["export", "device-link", "-p", "both"])?;
    succeed(export.arg("--prefix").arg(prefix(&project)))?;
    let nvcc = project.toolkit().join("bin/nvcc");
    let nvcc = format!("-DCMAKE_CUDA_COMPILER={}", nvcc.display());
    let mut cmake = configure(
        &project,
        &["-DWITH=both", "-DPACKAGES=both", "-DCUDA=ON", &nvcc],
    )?;
    // CMake's test of the compiler links a name that wheels do not have.
    let runtime = project.path("runtime");
    fs::create_dir(&runtime)?;
    let library = project.toolkit().join("lib/libcudart.so.13");
    symlink(library, runtime.join("libcudart.so"))?;
    succeed(cmake.env("LIBRARY_PATH", &runtime))?;
    let build = project.path("build");
    let mut make = Command::new("cmake");
    make.arg("--build").arg(&build);
    succeed(make.env("LIBRARY_PATH", &runtime))?;
    for (target, image, launches) in [
        ("chain", "libboth_final.so", 2),
        ("static", "static", 2),
        ("own", "own", 3),
    ] {
        let mut program = Command::new(build.join(target));
        program.env("GPUSTUB_HIP_PATH", hip_recorder(&project.path("recorder"))?);
        let runtime = recorder(&project.path("recorder"), 13)?;
        let ran = succeed(program.env("GPUSTUB_CUDART_PATH", runtime))?;
        assert_eq!(images(&ran, "open", 1), [image, image], "{}", ran.stderr);
        let launched = records(&ran.stderr, "launch");
        assert_eq!(launched.len(), launches, "{}", ran.stderr);
    }
    Ok(())
}
