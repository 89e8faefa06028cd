//! Files that `cargo gpustub export device-link` installs, for C++ and for another workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::elf::needed;
use gpustub_tests::scratch::scratch;

use crate::{Project, Record, alone, copy_source, expect, opens, workspace};

/// Installs a package, and moves the directory.
fn installed(package: &str, directory: &Path) -> Result<PathBuf> {
    let (original, moved) = (directory.join("first"), directory.join("second"));
    let project = workspace()?;
    project.install(package, &original)?;
    let ran = project.install(package, &original)?;
    if !ran.stderr.contains("Fresh") {
        return Err(ran.error("the same package is installed twice"));
    }
    fs::rename(original, &moved)?;
    Ok(moved)
}

/// CMake's project in this directory, with an installed directory. `words` are passed to CMake.
fn configure(directory: &Path, prefix: &Path, words: &[&str]) -> Result<Command> {
    let project = workspace()?;
    copy_source("cmake", &directory.join("cmake"))?;
    let mut cmake = Command::new("cmake");
    project.environment(&mut cmake);
    cmake.arg("-S").arg(directory.join("cmake"));
    cmake.arg("-B").arg(directory.join("build"));
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    // rustc passes this flag, too.
    cmake
        .arg("-DCMAKE_EXE_LINKER_FLAGS=-Wl,--as-needed")
        .args(words);
    Ok(cmake)
}

/// `$ORIGIN` alone locates the neighbouring libraries.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_opened_final_finds_its_libraries_in_a_moved_directory() -> Result<()> {
    let _alone = alone();
    let dir = scratch()?;
    let prefix = installed("area", dir.path())?;
    let mut command = opens(dir.path(), &prefix.join("lib/libarea_final.so"), "area_run")?;
    workspace()?.environment(&mut command);
    let expected = Record::new("libarea_final.so", &["area", "base"], &["area"]);
    expect(run(&mut command)?, &expected)
}

/// The finals of a chain are alternatives: `libbase_final.so` and `libarea_final.so` both device-link `base`, and need
/// its library.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_check_reads_an_installed_directory() -> Result<()> {
    let _alone = alone();
    let dir = scratch()?;
    let prefix = installed("area", dir.path())?;
    let finals = fs::read_dir(prefix.join("lib"))?
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .filter(|name| name.to_string_lossy().ends_with("_final.so"));
    assert_eq!(finals.count(), 2);
    // The libraries of this workspace need libcudart itself, not its stubs.
    let ran = succeed(gpustub(&["check", "--allow", "needed-toolkit"])?.arg(&prefix))?;
    if !ran.stderr.ends_with(": nothing found\n") {
        return Err(ran.error("check has a finding"));
    }
    fs::remove_file(prefix.join("lib/libbase.so"))?;
    let ran = run(gpustub(&["check", "--allow", "needed-toolkit"])?.arg(&prefix))?;
    let message = "error[unloadable-image]: cannot be loaded: no run path leads to libbase.so\n";
    for part in [message, "lib/libarea_final.so\n", "lib/libbase_final.so\n"] {
        if !ran.stderr.contains(part) {
            return Err(ran.error(&format!("{part:?} is not reported")));
        }
    }
    Ok(())
}

/// With a toolkit, and without: linkers read the libraries that the libraries need.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_cmake_links_the_final_of_a_moved_directory() -> Result<()> {
    let _alone = alone();
    let dir = scratch()?;
    let prefix = installed("area", dir.path())?;
    let listed = fs::read_to_string(prefix.join("lib/cmake/area/area-files.txt"))?;
    for file in listed.lines() {
        assert!(prefix.join(file).is_file(), "{file}");
    }
    for file in [
        "lib/libarea_final.so",
        "lib/libbase_static.a",
        "include/base/base.cuh",
    ] {
        assert!(
            listed.lines().any(|line| line == file),
            "{file} is not in {listed}"
        );
    }
    let project = workspace()?;
    let toolkit = format!("-DCUDAToolkit_ROOT={}", project.toolkit.display());
    for word in [&*toolkit, "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON"] {
        let directory = scratch()?;
        succeed(&mut configure(directory.path(), &prefix, &[word])?)?;
        let build = directory.path().join("build");
        succeed(Command::new("cmake").arg("--build").arg(&build))?;
        let program = build.join("program");
        assert!(needed(&program)?.contains(&"libarea_final.so".to_owned()));
        let mut command = Command::new(&program);
        project.environment(&mut command);
        let expected = Record::new("libarea_final.so", &["area", "base"], &["area"]);
        expect(run(&mut command)?, &expected)?;
    }
    Ok(())
}

/// The final of `area` is over `base`, too.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_cmake_refuses_two_finals_over_one_library() -> Result<()> {
    let _alone = alone();
    let dir = scratch()?;
    let prefix = installed("area", dir.path())?;
    let disabled = "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON";
    let ran = run(&mut configure(
        dir.path(),
        &prefix,
        &[disabled, "-DBOTH=ON"],
    )?)?;
    if ran.status.success() || !ran.stderr.contains("GPUSTUB_DEVICE_LINK_base") {
        return Err(ran.error("two finals over base are linked"));
    }
    Ok(())
}

/// A device link by hand over installed archives, in a program that links the middles.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_a_program_may_device_link_the_installed_archives_itself() -> Result<()> {
    let _alone = alone();
    let dir = scratch()?;
    let prefix = installed("area", dir.path())?;
    copy_source("cmake", &dir.path().join("cmake"))?;
    let project = workspace()?;
    let lib = prefix.join("lib");
    let link = dir.path().join("link.o");
    let mut nvcc = Command::new(project.toolkit.join("bin/nvcc"));
    nvcc.args(["-dlink", "-arch=sm_80", "-Xcompiler", "-fPIC"]);
    nvcc.args([lib.join("libarea_static.a"), lib.join("libbase_static.a")]);
    succeed(nvcc.arg("-o").arg(&link))?;
    let program = dir.path().join("program");
    let mut cxx = Command::new("c++");
    cxx.arg(dir.path().join("cmake/program.cpp")).arg(&link);
    cxx.args([lib.join("libarea.so"), lib.join("libbase.so")]);
    // The recorder has no symbol versions, which bfd requires.
    cxx.arg(project.toolkit.join("lib/libcudart.so.13"));
    cxx.arg(format!("-Wl,-rpath,{}", lib.display()));
    succeed(cxx.arg("-o").arg(&program))?;
    let mut command = Command::new(&program);
    project.environment(&mut command);
    let expected = Record::new("program", &["area", "base"], &["area"]);
    expect(run(&mut command)?, &expected)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_another_workspace_declares_the_installed_files() -> Result<()> {
    let _alone = alone();
    let project = Project::new("external", "external")?;
    let prefix = installed("area", &project.directory)?;
    fs::rename(prefix, project.directory.join("installed"))?;
    // Links of an earlier run would hide errors.
    succeed(&mut project.cargo(&["clean", "--quiet", "-p", "acme", "-p", "user"]))?;
    let ran = run(&mut project.cargo(&["run", "--quiet", "-p", "user"]))?;
    let expected = Record::new("libarea_final.so", &["area", "base"], &["area"]);
    expect(ran, &expected)
}
