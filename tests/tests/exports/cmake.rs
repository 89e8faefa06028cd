//! `find_package` and `find_library` of CMake.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::components::{component, wheel_libraries};
use gpustub_tests::elf::needed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

use super::{FORMS, drops_unused_stubs, export, forced_header, generate, works};

/// Configures a project of `tests/exports` into `dir/build`, from scratch.
fn configure(dir: &Path, project: &str, options: &[String]) -> Result<Ran> {
    let build = dir.join("build");
    if build.exists() {
        fs::remove_dir_all(&build)?;
    }
    let mut cmake = Command::new("cmake");
    cmake
        .args(["-G", "Ninja", "-S"])
        .arg(repository().join("tests/exports").join(project));
    cmake.arg("-B").arg(&build).args(options);
    for variable in [
        "CUDA_PATH",
        "CUDA_HOME",
        "CUDAToolkit_ROOT",
        "CMAKE_PREFIX_PATH",
    ] {
        cmake.env_remove(variable);
    }
    run(&mut cmake)
}

/// Configures and builds; returns CMake's output.
fn build(dir: &Path, project: &str, options: &[String]) -> Result<Ran> {
    let reported = configure(dir, project, options)?.success()?;
    succeed(Command::new("cmake").arg("--build").arg(dir.join("build")))?;
    Ok(reported)
}

/// `-D<variable>=<path>`.
fn define(variable: &str, path: &Path) -> String {
    format!("-D{variable}={}", path.display())
}

/// Command-line option that injects the stubs into an unchanged project.
fn injected(stubs: &Path) -> String {
    define(
        "CMAKE_PROJECT_TOP_LEVEL_INCLUDES",
        &stubs.join("cmake/gpustub-cuda.cmake"),
    )
}

/// CUDA's headers as wheels install them, below `dir`.
pub fn headers(dir: &Path) -> Result<PathBuf> {
    let root = dir.join("cuda");
    fs::create_dir_all(&root)?;
    for wheel in ["cudart-13.5", "nvrtc-13.5", "crt"] {
        let include = component(&format!("wheels/{wheel}/nvidia/cu13/include"))?;
        succeed(Command::new("cp").arg("-rs").arg(include).arg(&root))?;
    }
    Ok(root)
}

/// A toolkit as NVIDIA installs it: headers, compiler, libraries, and a driver library for linking.
fn toolkit(dir: &Path) -> Result<PathBuf> {
    let root = headers(dir)?;
    fs::create_dir_all(root.join("bin"))?;
    fs::create_dir_all(root.join("lib64/stubs"))?;
    let link = |file: PathBuf, place: &str| std::os::unix::fs::symlink(file, root.join(place));
    link(
        component("wheels/nvcc-13.5/nvidia/cu13/bin/nvcc")?,
        "bin/nvcc",
    )?;
    let cudart = wheel_libraries("cudart-13.5")?.join("libcudart.so.13");
    link(cudart, "lib64/libcudart.so")?;
    let nvrtc = wheel_libraries("nvrtc-13.5")?.join("libnvrtc.so.13");
    link(nvrtc, "lib64/libnvrtc.so")?;
    link(
        component("driver-535/libcuda.so.1")?,
        "lib64/stubs/libcuda.so",
    )?;
    Ok(root)
}

#[test]
#[ignore = "needs CMake and NVRTC: ./tests/run"]
fn cmake_finds_the_package() -> Result<()> {
    for form in FORMS {
        let dir = scratch()?;
        let stubs = generate(dir.path(), form)?;
        build(
            dir.path(),
            "gpustub",
            &[
                define("CMAKE_PREFIX_PATH", &stubs),
                "-DCMAKE_UNITY_BUILD=ON".to_owned(),
                format!("-DCMAKE_C_FLAGS={}", forced_header(dir.path())?),
            ],
        )?;
        works(&dir.path().join("build/program"), "0").map_err(|e| format!("{form:?}: {e:?}"))?;
        drops_unused_stubs(&dir.path().join("build/build.ninja"), form)?;
    }
    Ok(())
}

