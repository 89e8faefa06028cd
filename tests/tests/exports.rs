//! Output of `cargo gpustub export stubs` for CMake, Meson, Bazel and pkg-config, used with the
//! real tools. Every directory is moved before its use, so that absolute paths in it dangle.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::{gpustub, program};
use gpustub_tests::command::{Ran, path_with, run, succeed};
use gpustub_tests::components::{component, wheel_libraries};
use gpustub_tests::elf::needed;
use gpustub_tests::{Result, repository, scratch};

/// Options for generating stubs.
const FORMS: [&[&str]; 4] = [
    &["--type=static"],
    &["--type=shared"],
    &["--sources-only"],
    &["--sources-only", "--type=shared"],
];

/// Stubs for three libraries in the directory `stubs` of `dir`.
fn generate(dir: &Path, options: &[&str]) -> Result<PathBuf> {
    let first = dir.join("generated here");
    let mut command = gpustub(&[
        "export",
        "stubs",
        "cuda",
        "cudart",
        "nvrtc",
        "--quiet",
        "--out-dir",
    ])?;
    command.arg(&first).args(options);
    if !options.contains(&"--header-version") {
        command.args(["--header-version", "none"]);
    }
    succeed(&mut command)?;
    let here = dir.to_string_lossy().into_owned();
    for file in succeed(Command::new("find").arg(&first).args(["-type", "f"]))?
        .stdout
        .lines()
    {
        let bytes = fs::read(file)?;
        assert!(
            !String::from_utf8_lossy(&bytes).contains(&here),
            "{file} contains its own path"
        );
    }
    let stubs = dir.join("stubs");
    fs::rename(first, &stubs)?;
    Ok(stubs)
}

/// Runs a program with no CUDA library to be found except the one that `nvrtc` names.
fn answers(program: &Path, nvrtc: &str) -> Result<String> {
    let mut command = Command::new(program);
    command
        .env("GPUSTUB_CUDA_PATH", "off")
        .env("GPUSTUB_CUDART_PATH", "off");
    Ok(succeed(command.env("GPUSTUB_NVRTC_PATH", nvrtc))?.stdout)
}

/// The program needs no GPU library; it starts without CUDA, and finds NVRTC if installed.
fn works(program: &Path, headers: &str) -> Result<()> {
    let needs = needed(program)?;
    let system = |name: &&String| name.starts_with("libc.so") || name.starts_with("libgpustub_");
    let foreign: Vec<_> = needs.iter().filter(|name| !system(name)).collect();
    assert!(
        foreign.is_empty(),
        "{} needs {foreign:?}",
        program.display()
    );
    let expected = |nvrtc: &str| {
        format!("headers {headers}, cuInit 100, cudaGetDeviceCount 35 0, nvrtcVersion {nvrtc}\n")
    };
    assert_eq!(answers(program, "off")?, expected("11 0.0"));
    let library = wheel_libraries("nvrtc-12.9")?;
    assert_eq!(
        answers(program, &library.to_string_lossy())?,
        expected("0 12.9")
    );
    Ok(())
}

