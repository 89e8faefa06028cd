//! Cargo, as a user calls it.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::command::succeed;
use crate::components::target_dir;
use crate::{Result, repository};

/// Cargo in `directory`, without the environment variables of this test's own cargo.
pub fn cargo(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    without_own_cargo(command.current_dir(directory));
    command
}

/// Variable by which `tests/run` leaves debug information out of this workspace's builds.
const DEBUG: &str = "CARGO_PROFILE_DEV_DEBUG";

/// Removes the environment variables of this test's own cargo from a command.
pub fn without_own_cargo(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let is_of_package = name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if is_of_package || ["CARGO_TARGET_DIR", "RUSTFLAGS", DEBUG].contains(&&name[..]) {
            command.env_remove(&*name);
        }
    }
}

/// A program of this repository, built from the current tree.
pub fn program(package: &str) -> Result<PathBuf> {
    build(&repository(), package)
}

/// The program of `examples/hello-gpu`, built from the current tree.
pub fn hello_gpu() -> Result<PathBuf> {
    build(&repository().join("examples/hello-gpu"), "hello-gpu")
}

/// A program of the workspace in `directory`, built once per process. All workspaces share one target directory.
fn build(directory: &Path, package: &str) -> Result<PathBuf> {
    /// Names of the packages that are built.
    static BUILT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if !built.contains(package) {
        let mut build = cargo(directory);
        build.envs(std::env::var_os(DEBUG).map(|value| (DEBUG, value)));
        build.args(["build", "--quiet", "--package", package, "--target-dir"]);
        succeed(build.arg(target_dir()))?;
        built.insert(package.to_owned());
    }
    Ok(target_dir().join("debug").join(package))
}

/// `cargo gpustub` of this repository.
pub fn gpustub(words: &[&str]) -> Result<Command> {
    let mut command = Command::new(program("cargo-gpustub")?);
    command.current_dir(repository()).arg("gpustub").args(words);
    Ok(command)
}

/// Directory of the packages that cargo has downloaded.
pub fn home() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let default = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    home.or(default).ok_or_else(|| "no HOME".into())
}

/// An empty cargo home in a directory, but for the packages that have been downloaded already.
pub fn cargo_home(dir: &Path) -> Result<PathBuf> {
    let home = dir.join("cargo");
    std::fs::create_dir(&home)?;
    let user_home = self::home()?;
    for entry in ["registry", "config.toml"] {
        if user_home.join(entry).exists() {
            symlink(user_home.join(entry), home.join(entry))?;
        }
    }
    Ok(home)
}
