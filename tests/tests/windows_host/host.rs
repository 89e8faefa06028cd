//! A machine with Windows: the subcommand, cargo, rustc and a C compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use gpustub_tests::cargo::{self, without_own_cargo};
use gpustub_tests::command::{Ran, path_with, succeed};
use gpustub_tests::components::target_dir;
use gpustub_tests::rustup::{foreign_toolchain, toolchain};
use gpustub_tests::scratch::scratch;
use gpustub_tests::wine::{TRIPLE, compiler, install_random_numbers, run, windows_path, wine};
use gpustub_tests::{Result, repository};
use tempfile::TempDir;

/// Target directory of the programs for Windows.
pub fn target() -> PathBuf {
    target_dir().join("windows-host")
}

/// cargo of this machine, with the standard library of a target.
pub fn cross_cargo(target_triple: &str) -> Result<Command> {
    let bin = toolchain(&[target_triple])?;
    let mut cargo = Command::new(bin.join("cargo"));
    without_own_cargo(&mut cargo);
    cargo
        .current_dir(repository())
        .env("PATH", path_with(&bin)?)
        .env("CARGO", bin.join("cargo"))
        .env("RUSTC", bin.join("rustc"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_TARGET_DIR", target())
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("LD_LIBRARY_PATH");
    Ok(cargo)
}

/// `cargo-gpustub.exe`, built once.
fn subcommand() -> Result<PathBuf> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        let mut cargo = cross_cargo(TRIPLE)?;
        cargo.args(["build", "--quiet", "--package", "cargo-gpustub"]);
        succeed(cargo.args(["--target", TRIPLE]))?;
        Ok(target().join(TRIPLE).join("debug/cargo-gpustub.exe"))
    };
    let program =
        PROGRAM.get_or_init(|| build().map_err(|failure: gpustub_tests::Failure| failure.0));
    program.clone().map_err(Into::into)
}

/// A directory with programs of Windows, and one in which they run.
pub struct Host {
    programs: TempDir,
    work: TempDir,
}

impl Host {
    /// A machine with the subcommand alone.
    pub fn new() -> Result<Self> {
        let (programs, work) = (scratch()?, scratch()?);
        fs::copy(subcommand()?, programs.path().join("cargo-gpustub.exe"))?;
        install_random_numbers(programs.path())?;
        Ok(Self { programs, work })
    }

    /// Adds `gcc.exe` and `ar.exe`.
    pub fn with_c_compiler(self) -> Result<Self> {
        let program = self.program("gcc.exe");
        self.compile("programs/windows/unix-tool.c", &program)?;
        fs::copy(&program, self.program("ar.exe"))?;
        Ok(self)
    }

    /// Compiles a program from a source below `tests`.
    pub fn compile(&self, source: &str, program: &Path) -> Result<()> {
        let mut gcc = Command::new(compiler("c"));
        gcc.args(["-O1", "-Wall", "-o"]).arg(program);
        succeed(gcc.arg(repository().join("tests").join(source)))?;
        Ok(())
    }

    /// The directory in which programs run.
    pub fn dir(&self) -> &Path {
        self.work.path()
    }

    /// Path of a program.
    pub fn program(&self, file: &str) -> PathBuf {
        self.programs.path().join(file)
    }

    /// Runs `cargo-gpustub.exe gpustub`, as cargo does.
    pub fn gpustub(&self, words: &[&str]) -> Result<Ran> {
        let mut command = wine(&self.program("cargo-gpustub.exe"))?;
        command.current_dir(self.dir()).arg("gpustub").args(words);
        run(&mut command)
    }

    /// Windows' cargo in a directory, without network.
    pub fn cargo(&self, directory: &Path, words: &[&str]) -> Result<Ran> {
        let bin = foreign_toolchain(TRIPLE)?;
        install_random_numbers(&bin)?;
        let programs = windows_path(self.programs.path());
        let mut command = wine(&bin.join("cargo.exe"))?;
        command
            .current_dir(directory)
            .args(words)
            .env("WINEPATH", format!("{};{programs}", windows_path(&bin)))
            .env("CARGO_HOME", windows_path(&cargo::home()?))
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_INCREMENTAL", "0");
        run(&mut command)
    }
}
