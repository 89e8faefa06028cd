//! Commands of the README and of `docs/start.md`, and their output.

use std::path::Path;
use std::process::Command;

use gpustub_tests::cargo::{hello_gpu, program};
use gpustub_tests::command::{Ran, path_with, succeed, which};
use gpustub_tests::readme::{block_commands, patched_directory};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

const START: &str = "docs/start.md";

/// Runs a line in `dir` with a shell, with the packages of this tree in place of published ones and
/// without CUDA.
fn shell(line: &str, dir: &Path) -> Result<Ran> {
    let subcommand = program("cargo-gpustub")?;
    let path = path_with(subcommand.parent().unwrap_or(&subcommand))?;
    let mut bash = Command::new(which("bash")?);
    bash.current_dir(dir)
        .args(["-euc", line])
        .env("PATH", path)
        .env("CARGO_NET_OFFLINE", "true")
        .env("GPUSTUB_CUDART_PATH", "off")
        .env("GPUSTUB_NVRTC_PATH", "off")
        .env_remove("CARGO_TARGET_DIR");
    succeed(&mut bash)
}

/// The README is read in a minute: one command and one picture before the first scroll.
#[test]
fn readme_is_short() -> Result<()> {
    let readme = std::fs::read_to_string(repository().join("README.md"))?;
    let lines = readme.lines().count();
    assert!(lines <= 120, "README.md has {lines} lines");
    let (screen, _) = readme.split_once("\n## ").ok_or("no heading")?;
    assert!(screen.lines().count() <= 25, "{screen}");
    let count = |text| screen.matches(text).count();
    assert_eq!((count("\n$ "), count("\n![")), (1, 1));
    Ok(())
}

#[test]
fn one_command_adds_stubs_to_a_package() -> Result<()> {
    let commands = block_commands("README.md", "cargo gpustub add")?;
    let [(command, output)] = &commands[..] else {
        return Err(format!("{commands:?}").into());
    };
    assert!(output.is_empty());
    let dir = patched_directory()?;
    shell("cargo new demo", dir.path())?;
    let package = dir.path().join("demo");
    shell(command, &package)?;
    shell("cargo gpustub sync --check && cargo build", &package)?;
    Ok(())
}

/// Commands for a fresh machine: the subcommand as the page about installing has it, and an example.
#[test]
fn example_on_a_fresh_machine_prints_the_table() -> Result<()> {
    let line = "cargo run --manifest-path examples/hello-gpu/Cargo.toml";
    let commands = block_commands("README.md", line)?;
    let [install, example] = &commands[..] else {
        return Err(format!("{commands:?}").into());
    };
    assert!(block_commands("docs/install.md", &install.0)?.contains(install));
    assert_eq!(*example, (line.to_owned(), Vec::new()));
    let mut run = Command::new(hello_gpu()?);
    let output = succeed(&mut run)?;
    let rows = ["LIBRARY", "cuda ", "cudart ", "hip ", "nvrtc ", "opencl "];
    for row in rows {
        let found = output.stdout.lines().any(|line| line.starts_with(row));
        assert!(found, "hello-gpu has no row {row:?}:\n{}", output.stdout);
    }
    Ok(())
}

#[test]
fn test_command_of_contributors_exists() -> Result<()> {
    let commands = block_commands("CONTRIBUTING.md", "tests/run")?;
    let runs = |text| {
        commands
            .iter()
            .any(|(line, _)| line.split(" #").next().map(str::trim_end) == Some(text))
    };
    assert!(runs("tests/run") && runs("tests/run --all"), "{commands:?}");
    let help = succeed(Command::new(repository().join("tests/run")).arg("--help"))?;
    help.expect_in_order(&["--all"])?;
    Ok(())
}

#[test]
fn a_project_from_zero() -> Result<()> {
    let dir = patched_directory()?;
    let mut script = String::new();
    let mut expected = Vec::new();
    for (command, output) in block_commands(START, "cargo new")? {
        script += &command;
        script.push('\n');
        expected.extend(output);
    }
    assert!(!expected.is_empty(), "the page promises output");
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    shell(&script, dir.path())?.expect_in_order(&expected)?;
    shell("cd demo && cargo gpustub sync --check", dir.path())?;
    Ok(())
}

#[test]
fn a_c_program_without_cargo() -> Result<()> {
    let dir = scratch()?;
    let program = "#include <stdio.h>\n\
        int cudaGetDeviceCount(int *); int nvrtcVersion(int *, int *);\n\
        int main(void) { int n = -7, a, b; printf(\"%d\", cudaGetDeviceCount(&n));\n\
        printf(\" %d %d\\n\", n, nvrtcVersion(&a, &b)); return 0; }\n";
    std::fs::write(dir.path().join("prog.c"), program)?;
    let mut script = String::new();
    for (command, _) in block_commands(START, "gcc prog.c")? {
        script += &command;
        script.push('\n');
    }
    script += "./a.out\n";
    shell(&script, dir.path())?.expect_in_order(&["35 0 11"])?;
    Ok(())
}
