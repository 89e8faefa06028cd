//! The program of the loader's README, run by a fake driver and compiled for GPUs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use gpurpc_tests::cargo::cargo;
use gpurpc_tests::command::{Ran, path_with, run, succeed};
use gpurpc_tests::compilers::TOOLKIT_13;
use gpurpc_tests::readme::{Block, blocks};
use gpurpc_tests::{Result, workspace};

use crate::{Bench, CUDA, Driver, HIP, compile};

const PAGE: &str = "loader/README.md";

/// Path of the README's program.
fn hello() -> PathBuf {
    workspace().join("loader/programs/hello.c")
}

#[test]
fn readme_program_prints_hello() -> Result<()> {
    let bench = Bench::new()?;
    compile(&hello(), &bench.path("hello.so"), &["-Wpedantic"])?;
    let mut command = bench.loader(&CUDA)?;
    command.args(["--runtime", "cuda", "--timeout", "300", "--threads", "2"]);
    let ran = succeed(command.arg(bench.path("hello.so")))?;
    // A warp of the host has one lane.
    assert_eq!(ran.stdout, "hello from lane 00\nhello from lane 00\n");
    Ok(())
}

/// Compiles the README's program by each of these commands, and runs the loader, which detects the
/// image's runtime: the fake driver loads no such image.
fn known(commands: impl IntoIterator<Item = Command>, name: &str, driver: &Driver) -> Result<()> {
    let bench = Bench::new()?;
    for mut compile in commands {
        let image = bench.path(name);
        compile.arg("-I").arg(workspace().join("capi/include"));
        succeed(compile.arg("-o").arg(&image).arg(hello()))?;
        let code = fs::read(&image)?;
        let code = String::from_utf8_lossy(&code);
        assert!(
            code.contains("_start") && code.contains("__llvm_rpc_client"),
            "{name}"
        );
        if name.ends_with(".ptx") {
            assert!(code.contains(".visible .entry _start("), "{code}");
            assert!(
                code.contains(".visible .global .align 8 .b8 __llvm_rpc_client[552]"),
                "{code}"
            );
        }
        let ran = run(bench.loader(driver)?.arg(&image))?;
        assert_eq!(ran.status.code(), Some(126), "{}", ran.stderr);
        let calls = bench.calls()?;
        assert!(
            calls
                .last()
                .is_some_and(|call| call.contains("ModuleLoadData")),
            "{calls:?}"
        );
    }
    Ok(())
}

#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn clang_compiles_the_program_of_the_readme() -> Result<()> {
    let clang = |words: &[&str]| {
        [["-x", "c", "-std=c11"], ["-x", "c++", "-std=c++17"]].map(|language| {
            let mut clang = Command::new("clang-19");
            clang
                .args(language)
                .args(["-Wall", "-Wextra", "-Werror", "-O2"])
                .args(words);
            clang.args(["-nogpulib", "-ffreestanding", "-fconvergent-functions"]);
            clang
        })
    };
    let ptx = ["-Xclang", "-target-feature", "-Xclang", "+ptx63", "-S"];
    let nvptx = [&["--target=nvptx64-nvidia-cuda", "-march=sm_70"], &ptx[..]].concat();
    known(clang(&nvptx), "hello.ptx", &CUDA)?;
    let amdgcn = ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a"];
    known(clang(&amdgcn), "hello", &HIP)
}

#[test]
#[ignore = "needs nvcc 13: ./tests/run"]
fn nvcc_compiles_the_program_of_the_readme() -> Result<()> {
    // In a whole program, nvcc hides variables.
    for (form, name) in [
        (&["-ptx", "-rdc=true"][..], "hello.ptx"),
        (&["-cubin"], "hello.cubin"),
        (&["-fatbin"], "hello.fatbin"),
    ] {
        let mut nvcc = TOOLKIT_13.nvcc()?;
        nvcc.args(["-x", "cu", "-arch=sm_75", "-std=c++17"])
            .args(form);
        known([nvcc], name, &CUDA)?;
    }
    Ok(())
}

/// Programs of the host for CUDA and HIP, with the warp sizes of the README's images: `sm_75` and `gfx90a`.
const HELLO: [(&str, u32); 2] = [("hello-32.so", 32), ("hello-64.so", 64)];
/// Variables of the fake drivers for programs in place of images.
const FAKE_IMAGES: [&str; 2] = ["FAKE_CUDA_IMAGE", "FAKE_HIP_IMAGE"];

/// A copy of the README's directory, with the loader and fake drivers that run the host's version of its program in
/// place of images for GPUs.
struct Copy {
    bench: Bench,
    root: PathBuf,
}

