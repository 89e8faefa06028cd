//! A compiler or archiver with the arguments and variables that the `cc` crate gives it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpustub_core::diag::COMPILER_ERROR;

use crate::error::Error;

/// A program with its first arguments and environment variables.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, Option<OsString>)>,
}

impl Tool {
    /// Program of a command. A relative path is made absolute, because the tool runs in another
    /// directory; a bare name is found in PATH and stays.
    pub(super) fn new(command: &Command) -> Result<Self, Error> {
        let path = Path::new(command.get_program());
        let is_bare_name = path.components().count() == 1;
        let program = if is_bare_name {
            path.as_os_str().to_owned()
        } else {
            absolute(path)?.into()
        };
        let mut tool = Self {
            program,
            args: Vec::new(),
            env: Vec::new(),
        };
        for arg in command.get_args() {
            tool.args.push(arg.to_owned());
        }
        for (name, value) in command.get_envs() {
            tool.env.push((name.to_owned(), value.map(Into::into)));
        }
        Ok(tool)
    }

    /// Replaces an argument, if there is one.
    pub(super) fn replace_arg(&mut self, from: &str, to: &str) {
        for arg in self.args.iter_mut().filter(|arg| *arg == from) {
            *arg = to.into();
        }
    }

    pub(super) fn command(&self, dir: &Path) -> Command {
        self.command_with(dir, &self.args)
    }

    /// Omits the headers of C code that `-include` in `CFLAGS` puts in front.
    pub(super) fn assembler_command(&self, dir: &Path) -> Command {
        let mut assembler_args = Vec::new();
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            if arg == "-include" || arg == "--include" {
                args.next();
            } else {
                assembler_args.push(arg.clone());
            }
        }
        self.command_with(dir, &assembler_args)
    }

    fn command_with(&self, dir: &Path, args: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(dir);
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

/// Absolute form of a path.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|e| Error::io("find", path, &e))
}

/// The program and the arguments in one line, without variables.
pub(super) fn words(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for word in command.get_args() {
        line += " ";
        line += &word.to_string_lossy();
    }
    line
}

/// Error of a tool: its command and its output.
pub(super) fn tool_error(message: &str, command: &Command, output: &Output) -> Error {
    let message = format!("{message} ({}): {}", output.status, words(command));
    Error::new(&COMPILER_ERROR, message)
        // cl writes to the first.
        .output(&[&*output.stdout, &*output.stderr].concat())
}

/// A triple as a part of variables' names.
pub(super) fn underscores(triple: &str) -> String {
    triple.replace("-", "_").replace(".", "_")
}
