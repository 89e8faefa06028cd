//! Standard libraries of other targets. The user's rustup installation stays unchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::Result;
use crate::cargo::without_own_cargo;
use crate::command::succeed;
use crate::components::target_dir;

/// Triple of the machine that runs the tests.
pub const HOST: &str = "x86_64-unknown-linux-gnu";

/// Held by what changes toolchains below the target directory.
static INSTALLATION: Mutex<()> = Mutex::new(());

/// Directory of cargo and rustc, with the standard libraries of these targets: of the user's toolchain if it has all of
/// them, else of one below the target directory.
pub fn toolchain(targets: &[&str]) -> Result<PathBuf> {
    let sysroot = succeed(Command::new("rustc").args(["--print", "sysroot"]))?.stdout;
    let sysroot = Path::new(sysroot.trim());
    if missing(sysroot, targets).is_empty() {
        return Ok(sysroot.join("bin"));
    }
    let version = version()?;
    let root = install(HOST, &version)?;
    let missing = missing(&root, targets);
    if !missing.is_empty() {
        let _guard = INSTALLATION.lock().unwrap_or_else(PoisonError::into_inner);
        rustup(&[&["target", "add", "--toolchain", &version], &missing[..]].concat())?;
    }
    Ok(root.join("bin"))
}

/// Directory of the cargo and rustc of another machine, in the version of the user's.
pub fn foreign_toolchain(host: &str) -> Result<PathBuf> {
    Ok(install(host, &version()?)?.join("bin"))
}

/// Version of the user's rustc.
fn version() -> Result<String> {
    let version = succeed(Command::new("rustc").arg("--version"))?.stdout;
    Ok(version
        .split(' ')
        .nth(1)
        .ok_or("rustc has no version")?
        .to_owned())
}

/// Installs a toolchain below the target directory, unless it is there.
fn install(host: &str, version: &str) -> Result<PathBuf> {
    let _guard = INSTALLATION.lock().unwrap_or_else(PoisonError::into_inner);
    let name = format!("{version}-{host}");
    let root = home().join("toolchains").join(&name);
    if !root.join("bin").exists() {
        let options = [
            "--profile",
            "minimal",
            "--no-self-update",
            "--force-non-host",
        ];
        rustup(&[&["toolchain", "install", &name], &options[..]].concat())?;
    }
    Ok(root)
}

fn home() -> PathBuf {
    target_dir().join("cross/rustup")
}

fn rustup(words: &[&str]) -> Result<()> {
    let mut rustup = Command::new("rustup");
    rustup.args(["--quiet"]).args(words);
    without_own_cargo(
        rustup
            .env("RUSTUP_HOME", home())
            .env_remove("RUSTUP_TOOLCHAIN"),
    );
    succeed(&mut rustup)?;
    Ok(())
}

/// The targets without a standard library in a toolchain.
fn missing<'a>(toolchain: &Path, targets: &[&'a str]) -> Vec<&'a str> {
    let libraries = toolchain.join("lib/rustlib");
    (targets.iter().copied())
        .filter(|target| !libraries.join(target).exists())
        .collect()
}

/// A script in `dir` that runs rustc of [`toolchain`]: cargo sets `LD_LIBRARY_PATH` for tests, and with it the rustc of
/// another toolchain finds the libraries of that one.
pub fn rustc(targets: &[&str], dir: &Path) -> Result<PathBuf> {
    let rustc = toolchain(targets)?.join("rustc");
    let script = dir.join("rustc");
    let text = format!(
        "#!/bin/sh\nunset LD_LIBRARY_PATH RUSTUP_TOOLCHAIN\nexec {} \"$@\"\n",
        rustc.display()
    );
    fs::write(&script, text)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(script)
}
