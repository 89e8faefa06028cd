//! Output of `cargo gpustub export stubs` for CMake, Meson, Bazel, pkg-config and nvcc, used with the
//! real tools. Every directory is moved before its use, so that absolute paths in it dangle.

mod cmake;
mod msvc;
mod other_tools;
mod user_defined;
mod windows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::{gpustub, program};
use gpustub_tests::command::{path_with, succeed};
use gpustub_tests::components::wheel_libraries;
use gpustub_tests::elf::needed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

/// Options for generating stubs.
const FORMS: [&[&str]; 4] = [
    &["--type=static"],
    &["--type=shared"],
    &["--sources-only"],
    &["--sources-only", "--type=shared"],
];

/// Checks that a build links static stubs, and only these, with the option that drops unused ones.
fn drops_unused_stubs(ninja: &Path, form: &[&str]) -> Result<()> {
    let has_option = fs::read_to_string(ninja)?.contains("-Wl,--gc-sections");
    if has_option == form.contains(&"--type=shared") {
        return Err(format!("{form:?}: --gc-sections: {has_option}").into());
    }
    Ok(())
}

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

/// Option that puts a header of the C library in front of every file, as some projects do.
fn forced_header(dir: &Path) -> Result<String> {
    let header = dir.join("forced.h");
    let text = "#ifndef __ASSEMBLER__\n#include <stdio.h>\n#endif\n";
    fs::write(&header, text)?;
    Ok(format!("-include {}", header.display()))
}

/// The program of `tests/exports` needs no GPU library; it starts without CUDA, and finds NVRTC if installed.
fn works(program: &Path, headers: &str) -> Result<()> {
    prints(program, headers, "gpustub_load 1 2\n")
}

/// Likewise for a program that prints `queries` of `gpustub.h`.
fn prints(program: &Path, headers: &str, queries: &str) -> Result<()> {
    let needs = needed(program)?;
    let system = |name: &&String| name.starts_with("libc.so") || name.starts_with("libgpustub_");
    let foreign: Vec<_> = needs.iter().filter(|name| !system(name)).collect();
    assert!(
        foreign.is_empty(),
        "{} needs {foreign:?}",
        program.display()
    );
    let expected = |nvrtc: &str| {
        format!(
            "headers {headers}, cuInit 100, cudaGetDeviceCount 35 0, nvrtcVersion {nvrtc}\n{queries}"
        )
    };
    assert_eq!(answers(program, "off")?, expected("11 0.0"));
    let library = wheel_libraries("nvrtc-12.9")?;
    assert_eq!(
        answers(program, &library.to_string_lossy())?,
        expected("0 12.9")
    );
    Ok(())
}

/// Exports stubs for these libraries into `dir/<name>`.
fn export(dir: &Path, name: &str, options: &[&str]) -> Result<PathBuf> {
    let out = dir.join(name);
    let mut command = gpustub(&["export", "stubs", "--quiet", "--out-dir"])?;
    succeed(command.arg(&out).args(options))?;
    Ok(out)
}

/// Each example of `docs/export.md`, with the project shown before it, builds a working program.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_the_page_shows_commands_that_work() -> Result<()> {
    let page = fs::read_to_string(repository().join("docs/export.md"))?;
    // Device-linked libraries have their own tests, with nvcc.
    let (page, _) = page
        .split_once("\n## Device-linked libraries\n")
        .ok_or("no second half")?;
    let subcommand = program("cargo-gpustub")?;
    let path = path_with(subcommand.parent().unwrap_or(&subcommand))?;
    let mut generate = None;
    let mut project: Vec<(&str, &str)> = Vec::new();
    let mut ran = 0;
    for block in page.split("```").skip(1).step_by(2) {
        let (kind, text) = block.split_once('\n').unwrap_or_default();
        match kind {
            "cmake" => project.push(("CMakeLists.txt", text)),
            "cpp" => project.push(("program.cpp", text)),
            "meson" => project.push(("meson.build", text)),
            _ => {}
        }
        if kind != "console" {
            continue;
        }
        let dir = scratch()?;
        fs::copy(
            repository().join("tests/exports/program.c"),
            dir.path().join("program.c"),
        )?;
        let is_cpp = project.iter().any(|(name, _)| *name == "program.cpp");
        for (name, text) in project.drain(..) {
            fs::write(dir.path().join(name), text)?;
        }
        let mut commands: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("$ "))
            .collect();
        // The components have what this installs.
        let installs = |command: &&str| command.starts_with("pip install --target headers ");
        if commands.iter().any(installs) {
            let root = dir.path().join("headers/nvidia/cu13");
            fs::create_dir_all(&root)?;
            std::os::unix::fs::symlink(
                cmake::headers(dir.path())?.join("include"),
                root.join("include"),
            )?;
        }
        commands.retain(|command| !installs(command));
        // The first block makes the directory that all others use.
        let Some(generate) = generate else {
            generate = Some(commands[0]);
            continue;
        };
        let mut script = vec!["set -eu", generate];
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
        let program = dir.path().join(place);
        let works = if is_cpp {
            prints(&program, "13", "")
        } else {
            works(&program, "0")
        };
        works.map_err(|e| format!("{text}: {e:?}"))?;
        ran += 1;
    }
    assert_eq!(ran, 6, "examples");
    Ok(())
}
