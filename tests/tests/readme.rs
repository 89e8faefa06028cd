//! Commands of the README, and their output.

use std::path::Path;
use std::process::Command;

use gpustub_tests::cargo::{hello_gpu, program};
use gpustub_tests::command::{Ran, path_with, succeed, which};
use gpustub_tests::readme::patched_directory;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

/// The `console` block that contains `text`: its commands, each with the output shown.
fn console_block(text: &str) -> Result<Vec<(String, Vec<String>)>> {
    let readme = std::fs::read_to_string(repository().join("README.md"))?;
    let block = readme
        .split("```console\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .find(|block| block.contains(text))
        .ok_or(format!("README.md has no console block with `{text}`"))?;
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    let mut here_document = false;
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ").filter(|_| !here_document) {
            here_document = command.contains("<<'EOF'");
            commands.push((command.to_owned(), Vec::new()));
        } else if let Some((command, output)) = commands.last_mut() {
            if here_document {
                command.push('\n');
                command.push_str(line);
                here_document = line != "EOF";
            } else {
                output.push(line.to_owned());
            }
        }
    }
    Ok(commands)
}

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

#[test]
fn first_command_prints_the_table() -> Result<()> {
    let line = "cargo run --manifest-path examples/hello-gpu/Cargo.toml";
    assert_eq!(console_block(line)?, [(line.to_owned(), Vec::new())]);
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
fn readme_test_command_exists() -> Result<()> {
    let commands = console_block("./tests/run")?;
    assert_eq!(commands, [("./tests/run".to_owned(), Vec::new())]);
    let help = succeed(Command::new(repository().join("tests/run")).arg("--help"))?;
    help.expect_in_order(&["--all"])?;
    Ok(())
}

#[test]
fn a_project_from_zero() -> Result<()> {
    let dir = patched_directory()?;
    let mut script = String::new();
    let mut expected = Vec::new();
    for (command, output) in console_block("cargo new")? {
        script += &command;
        script.push('\n');
        expected.extend(output);
    }
    assert!(!expected.is_empty(), "the README promises output");
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
    for (command, _) in console_block("gcc prog.c")? {
        script += &command;
        script.push('\n');
    }
    script += "./a.out\n";
    shell(&script, dir.path())?.expect_in_order(&["35 0 11"])?;
    Ok(())
}
