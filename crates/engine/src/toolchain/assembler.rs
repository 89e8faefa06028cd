//! rustc as the assembler of stubs without a preprocessor: each machine with Rust has it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use gpustub_core::target::Target;

use super::Toolchain;
use super::msvc::Family;
use super::tool::tool_error;
use crate::error::Error;

/// Assembles a source in `dir` that consists of assembly, such as `stubs.rs`.
pub fn assemble(
    rustc: &OsStr,
    target: &Target,
    dir: &Path,
    source: &str,
    object: &str,
) -> Result<(), Error> {
    let mut command = Command::new(rustc);
    command.current_dir(dir).args([
        "--target",
        &target.triple,
        "--crate-type=lib",
        "--crate-name=gpustub_stubs",
        "-Ccodegen-units=1",
        "-Cdebuginfo=0",
        source,
    ]);
    let output = command
        .arg(format!("--emit=obj={object}"))
        .output()
        .map_err(|e| Error::io("run", Path::new(rustc), &e))?;
    if output.status.success() {
        return Ok(());
    }
    Err(tool_error("rustc failed to assemble", &command, &output))
}

impl Toolchain {
    /// Assembles the stubs in `dir`.
    pub fn stubs(&self, dir: &Path, defines: &[&str], object: &str) -> Result<(), Error> {
        match self.target.os.as_str() {
            // cl has no assembler for this text.
            "windows" if self.rustc.is_some() || self.family == Family::Cl => {
                self.assemble(dir, "stubs.rs", object)
            }
            "windows" => {
                // Four sections a function: GNU as writes no more than 65,279 otherwise. clang does so by itself.
                let big = [defines, &["-Wa,-mbig-obj"]].concat();
                self.object(dir, &big, "stubs.s", object)
            }
            _ => self.object(dir, defines, "stubs.S", object),
        }
    }

    /// Assembles a source in `dir` by rustc.
    pub(super) fn assemble(&self, dir: &Path, source: &str, object: &str) -> Result<(), Error> {
        let rustc = self.rustc.as_deref().unwrap_or(OsStr::new("rustc"));
        assemble(rustc, &self.target, dir, source, object)
    }
}
