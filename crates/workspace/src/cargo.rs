//! Runs cargo: the one that runs this subcommand, or that of `PATH`.

use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::environment::variable;
use crate::error::{Error, Result};
use crate::status_line::StatusLine;

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
    let output = command.output();
    output.map_err(|error| could_not_run(command, &error))
}

/// Output of a command like [`output`], whose errors are written above the status line.
///
/// # Errors
///
/// If cargo or a thread cannot be started.
pub fn output_with_status(command: &mut Command, status: &StatusLine) -> Result<Output> {
    if !status.is_enabled() {
        return output(command);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let output = command
        .stderr(Stdio::piped())
        .spawn()
        .and_then(|mut cargo| {
            thread::scope(|scope| {
                if let Some(errors) = cargo.stderr.take() {
                    thread::Builder::new().spawn_scoped(scope, || status.forward(errors))?;
                }
                cargo.wait_with_output()
            })
        });
    output.map_err(|error| could_not_run(command, &error))
}

fn could_not_run(command: &Command, error: &io::Error) -> Error {
    let subcommand = command.get_args().next().unwrap_or_default();
    Error::new(format!(
        "could not run `cargo {}`: {error}",
        subcommand.display()
    ))
}
