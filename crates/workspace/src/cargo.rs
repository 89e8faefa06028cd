//! Runs cargo: the one that runs this subcommand, or that of `PATH`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::environment::variable;
use crate::error::{Error, Result};

/// `cargo <subcommand>` in the workspace of a `Cargo.toml`.
pub fn command(subcommand: &str, manifest: &Path) -> Command {
    let mut command = Command::new(variable("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg(subcommand).arg("--manifest-path").arg(manifest);
    command
}

/// `cargo check`, whose messages are JSON on standard output; the errors of the compiler are on standard
/// error. A check runs build scripts, and links nothing.
pub fn check(manifest: &Path) -> Command {
    let mut command = command("check", manifest);
    command.args(["--quiet", "--message-format", "json-render-diagnostics"]);
    command.stderr(Stdio::inherit());
    command
}

/// Output of a command, which may have failed.
///
/// # Errors
///
/// If cargo cannot be started.
pub fn output(command: &mut Command) -> Result<Output> {
    command.output().map_err(|e| {
        let subcommand = command.get_args().next().unwrap_or_default();
        Error::new(format!(
            "could not run `cargo {}`: {e}",
            subcommand.display()
        ))
    })
}
