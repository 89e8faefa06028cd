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
use crate::stubs::HOST;

/// Directory of cargo and rustc, with the standard libraries of these targets.
pub fn toolchain(targets: &[&str]) -> Result<PathBuf> {
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
    let is_missing = |target: &&&str| !root.join("lib/rustlib").join(target).exists();
    let missing: Vec<&str> = targets.iter().filter(is_missing).copied().collect();
    if !missing.is_empty() {
        rustup(&[&["target", "add", "--toolchain", version], &missing[..]].concat())?;
    }
    Ok(root.join("bin"))
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