#[test]
#[ignore = "needs CMake: ./tests/run"]
fn cmake_reports_libraries_without_stubs() -> Result<()> {
    let dir = scratch()?;
    let mut command = gpustub(&[
        "export",
        "stubs",
        "cuda",
        "--quiet",
        "--sources-only",
        "--header-version=13",
        "--out-dir",
    ])?;
    succeed(command.arg(dir.path().join("stubs")))?;
    let prefix = define("CMAKE_PREFIX_PATH", &dir.path().join("stubs"));
    let reported = configure(dir.path(), "gpustub", &[prefix])?;
    assert!(!reported.status.success());
    let text = reported
        .stderr
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(text.contains("no stubs for nvrtc"), "{text}");
    assert!(text.contains("only for cuda: generate"), "{text}");
    Ok(())
}

/// A project that searches for the toolkit gets the stubs, by each of three ways to inject them.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_cmake_finds_stubs_for_the_toolkit_where_there_is_none() -> Result<()> {
    for form in FORMS {
        let dir = scratch()?;
        let stubs = generate(dir.path(), form)?;
        let modules = define("CMAKE_MODULE_PATH", &stubs.join("cmake"));
        let included = define(
            "CMAKE_PROJECT_INCLUDE",
            &stubs.join("cmake/gpustub-cuda.cmake"),
        );
        let ways = [
            vec![injected(&stubs)],
            vec![included],
            vec![modules, "-DKEEP_MODULE_PATH=ON".to_owned()],
        ];
        for way in ways {
            build(dir.path(), "toolkit", &way)?
                .expect_in_order(&["gpustub: stubs for cuda, cudart, nvrtc"])?;
            for program in ["build/program", "build/variables"] {
                works(&dir.path().join(program), "0").map_err(|e| format!("{way:?}: {e:?}"))?;
            }
        }
    }
    Ok(())
}

/// Headers and compiler come from the toolkit, the libraries from gpustub; without the stubs the
/// same project needs three GPU libraries.
#[test]
#[ignore = "needs CMake, a CUDA toolkit and NVRTC: ./tests/run"]
fn cmake_takes_headers_from_a_real_toolkit_and_libraries_from_the_stubs() -> Result<()> {
    let dir = scratch()?;
    let stubs = generate(dir.path(), &["--header-version", "13"])?;
    let root = define("CUDAToolkit_ROOT", &toolkit(dir.path())?);

    build(dir.path(), "toolkit", std::slice::from_ref(&root))?
        .expect_in_order(&["version 13.5 of 13.5.37"])?;
    for program in ["build/program", "build/variables"] {
        let needs = needed(&dir.path().join(program))?;
        for real in ["libcuda.so.1", "libcudart.so.13", "libnvrtc.so.13"] {
            assert!(
                needs.iter().any(|name| name == real),
                "no {real} in {needs:?}"
            );
        }
    }
    for wanted in [None, Some("-DWANTED=13.5"), Some("-DWANTED=12")] {
        let mut options = vec![injected(&stubs), root.clone()];
        options.extend(wanted.map(str::to_owned));
        let reported = build(dir.path(), "toolkit", &options)?;
        assert!(
            !reported.stderr.contains("--header-version"),
            "{}",
            reported.stderr
        );
        reported.expect_in_order(&["stubs for cuda, cudart, nvrtc", "version 13.5 of 13.5.37"])?;
        for program in ["build/program", "build/variables"] {
            works(&dir.path().join(program), "13")?;
        }
    }
    let reported = configure(
        dir.path(),
        "toolkit",
        &[injected(&stubs), root, "-DWANTED=99".into()],
    )?;
    assert!(!reported.status.success());
    assert!(reported.stderr.contains("99"), "{}", reported.stderr);
    Ok(())
}

