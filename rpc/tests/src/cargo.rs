//! Cargo, as a user calls it, and what it builds here.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::succeed;
use crate::components::target_dir;
use crate::{Result, workspace};

/// Cargo in `directory`, without the environment variables of this test's own cargo.
pub fn cargo(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    without_own_cargo(command.current_dir(directory));
    command
}

/// Removes the environment variables of this test's own cargo from a command.
pub fn without_own_cargo(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let of_package = name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if of_package || ["CARGO_TARGET_DIR", "RUSTFLAGS"].contains(&&name[..]) {
            command.env_remove(&*name);
        }
    }
}

/// `gpurpc-loader`, built from the current tree.
pub fn loader() -> Result<PathBuf> {
    Ok(build("gpurpc-loader")?.join("gpurpc-loader"))
}

/// Directory of the libraries of the C interface, built from the current tree.
pub fn capi() -> Result<PathBuf> {
    build("gpurpc-capi")
}

/// Builds a package of this workspace. Returns the directory of the result.
fn build(package: &str) -> Result<PathBuf> {
    let mut build = cargo(&workspace());
    build.args(["build", "--quiet", "--package", package, "--target-dir"]);
    succeed(build.arg(target_dir()))?;
    Ok(target_dir().join("debug"))
}
