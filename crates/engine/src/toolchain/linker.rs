//! The C++ compiler as a linker.

use std::path::Path;
use std::process::Command;

use gpustub_core::target::Target;

use super::finder::{finder, no_tool};
use super::tool::{Tool, tool_error};
use crate::error::Error;

/// A C++ compiler that links shared libraries of C++ code.
pub(crate) struct Linker(Tool);

impl Linker {
    /// Finds the compiler of the `cc` crate (`CXX`).
    pub(crate) fn find(target: &Target, host: &str, scratch: &Path) -> Result<Self, Error> {
        let compiler = finder(target, host, scratch)
            .cpp(true)
            .try_get_compiler()
            .map_err(|e| no_tool(target, &e))?;
        Tool::new(&compiler.to_command()).map(Self)
    }

    pub(crate) fn command(&self, dir: &Path) -> Command {
        self.0.command(dir)
    }

    /// Runs a command of this linker.
    pub(crate) fn run(&self, command: &mut Command) -> Result<(), Error> {
        let output = command
            .output()
            .map_err(|e| Error::io("run", Path::new(&self.0.program), &e))?;
        if output.status.success() {
            Ok(())
        } else {
            let message = "the C++ compiler could not link";
            Err(tool_error(message, command, &output))
        }
    }
}
