//! Shared libraries of HIP that `cargo gpustub export device-link` installs, linked by CMake without clang.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::nvcc::hip_recorder;
use gpustub_tests::rdc::Project;
use gpustub_tests::{Result, repository};

use crate::shared::{SHARED, expect_shared};
use crate::{STUB, USED_STUB, library};

/// `top` and `side`, both over `base`, which has the stubs.
fn project() -> Result<Project> {
    let project = Project::headers_alone()?;
    project.install_rocm()?;
    for (name, requires) in [("base", &[][..]), ("top", &["base"]), ("side", &["base"])] {
        library(&project, name, requires, "")?;
    }
    Ok(project)
}

/// Makes all libraries shared.
fn share(project: &Project) -> Result<()> {
    for name in ["base", "top", "side"] {
        let table = format!("[device-link.{name}]");
        let shared = format!("{table}\n{SHARED}");
        project.edit(&format!("{name}/GpuStub.toml"), &table, &shared)?;
    }
    project.edit("base/GpuStub.toml", STUB, &format!("{STUB}{SHARED}\n"))
}

fn prefix(project: &Project) -> PathBuf {
    project.path("installed")
}

fn export(project: &Project, package: &str) -> Result<Ran> {
    let mut command = project.gpustub(&["export", "device-link", "-p", package])?;
    run(command.arg("--prefix").arg(prefix(project)))
}

/// Installs `top` and `side`, and moves the directory: the libraries find each other.
fn install(project: &Project) -> Result<()> {
    for package in ["top", "side"] {
        export(project, package)?.success()?;
    }
    let moved = project.path("moved");
    fs::rename(prefix(project), &moved)?;
    Ok(fs::rename(moved, prefix(project))?)
}

/// CMake's command over the installed packages, in a new build directory without clang.
fn configure(project: &Project, options: &[&str]) -> Result<Command> {
    let build = project.path("build");
    if build.exists() {
        fs::remove_dir_all(&build)?;
    }
    let mut cmake = Command::new("cmake");
    for name in ["HIPCXX", "ROCM_PATH", "HIP_PATH", "CXX", "CC"] {
        cmake.env_remove(name);
    }
    let source = repository().join("tests/tests/device_link_shared/consumers");
    cmake.arg("-S").arg(source).arg("-B").arg(&build);
    cmake.args(["-G", "Ninja", "-DWITH=hip", "-DPACKAGES=top;side"]);
    cmake.args([
        "-DCMAKE_CXX_COMPILER=g++",
        "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--as-needed",
    ]);
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix(project).display()));
    cmake.args(options);
    Ok(cmake)
}

/// Programs, and the numbers of their launches.
const TARGETS: [(&str, usize); 4] = [("chain", 1), ("opener", 1), ("through", 2), ("hand", 1)];

/// Builds all targets, whose kernels the final of `top` registers. `variable` leads to the recorder.
fn expect_targets(
    project: &Project,
    cmake: &mut Command,
    (variable, value): (&str, &Path),
) -> Result<()> {
    succeed(cmake)?;
    let build = project.path("build");
    succeed(Command::new("cmake").arg("--build").arg(&build))?;
    for (target, launches) in TARGETS {
        let mut program = Command::new(build.join(target));
        let ran = succeed(program.env(variable, value))?;
        assert!(ran.stdout.contains("status 0"), "{target}: {}", ran.stdout);
        expect_shared(
            &ran,
            "libtop_final.so",
            &["libbase.so", "libtop.so"],
            launches,
        );
    }
    Ok(())
}

/// A text in the output of CMake, which breaks lines.
fn expect_message(output: &str, text: &str) {
    let words = Vec::from_iter(output.split_whitespace());
    assert!(words.join(" ").contains(text), "{text}: {output}");
}

#[test]
#[ignore = "needs HIP's headers and device libraries: ./tests/run"]
fn cmake_links_the_final_of_installed_libraries() -> Result<()> {
    let project = project()?;
    let refused = export(&project, "top")?;
    for text in [
        "device-link.top of top 0.1.0 is a static library with code for AMD",
        "add `type = \"shared\"` to its table",
    ] {
        assert!(refused.stderr.contains(text), "{}", refused.stderr);
    }
    share(&project)?;
    install(&project)?;
    let listed = fs::read_to_string(prefix(&project).join("lib/cmake/top/top-files.txt"))?;
    let libraries = listed.lines().filter(|line| line.starts_with("lib/lib"));
    let expected = [
        "lib/libbase.so",
        "lib/libbase_final.so",
        "lib/libgpustub_base.link.so",
        "lib/libgpustub_base.so",
        "lib/libtop.so",
        "lib/libtop_final.so",
    ];
    assert_eq!(Vec::from_iter(libraries), expected);

    for (option, text) in [
        (
            "-DREFUSED=unrelated",
            "`top::top` has code for AMD (gfx90a;gfx1030)",
        ),
        (
            "-DREFUSED=archs",
            "ARCHITECTURES is for code for NVIDIA, and `top::top`",
        ),
    ] {
        let ran = run(&mut configure(&project, &[option])?)?;
        expect_message(&ran.stderr, text);
    }
    let recorder = hip_recorder(&project.path("recorder"))?;
    let mut cmake = configure(&project, &[])?;
    expect_targets(&project, &mut cmake, ("GPUSTUB_HIP_PATH", &recorder))?;

    let mut build = Command::new("cmake");
    build.arg("--build").arg(project.path("build"));
    let ran = run(build.args(["--target", "unregistered"]))?;
    let fault = "cannot be loaded: no device link defines gpustub_hip_code_";
    expect_message(&ran.stdout, fault);
    Ok(())
}

/// With a ROCm that CMake finds, to which programs get a run path, and without.
#[test]
#[ignore = "needs HIP's headers and device libraries: ./tests/run --all"]
fn heavy_installed_libraries_may_need_the_runtime_of_rocm() -> Result<()> {
    let project = project()?;
    share(&project)?;
    project.edit("base/GpuStub.toml", STUB, "")?;
    project.edit("base/GpuStub.toml", &format!("{SHARED}\n\n"), "")?;
    for name in ["top", "side"] {
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
    expect_targets(&project, &mut cmake, ("LD_LIBRARY_PATH", directory))?;
    let mut cmake = configure(&project, &[])?;
    cmake.env("ROCM_PATH", project.rocm());
    expect_targets(&project, &mut cmake, ("GPUSTUB_HIP_PATH", &recorder))
}