impl Copy {
    fn new() -> Result<Self> {
        let bench = Bench::new()?;
        let root = bench.path("loader");
        fs::create_dir_all(&root)?;
        for (from, to) in [
            ("loader/programs", "loader/programs"),
            ("capi/include", "capi/include"),
        ] {
            let to = bench.path(to);
            fs::create_dir_all(to.parent().ok_or("no parent")?)?;
            let mut copy = Command::new("cp");
            succeed(copy.arg("-r").arg(workspace().join(from)).arg(to))?;
        }
        fs::create_dir(bench.path("bin"))?;
        symlink(&bench.loader, bench.path("bin/gpurpc-loader"))?;
        // The kernel of `--entry` in the examples has another name.
        let alias = "-Wl,--defsym=test_main=_start";
        for (name, lanes) in HELLO {
            let lanes = format!("-DGPURPC_DETAIL_LANES={lanes}");
            compile(&hello(), &bench.path(name), &["-Wpedantic", alias, &lanes])?;
        }
        Ok(Self { bench, root })
    }

    /// Adds a command that runs another one.
    fn add_command(&self, name: &str, other: &Command) -> Result<()> {
        let quote = |word: &std::ffi::OsStr| format!("'{}' ", word.to_string_lossy());
        let mut script = format!("#!/bin/sh\nexec {}", quote(other.get_program()));
        script.extend(other.get_args().map(quote));
        let path = self.bench.path("bin").join(name);
        fs::write(&path, script + "\"$@\"\n")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// Prepares a command with the drivers.
    fn prepare<'a>(&self, command: &'a mut Command) -> Result<&'a mut Command> {
        fs::write(self.bench.path("log"), "")?;
        command.env("PATH", path_with(&self.bench.path("bin"))?);
        for (variable, (name, _)) in FAKE_IMAGES.into_iter().zip(HELLO) {
            command.env(variable, self.bench.path(name));
        }
        command.env("FAKE_LOG", self.bench.path("log"));
        command.env("FAKE_DEVICES", "2");
        for driver in [CUDA, HIP] {
            command.env(driver.variable, self.bench.path(driver.soname));
        }
        Ok(command)
    }

    /// Runs a line of a shell.
    fn shell(&self, line: &str) -> Result<Ran> {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(&self.root);
        run(self.prepare(&mut shell)?)
    }

    /// Follows the commands of a block. The loader prints a line for each thread.
    fn follow(&self, block: &Block) -> Result<usize> {
        let text = block.text.replace("\\\n", " ");
        let commands: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("$ "))
            .collect();
        assert_eq!(commands.len(), text.lines().count(), "{text}");
        for command in &commands {
            let ran = self.shell(command)?.success()?;
            if command.starts_with("gpurpc-loader") {
                // A warp of the host has one lane.
                assert_eq!(ran.stdout, "hello from lane 00\n".repeat(4), "{command}");
            } else if command.starts_with("ctest") {
                let lines = ran.stdout.matches(": hello from lane 00\n").count();
                assert_eq!(lines, 4, "{}", ran.stdout);
            }
        }
        Ok(commands.len())
    }
}

/// Blocks of the README of a kind that contain a text.
fn blocks_with(kind: &str, text: &str) -> Result<Vec<Block>> {
    let blocks = blocks(PAGE)?.into_iter();
    let found: Vec<_> = blocks
        .filter(|block| block.kind == kind && block.text.contains(text))
        .collect();
    if found.is_empty() {
        return Err(format!("no block of {kind} has {text}").into());
    }
    Ok(found)
}

#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn readme_commands_of_clang_run() -> Result<()> {
    let copy = Copy::new()?;
    copy.add_command("clang", &Command::new("clang-19"))?;
    let blocks = blocks_with("console", "$ clang ")?;
    assert_eq!(blocks.len(), 2);
    for block in &blocks {
        assert_eq!(copy.follow(block)?, 2);
    }
    // A device function of the name is no kernel: reported without a driver.
    let source = copy.root.join("programs/hello.c");
    let without = fs::read_to_string(&source)?
        .replace("define KERNEL __attribute__", "define KERNEL /* */ //");
    fs::write(&source, without)?;
    for (block, image) in blocks.iter().zip(["hello.ptx", "hello"]) {
        let text = block.text.replace("\\\n", " ");
        let compile = text.lines().find_map(|line| line.strip_prefix("$ clang "));
        copy.shell(&format!("clang {}", compile.ok_or("no command")?))?
            .success()?;
        let ran = copy.shell(&format!("gpurpc-loader {image}"))?;
        assert_eq!(ran.status.code(), Some(126), "{image}");
        let expected = "error: the image has no kernel `_start`\nhelp: it has none at all";
        assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
        assert_eq!(copy.bench.calls()?, [""; 0]);
    }
    Ok(())
}

#[test]
#[ignore = "needs nvcc 13: ./tests/run"]
fn readme_commands_of_nvcc_run() -> Result<()> {
    let copy = Copy::new()?;
    copy.add_command("nvcc", &TOOLKIT_13.nvcc()?)?;
    let blocks = blocks_with("console", "$ nvcc ")?;
    assert_eq!((blocks.len(), copy.follow(&blocks[0])?), (1, 2));
    // The kernels of a cubin are known without a driver.
    copy.shell("nvcc -x cu -arch=sm_75 -cubin -I ../capi/include programs/hello.c -o hello.cubin")?
        .success()?;
    copy.shell("gpurpc-loader hello.cubin")?.success()?;
    let ran = copy.shell("gpurpc-loader --entry print hello.cubin")?;
    assert_eq!(ran.status.code(), Some(126));
    let expected = "error: the image has no kernel `print`\nhelp: it has `_start`; ";
    assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
    assert_eq!(copy.bench.calls()?, [""; 0]);
    Ok(())
}

