//! Runs programs, with errors that show the command and its output.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::{Failure, Result};

/// Result of a program's run.
#[derive(Debug)]
pub struct Ran {
    /// The command line.
    pub line: String,
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ran {
    /// Error that says `message` about this run.
    pub fn error(&self, message: &str) -> Failure {
        let Self {
            line,
            status,
            stdout,
            stderr,
        } = self;
        format!(
            "{message}\n  command: {line}\n  {status}\n-- stdout\n{stdout}\n-- stderr\n{stderr}"
        )
        .into()
    }

    /// This run, if its exit status was 0.
    pub fn success(self) -> Result<Self> {
        if self.status.success() {
            Ok(self)
        } else {
            Err(self.error("a program failed"))
        }
    }

    /// This run, if `text` contains all of `expected` in this order.
    pub fn expect_in_order(self, expected: &[&str]) -> Result<Self> {
        let mut rest = &self.stdout[..];
        for part in expected {
            match rest.find(part) {
                Some(offset) => rest = &rest[offset + part.len()..],
                None => return Err(self.error(&format!("{part:?} is missing from the output"))),
            }
        }
        Ok(self)
    }
}

/// Runs a program to its end, without input.
pub fn run(command: &mut Command) -> Result<Ran> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    let line = words.join(" ");
    let output = output(command)
        .map_err(|e| format!("cannot run `{line}`: {e}; ./tests/run installs what tests need"))?;
    Ok(Ran {
        line,
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs a program without input. Its output is captured, unless it has another destination.
fn output(command: &mut Command) -> io::Result<Output> {
    command.stdin(Stdio::null());
    // A program that this process has just written is busy until the children that other threads
    // were forking meanwhile have called `execve` (https://github.com/golang/go/issues/22315).
    for _ in 0..100 {
        match command.output() {
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy => {
                sleep(Duration::from_millis(20));
            }
            result => return result,
        }
    }
    command.output()
}

/// Runs a program that must succeed.
pub fn succeed(command: &mut Command) -> Result<Ran> {
    run(command)?.success()
}

/// Path of a program, found in `PATH`.
pub fn which(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file());
    match program {
        Some(program) => Ok(program),
        None => {
            Err(format!("{name} is not installed: ./tests/run installs what tests need").into())
        }
    }
}

/// `PATH` with one more directory in front.
pub fn path_with(directory: &Path) -> Result<OsString> {
    path_with_all([directory.to_owned()])
}

/// `PATH` with more directories in front.
pub fn path_with_all(directories: impl IntoIterator<Item = PathBuf>) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = directories.into_iter().chain(std::env::split_paths(&path));
    Ok(std::env::join_paths(directories)?)
}