/// Headers alone are enough, as wheels have them; stubs generated for other headers are reported.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_cmake_takes_headers_of_wheels() -> Result<()> {
    let dir = scratch()?;
    let root = define("CUDAToolkit_ROOT", &headers(dir.path())?);
    for (header, reported) in [
        (None, "are refused"),
        (Some("12"), "generate them with"),
        (Some("13.5"), ""),
    ] {
        let options = header.map_or(vec![], |version| vec!["--header-version", version]);
        let stubs = generate(dir.path(), &options)?;
        let ran = build(dir.path(), "toolkit", &[injected(&stubs), root.clone()])?;
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(
            text.contains("--header-version"),
            !reported.is_empty(),
            "{text}"
        );
        assert!(text.contains(reported), "{text}");
        ran.expect_in_order(&["version 13.5 of 13.5.0"])?;
        works(&dir.path().join("build/program"), "13")?;
        fs::remove_dir_all(stubs)?;
    }
    Ok(())
}

/// The older module (FindCUDA): without a toolkit it sets the variables of libraries, with one all
/// of its variables.
#[test]
#[ignore = "needs CMake, a CUDA toolkit and NVRTC: ./tests/run"]
fn cmake_fills_the_variables_of_the_older_module() -> Result<()> {
    let dir = scratch()?;
    let stubs = generate(dir.path(), &["--header-version", "13"])?;
    let root = define("CUDA_TOOLKIT_ROOT_DIR", &toolkit(dir.path())?);
    for (options, headers) in [(vec![], "0"), (vec![root], "13")] {
        build(
            dir.path(),
            "legacy",
            &[&[injected(&stubs)], &options[..]].concat(),
        )?;
        for program in ["build/program", "build/variables"] {
            works(&dir.path().join(program), headers)?;
        }
    }
    Ok(())
}

/// A library of the system with this name, in a directory that CMake searches: what a program would link
/// without stubs.
fn system_library(dir: &Path, name: &str) -> Result<String> {
    let system = dir.join("system");
    fs::create_dir_all(&system)?;
    let source = system.join("library.c");
    fs::write(&source, "int clGetPlatformIDs(void) { return 0; }\n")?;
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC"]).arg(source).arg("-o");
    succeed(cc.arg(system.join(format!("lib{name}.so"))))?;
    Ok(define("CMAKE_LIBRARY_PATH", &system))
}

/// The program needs no library but libc, and prints this without the library.
fn prints_without_library(program: &Path, expected: &str) -> Result<()> {
    let needs = needed(program)?;
    let foreign = |name: &String| !name.starts_with("libc.so") && !name.starts_with("libgpustub_");
    assert!(
        !needs.iter().any(foreign),
        "{}: {needs:?}",
        program.display()
    );
    let mut command = Command::new(program);
    command
        .env("GPUSTUB_OPENCL_PATH", "off")
        .env("GPUSTUB_HIP_PATH", "off");
    assert_eq!(
        succeed(&mut command)?.stdout,
        expected,
        "{}",
        program.display()
    );
    Ok(())
}

/// `find_package(OpenCL)` and `find_package(hip)`, where the system has libraries of these names.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_cmake_finds_stubs_for_opencl_and_hip() -> Result<()> {
    let headers = define(
        "OpenCL_INCLUDE_DIR",
        &repository().join("tests/exports/packages/include"),
    );
    let root = component("hip-5.2/include/hip/hip_version.h")?;
    let root = root.ancestors().nth(3).ok_or("no root")?.to_owned();
    for form in FORMS {
        let dir = scratch()?;
        let libraries = ["opencl", "hip", "--header-version=hip=5"];
        let stubs = export(dir.path(), "stubs", &[&libraries[..], form].concat())?;
        let mut options = vec![
            injected(&stubs),
            headers.clone(),
            system_library(dir.path(), "OpenCL")?,
        ];
        options.push(define("ROCM_PATH", &root));
        let with_hip = [&options[..], &["-DWITH_HIP=hip::host".to_owned()]].concat();
        build(dir.path(), "packages", &with_hip)?
            .expect_in_order(&["stubs for opencl instead of", "stubs for hip instead of"])?;
        for program in ["build/program", "build/variables"] {
            prints_without_library(&dir.path().join(program), "clGetPlatformIDs -1001 0\n")?;
        }
        prints_without_library(&dir.path().join("build/hip"), "hipGetDeviceCount 100 0\n")?;
        // Device code is refused, not linked with the real library.
        options.push("-DWITH_HIP=hip::device".to_owned());
        let refused = configure(dir.path(), "packages", &options)?;
        assert!(!refused.status.success());
        assert!(refused.stderr.contains("hip::device"), "{}", refused.stderr);
    }
    Ok(())
}