#[test]
fn readme_options_run() -> Result<()> {
    let copy = Copy::new()?;
    let ptx = ".version 7.0\n.entry _start()\n.entry test_main()\n";
    for name in ["a.out", "test.cubin"] {
        fs::write(copy.root.join(name), ptx)?;
    }
    fs::create_dir(copy.root.join("data"))?;
    let blocks = blocks_with("sh", "gpurpc-loader --")?;
    let lines = blocks.iter().flat_map(|block| block.text.lines());
    let lines: Vec<_> = lines.filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() > 6, "{lines:?}");
    for line in lines {
        let ran = copy.shell(line)?;
        // On a slow machine the time of the example may be over.
        let ended =
            ran.status.success() || line.contains("--timeout") && ran.status.code() == Some(124);
        assert!(ended, "{line}: {}", ran.stderr);
        let started = copy.bench.calls()?;
        let started = started.iter().any(|call| call.contains("LaunchKernel"));
        assert!(started, "{line}");
    }
    Ok(())
}

/// CMake compiles for a GPU, and ctest runs the program through the loader.
#[test]
#[ignore = "needs clang 19 and cmake: ./tests/run"]
fn readme_cmake_project_is_tested_through_the_loader() -> Result<()> {
    let copy = Copy::new()?;
    copy.add_command("clang", &Command::new("clang-19"))?;
    for (text, name) in [
        ("CMAKE_CROSSCOMPILING_EMULATOR", "amdgcn.cmake"),
        ("add_test", "CMakeLists.txt"),
    ] {
        let blocks = blocks_with("cmake", text)?;
        fs::write(copy.root.join(name), &blocks[0].text)?;
    }
    let blocks = blocks_with("console", "$ cmake ")?;
    assert_eq!(copy.follow(&blocks[0])?, 3);
    let machine = fs::read(copy.root.join("build/hello"))?;
    // EM_AMDGPU: HIP's driver was detected.
    assert_eq!(machine[18..20], [224, 0]);
    let calls = copy.bench.calls()?;
    assert!(
        calls
            .iter()
            .any(|call| call.starts_with("hipModuleLaunchKernel _start")),
        "{calls:?}"
    );
    Ok(())
}

/// cargo runs a program through the loader, by the configuration and by the variable of the README, with the name of the
/// host's target: a toolchain for GPUs is not needed.
#[test]
fn readme_runner_is_used_by_cargo() -> Result<()> {
    let copy = Copy::new()?;
    let image = copy.bench.image("ONLY_START")?;
    let version = succeed(Command::new("rustc").arg("-vV"))?.stdout;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc has no host")?;
    let package = copy.bench.path("package");
    write_package(&package)?;
    let run_program = |variable: Option<(String, String)>| {
        let mut command = cargo(&package);
        copy.prepare(&mut command)?.env(FAKE_IMAGES[0], &image);
        command
            .env("CARGO_TARGET_DIR", package.join("target"))
            .envs(variable);
        command.args(["run", "--quiet", "--target", host, "--", "show", "-x"]);
        succeed(&mut command)
    };
    // The loader detects no driver for a program of the host.
    let with_runtime = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        text.replace(from, to)
    };

    let text = fs::read_to_string(workspace().join(PAGE))?;
    let (_, variable) = text.split_once("or `CARGO_TARGET_").ok_or("no variable")?;
    let (variable, _) = variable.split_once('`').ok_or("no end of the variable")?;
    let (target, value) = variable.split_once("_RUNNER=").ok_or("no value")?;
    assert_eq!(target, "NVPTX64_NVIDIA_CUDA");
    let name = host.replace('-', "_").to_uppercase();
    let value = with_runtime(
        value.trim_matches('"'),
        "gpurpc-loader",
        "gpurpc-loader --runtime cuda",
    );
    let ran = run_program(Some((format!("CARGO_TARGET_{name}_RUNNER"), value)))?;
    assert_eq!(ran.stdout, "show -x\n\n");

    assert_eq!(run_program(None)?.stdout, "on the host\n");
    let config = &blocks_with("toml", "runner = ")?[0].text;
    let config = with_runtime(
        config,
        "\"gpurpc-loader\"",
        "\"gpurpc-loader\", \"--runtime\", \"cuda\"",
    );
    let config = with_runtime(&config, "nvptx64-nvidia-cuda", host);
    fs::create_dir(package.join(".cargo"))?;
    fs::write(package.join(".cargo/config.toml"), config)?;
    assert_eq!(run_program(None)?.stdout, "show -x\n\n");
    Ok(())
}

fn write_package(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory.join("src"))?;
    let manifest =
        "[package]\nname = \"program\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(directory.join("Cargo.toml"), manifest)?;
    let main = "fn main() {\n    println!(\"on the host\");\n}\n";
    fs::write(directory.join("src/main.rs"), main)?;
    Ok(())
}
