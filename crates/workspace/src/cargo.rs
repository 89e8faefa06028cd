//! Runs cargo: the one that runs this subcommand, or that of `PATH`.

use std::io;
use std::mem;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::environment::variable;
use crate::error::{Error, Result};
use crate::status_line::StatusLine;
use crate::system;

/// Numbers of the processes of cargo that run.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `cargo <subcommand>` in the workspace of a `Cargo.toml`.
pub fn command(subcommand: &str, manifest: &Path) -> Command {
    let mut command = Command::new(variable("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg(subcommand).arg("--manifest-path").arg(manifest);
    command.stderr(Stdio::piped());
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
    let output = run(command, None);
    output.map_err(|error| could_not_run(command, &error))
}

/// Output of a command like [`output`], whose errors are written above the status line.
///
/// # Errors
///
/// If cargo or a thread cannot be started.
pub fn output_with_status(command: &mut Command, status: &StatusLine) -> Result<Output> {
    let output = run(command, Some(status).filter(|status| status.is_enabled()));
    output.map_err(|error| could_not_run(command, &error))
}

fn run(command: &mut Command, status: Option<&StatusLine>) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    if status.is_some() {
        command.stderr(Stdio::piped());
    }
    let (mut cargo, process) = {
        // No process is started after `end_running`.
        let mut running = running();
        let cargo = command.spawn()?;
        let process = cargo.id();
        running.push(process);
        (cargo, process)
    };
    let output = thread::scope(|scope| {
        if let Some(status) = status {
            let errors = cargo.stderr.take();
            let forward = || errors.map(|errors| status.forward(errors));
            thread::Builder::new().spawn_scoped(scope, forward)?;
        }
        cargo.wait_with_output()
    });
    running().retain(|number| *number != process);
    output
}

/// Ends each cargo that runs, with its build scripts and compilers, when this process ends: a thread that starts cargo or
/// waits for it waits for ever.
pub fn end_running() {
    let running = running();
    for process in running.iter() {
        system::end_with_children(*process);
    }
    mem::forget(running);
}

fn could_not_run(command: &Command, error: &io::Error) -> Error {
    let subcommand = command.get_args().next().unwrap_or_default();
    Error::new(format!(
        "could not run `cargo {}`: {error}",
        subcommand.display()
    ))
}