/// `find_library`, and CMake's own FindOpenCL, in the directory for `-L`: the linker gets a full path.
#[test]
#[ignore = "needs CMake and four linkers: ./tests/run"]
fn cmake_links_archives_by_their_path() -> Result<()> {
    let dir = scratch()?;
    let stubs = export(dir.path(), "stubs", &["opencl"])?;
    let headers = define(
        "OpenCL_INCLUDE_DIR",
        &repository().join("tests/exports/packages/include"),
    );
    for linker in ["bfd", "gold", "lld", "mold"] {
        let flags = format!("-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld={linker}");
        let options = [
            define("CMAKE_LIBRARY_PATH", &stubs.join("link")),
            headers.clone(),
            flags,
        ];
        build(dir.path(), "packages", &options)?.expect_in_order(&["stubs/link/libOpenCL.a"])?;
        for program in ["build/program", "build/variables"] {
            prints_without_library(&dir.path().join(program), "clGetPlatformIDs -1001 0\n")?;
        }
    }
    Ok(())
}

/// Two directories in one project: of each library the stubs of the first one.
#[test]
#[ignore = "needs CMake and NVRTC: ./tests/run"]
fn cmake_links_two_directories() -> Result<()> {
    let dir = scratch()?;
    let cuda = export(dir.path(), "first", &["cuda", "--header-version=13"])?;
    let others = ["cudart", "nvrtc", "cuda", "--header-version=13"];
    let others = export(dir.path(), "second", &others)?;
    fs::copy(
        repository().join("tests/exports/program.c"),
        dir.path().join("program.c"),
    )?;
    let includes = [&cuda, &others].map(|stubs| stubs.join("cmake/gpustub-targets.cmake"));
    let project = dir.path().join("CMakeLists.txt");
    let [first, second] = includes.map(|file| file.display().to_string());
    fs::write(
        project,
        format!(
            "cmake_minimum_required(VERSION 3.18)\nproject(example C)\ninclude({first})\ninclude({second})\n\
             add_executable(program program.c)\n\
             target_link_libraries(program PRIVATE gpustub::cuda gpustub::cudart gpustub::nvrtc)\n"
        ),
    )?;
    let build = dir.path().join("build");
    let mut cmake = Command::new("cmake");
    succeed(
        cmake
            .args(["-G", "Ninja", "-S"])
            .arg(dir.path())
            .arg("-B")
            .arg(&build),
    )?;
    succeed(Command::new("cmake").arg("--build").arg(&build))?;
    works(&build.join("program"), "0")
}

/// A project in C++ includes the headers, which stubs do not bring.
#[test]
#[ignore = "needs CMake and CUDA's headers: ./tests/run"]
fn cmake_warns_without_headers_of_cuda() -> Result<()> {
    let dir = scratch()?;
    let stubs = generate(dir.path(), &["--sources-only", "--header-version", "13"])?;
    let none = define("CUDAToolkit_ROOT", dir.path());
    let reported = configure(dir.path(), "toolkit", &[injected(&stubs), none])?.success()?;
    let words: Vec<_> = reported.stderr.split_whitespace().collect();
    let text = words.join(" ");
    assert_eq!(text.matches("no CUDA headers").count(), 1, "{text}");
    assert!(
        text.contains("pip install nvidia-cuda-runtime nvidia-cuda-crt"),
        "{text}"
    );
    let root = define("CUDAToolkit_ROOT", &headers(dir.path())?);
    let reported = configure(dir.path(), "toolkit", &[injected(&stubs), root])?.success()?;
    assert!(
        !reported.stderr.contains("no CUDA headers"),
        "{}",
        reported.stderr
    );
    Ok(())
}
