//! Architectures of CMake's device links, compared with core's rules and with what nvlink makes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::gpu_arch::{Arch, ArchKind};
use gpustub_image::read_device_code;
use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::component;
use gpustub_tests::nvcc::TOOLKIT_13;
use gpustub_tests::scratch::scratch;

use crate::plans::copy_functions;

const NUMBERS: [&str; 14] = [
    "75", "80", "86", "90", "90a", "100", "100a", "100f", "101", "101f", "103", "103f", "120f",
    "121",
];

/// Every pair of a code's and a device link's architectures.
#[test]
#[ignore = "needs CMake: ./tests/run"]
fn cmake_serves_architectures_as_core() -> Result<()> {
    let dir = scratch()?;
    copy_functions(dir.path())?;
    let (mut script, mut expected) = (String::new(), Vec::new());
    writeln!(
        script,
        "include({}/gpustub-device-archs.cmake)",
        dir.path().display()
    )?;
    for number in NUMBERS {
        let code = Arch::parse(&format!("sm_{number}")).ok_or(number)?;
        for (suffix, kind) in [("-real", ArchKind::Real), ("-virtual", ArchKind::Virtual)] {
            for wanted in NUMBERS {
                let requested = Arch::parse(&format!("sm_{wanted}")).ok_or(wanted)?;
                let word = if code.as_kind(kind).serves(requested) {
                    "TRUE"
                } else {
                    "FALSE"
                };
                expected.push(format!("{number}{suffix} {wanted} {word}"));
                writeln!(script, "_gpustub_serves(serves {number}{suffix} {wanted})")?;
                writeln!(script, "message(\"{number}{suffix} {wanted} ${{serves}}\")")?;
            }
        }
    }
    let file = dir.path().join("serves.cmake");
    fs::write(&file, script)?;
    let ran = succeed(Command::new("cmake").arg("-P").arg(file))?;
    assert_eq!(ran.stderr.lines().collect::<Vec<_>>(), expected);
    Ok(())
}

