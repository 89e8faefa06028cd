//! Commands of `docs/finished-programs.md`.

use std::fs;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::program;
use gpustub_tests::command::{path_with, succeed};
use gpustub_tests::readme::commands;
use gpustub_tests::scratch::scratch;

use super::{fake_runtime, finished};

/// The page.
pub const PAGE: &str = "docs/finished-programs.md";

#[test]
fn the_page_shows_commands_that_work() -> Result<()> {
    let dir = scratch()?;
    let runtime = fake_runtime(&dir.path().join("toolkit"))?;
    finished(dir.path(), &runtime)?;
    let subcommand = program("cargo-gpustub")?;
    let path = path_with(subcommand.parent().unwrap_or(&subcommand))?;
    let commands = commands(PAGE)?;
    assert!(commands.len() >= 8, "{commands:?}");
    for (line, _) in commands {
        let mut bash = Command::new("bash");
        bash.current_dir(dir.path()).env("PATH", &path);
        let ran = succeed(bash.args(["-euc", &line]))?;
        if line.contains("./program") {
            assert!(ran.stdout.starts_with("cudaGetDeviceCount "), "{ran:?}");
        }
    }
    let mut sonames: Vec<_> = fs::read_dir(dir.path().join("stubs/lib"))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    sonames.sort();
    let expected = [
        "libOpenCL.so.1",
        "libamdhip64.so",
        "libcuda.so.1",
        "libcudart.so.12",
        "libhiprtc.so",
        "libnvidia-ml.so",
        "libnvrtc.so.12",
    ];
    assert_eq!(sonames, expected);
    Ok(())
}