// ---- CMake ---------------------------------------------------------------------------------------

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
fn headers(dir: &Path) -> Result<PathBuf> {
    let root = dir.join("headers");
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
            &[define("CMAKE_PREFIX_PATH", &stubs)],
        )?;
        works(&dir.path().join("build/program"), "0").map_err(|e| format!("{form:?}: {e:?}"))?;
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
#[ignore = "needs CMake and NVRTC: ./tests/run"]
fn cmake_finds_stubs_for_the_toolkit_where_there_is_none() -> Result<()> {
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
#[ignore = "needs CMake, CUDA's headers and NVRTC: ./tests/run"]
fn cmake_takes_headers_of_wheels() -> Result<()> {
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

// ---- other build systems ----------------------------------------------------------------------------------

#[test]
#[ignore = "needs Meson and NVRTC: ./tests/run"]
fn meson_builds_the_subproject() -> Result<()> {
    for form in FORMS {
        let dir = scratch()?;
        let stubs = generate(dir.path(), form)?;
        let project = dir.path().join("project");
        fs::create_dir_all(project.join("subprojects"))?;
        let exports = repository().join("tests/exports");
        fs::copy(
            exports.join("meson/meson.build"),
            project.join("meson.build"),
        )?;
        fs::copy(exports.join("program.c"), project.join("program.c"))?;
        fs::rename(stubs, project.join("subprojects/gpustub"))?;
        let mut setup = Command::new("meson");
        setup
            .current_dir(&project)
            .args(["setup", "build"])
            .env_remove("PKG_CONFIG_PATH");
        let reported = succeed(&mut setup)?;
        assert!(!reported.stdout.contains("WARNING"), "{}", reported.stdout);
        reported.expect_in_order(&["gpustub-cuda found: YES 0.1.0 (overridden)"])?;
        succeed(Command::new("ninja").arg("-C").arg(project.join("build")))?;
        works(&project.join("build/program"), "0").map_err(|e| format!("{form:?}: {e:?}"))?;
    }
    Ok(())
}

#[test]
#[ignore = "needs pkg-config and NVRTC: ./tests/run"]
fn pkg_config_names_what_to_link() -> Result<()> {
    for form in &FORMS[..2] {
        let dir = scratch()?;
        let stubs = generate(dir.path(), form)?;
        let mut asked = Command::new("pkg-config");
        asked.args([
            "--cflags",
            "--libs",
            "gpustub-cuda",
            "gpustub-cudart",
            "gpustub-nvrtc",
        ]);
        let flags = succeed(asked.env("PKG_CONFIG_PATH", stubs.join("pkgconfig")))?.stdout;
        let program = dir.path().join("program");
        let mut cc = Command::new("cc");
        cc.args(["-include", "gpustub.h"])
            .arg(repository().join("tests/exports/program.c"));
        cc.args(flags.split_whitespace()).arg("-o").arg(&program);
        cc.arg(format!("-Wl,-rpath,{}", stubs.join("lib").display()));
        succeed(&mut cc)?;
        works(&program, "0").map_err(|e| format!("{form:?}: {e:?}"))?;
    }
    Ok(())
}

/// Without Bazel: Python runs the rules, because Starlark is a subset of it, and builds with only
/// the files that they name.
#[test]
#[ignore = "needs Python and NVRTC: ./tests/run"]
fn bazel_rules_name_all_that_they_need() -> Result<()> {
    let dir = scratch()?;
    let stubs = generate(dir.path(), &[])?;
    let out = dir.path().join("out");
    fs::create_dir(&out)?;
    let rules = repository().join("tests/exports/bazel.py");
    let reported = succeed(Command::new("python3").arg(rules).arg(&stubs).arg(&out))?.stdout;
    assert_eq!(reported, "cuda cudart nvrtc -ldl include\n");
    let program = dir.path().join("program");
    let mut cc = Command::new("cc");
    cc.arg(repository().join("tests/exports/program.c"))
        .arg(out.join("libstubs.a"));
    succeed(cc.args(["-ldl", "-o"]).arg(&program))?;
    works(&program, "0")
}

// ---- documentation ------------------------------------------------------------------------------------

/// Each example of `docs/export.md`, with the project shown before it, builds a working program.
#[test]
#[ignore = "needs CMake, Meson, pkg-config and NVRTC: ./tests/run"]
fn the_page_shows_commands_that_work() -> Result<()> {
    let page = fs::read_to_string(repository().join("docs/export.md"))?;
    // Device-linked libraries have their own tests, with nvcc.
    let (page, _) = page
        .split_once("\n## Device-linked libraries\n")
        .ok_or("no second half")?;
    let subcommand = program("cargo-gpustub")?;
    let path = path_with(subcommand.parent().unwrap_or(&subcommand))?;
    let mut generate = None;
    let mut project: Option<(&str, &str)> = None;
    let mut ran = 0;
    for block in page.split("```").skip(1).step_by(2) {
        let (kind, text) = block.split_once('\n').unwrap_or_default();
        project = match kind {
            "cmake" => Some(("CMakeLists.txt", text)),
            "meson" => Some(("meson.build", text)),
            _ => project,
        };
        if kind != "console" {
            continue;
        }
        let dir = scratch()?;
        fs::copy(
            repository().join("tests/exports/program.c"),
            dir.path().join("program.c"),
        )?;
        if let Some((name, text)) = project.take() {
            fs::write(dir.path().join(name), text)?;
        }
        let commands: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("$ "))
            .collect();
        let first = generate.get_or_insert(commands[0]);
        let mut script = vec!["set -eu"];
        if commands[0] != *first {
            script.push(*first);
        }
        script.extend(&commands);
        let mut bash = Command::new("bash");
        bash.current_dir(dir.path())
            .env("PATH", &path)
            .args(["-c", &script.join("\n")]);
        for variable in [
            "CUDA_PATH",
            "CUDA_HOME",
            "CUDAToolkit_ROOT",
            "PKG_CONFIG_PATH",
        ] {
            bash.env_remove(variable);
        }
        succeed(&mut bash)?;
        let place = if text.contains("build") {
            "build/program"
        } else {
            "a.out"
        };
        works(&dir.path().join(place), "0").map_err(|e| format!("{text}: {e:?}"))?;
        ran += 1;
    }
    assert_eq!(ran, 5, "examples");
    Ok(())
}