const PROJECT: &str = "cmake_minimum_required(VERSION 3.19)
project(archs CXX)
include(${CMAKE_SOURCE_DIR}/gpustub-device-link.cmake)
function(archive name arch)
  add_library(${name} STATIC IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${CMAKE_SOURCE_DIR}/lib${name}.a
    CUDA_RDC_LIBRARY_TYPE Static CUDA_RDC_STATIC_LIBRARY ${name} CUDA_RUNTIME_LIBRARY Shared
    CUDA_ARCHITECTURES ${arch}-real GPUSTUB_DEVICE_LIBRARY ${name} INTERFACE_LINK_LIBRARIES \"${ARGN}\")
endfunction()
function(program name library)
  add_executable(${name} main.cpp)
  target_link_libraries(${name} PRIVATE ${library})
  gpustub_target_device_link(${name} ${ARGN})
endfunction()
";

/// Architectures of `base`, of `top`, and of a program over both.
const SERVED: [(&str, &str, &str); 6] = [
    ("80", "86", "86"),
    ("90", "90a", "90a"),
    ("100f", "103", "103"),
    ("100", "103", "103"),
    ("120f", "121", "121"),
    ("100f", "100a", "100a"),
];

/// Adds a library `name` of code for `arch` to the directory.
fn library(directory: &Path, name: &str, source: &str, arch: &str) -> Result<PathBuf> {
    let file = directory.join(format!("{name}.cu"));
    let object = directory.join(format!("{name}.o"));
    fs::write(&file, source)?;
    let mut nvcc = TOOLKIT_13.nvcc()?;
    nvcc.args(["-rdc=true", "-Xcompiler", "-fPIC", "-c", "-gencode"]);
    nvcc.arg(format!("arch=compute_{arch},code=sm_{arch}"));
    succeed(nvcc.arg(&file).arg("-o").arg(&object))?;
    let archive = directory.join(format!("lib{name}.a"));
    succeed(Command::new("ar").arg("rcs").arg(&archive).arg(object))?;
    Ok(archive)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_targets_are_linked_for_what_their_libraries_serve() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    copy_functions(dir)?;
    fs::write(
        dir.join("main.cpp"),
        "extern \"C\" void top_run(); int main() { top_run(); }",
    )?;
    let mut lists = PROJECT.to_owned();
    for (index, (base, top, requested)) in SERVED.iter().enumerate() {
        let code = "__device__ int base_value() { return 1; } __global__ void base_kernel(int *p) \
                    { *p = base_value(); }";
        library(dir, &format!("base{index}"), code, base)?;
        let code = "extern __device__ int base_value(); __global__ void top_kernel(int *p) \
                    { *p = base_value(); } extern \"C\" void top_run() { top_kernel<<<1, 1>>>(nullptr); }";
        library(dir, &format!("top{index}"), code, top)?;
        writeln!(
            lists,
            "archive(base{index} {base})\narchive(top{index} {top} base{index})"
        )?;
        writeln!(lists, "if(NOT CASE STREQUAL all)")?;
        writeln!(
            lists,
            "  program(program{index} top{index} ARCHITECTURES {requested})\nendif()"
        )?;
        writeln!(lists, "if(CASE STREQUAL all AND CASE_INDEX EQUAL {index})")?;
        writeln!(lists, "  program(program{index} top{index})\nendif()")?;
    }
    writeln!(
        lists,
        "if(CASE STREQUAL newer)\n  program(newer top0 ARCHITECTURES 90)\nendif()"
    )?;
    writeln!(
        lists,
        "if(CASE STREQUAL ptx)\n  program(ptx top0 ARCHITECTURES compute_90)\nendif()"
    )?;
    fs::write(dir.join("CMakeLists.txt"), lists)?;
    let nvcc = component("wheels/nvcc-13.5/nvidia/cu13/bin/nvcc")?;
    let libraries = component("wheels/cudart-13.5/nvidia/cu13/lib")?;
    let configure = |case: &str, index: usize| {
        let mut cmake = Command::new("cmake");
        cmake.arg("-S").arg(dir).arg("-B").arg(dir.join("build"));
        cmake.arg(format!("-DGPUSTUB_NVCC={}", nvcc.display()));
        cmake.arg(format!(
            "-DGPUSTUB_TOOLKIT_LIBRARY={}",
            libraries.join("libcudart.so.13").display()
        ));
        cmake.arg(format!("-DCMAKE_LIBRARY_PATH={}", libraries.display()));
        cmake.args([format!("-DCASE={case}"), format!("-DCASE_INDEX={index}")]);
        cmake
    };
    for (case, index, reported) in [
        (
            "newer",
            0,
            "its device link is for 90, and `top0` has code for 86-real only",
        ),
        (
            "ptx",
            0,
            "ARCHITECTURES takes numbers such as 86 or 90a, of machine code, not `compute_90`",
        ),
        (
            "all",
            0,
            "its device link is for 80, and `top0` has code for 86-real only",
        ),
        (
            "all",
            2,
            "its device link is for 100f, and `top2` has code for 103-real only",
        ),
    ] {
        let ran = run(&mut configure(case, index))?;
        let text = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        if ran.status.success() || !text.contains(reported) {
            return Err(ran.error(&format!("{case}: {reported:?} is not reported")));
        }
    }
    succeed(&mut configure("", 0))?;
    succeed(Command::new("cmake").arg("--build").arg(dir.join("build")))?;
    for (index, (_, _, requested)) in SERVED.iter().enumerate() {
        let program = fs::read(dir.join(format!("build/program{index}")))?;
        let code = read_device_code(&program)?;
        let linked: Vec<String> = code.linked.iter().map(ToString::to_string).collect();
        assert_eq!(linked, [format!("sm_{requested}")]);
        assert_eq!(code.links.len(), 2, "{:?}", code.links);
    }
    Ok(())
}
