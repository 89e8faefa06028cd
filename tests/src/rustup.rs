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

/// Directory of cargo and rustc, with the standard libraries of these targets: of the user's toolchain if it has all of
/// them, else of one below the target directory.
pub fn toolchain(targets: &[&str]) -> Result<PathBuf> {
    let sysroot = succeed(Command::new("rustc").args(["--print", "sysroot"]))?.stdout;
    let sysroot = Path::new(sysroot.trim());
    if missing(sysroot, targets).is_empty() {
        return Ok(sysroot.join("bin"));
    }
    static INSTALLATION: Mutex<()> = Mutex::new(());
    let _guard = INSTALLATION.lock().unwrap_or_else(PoisonError::into_inner);
    let home = target_dir().join("cross/rustup");
    let version = succeed(Command::new("rustc").arg("--version"))?.stdout;
    let version = version.split(' ').nth(1).ok_or("rustc has no version")?;
    let rustup = |words: &[&str]| {
        let mut rustup = Command::new("rustup");
        rustup.args(["--quiet"]).args(words);
        without_own_cargo(
            rustup
                .env("RUSTUP_HOME", &home)
                .env_remove("RUSTUP_TOOLCHAIN"),
        );
        succeed(&mut rustup)
    };
    let root = home.join(format!("toolchains/{version}-{HOST}"));
    if !root.join("bin").exists() {
        let options = ["--profile", "minimal", "--no-self-update"];
        rustup(&[&["toolchain", "install", version], &options[..]].concat())?;
    }
    let missing = missing(&root, targets);
    if !missing.is_empty() {
        rustup(&[&["target", "add", "--toolchain", version], &missing[..]].concat())?;
    }
    Ok(root.join("bin"))
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
