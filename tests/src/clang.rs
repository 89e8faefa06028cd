//! Compilers for GPUs, newer than the system's.

use std::process::Command;

use crate::Result;
use crate::command::succeed;
use crate::components::component;

/// Release of clang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clang {
    /// Package of the system.
    System(u32),
    /// Component `clang-` with this number.
    Component(u32),
}

impl Clang {
    /// Major version.
    pub fn major(self) -> u32 {
        match self {
            Self::System(major) | Self::Component(major) => major,
        }
    }

    /// Command that runs this release. An error says that it is missing or another release.
    pub fn command(self) -> Result<Command> {
        let version = succeed(self.unchecked_command()?.arg("--version"))?.stdout;
        let expected = format!("clang version {}.", self.major());
        if !version.contains(&expected) {
            return Err(format!("{self:?} says no {expected:?}: {version}").into());
        }
        self.unchecked_command()
    }

    fn unchecked_command(self) -> Result<Command> {
        let major = match self {
            Self::System(major) => return Ok(Command::new(format!("clang-{major}"))),
            Self::Component(major) => major,
        };
        // Runs with its own C library, which may be newer than the system's.
        let root = component(&format!("clang-{major}/usr/lib"))?;
        let libraries = root.join("x86_64-linux-gnu");
        let llvm = root.join(format!("llvm-{major}"));
        let mut clang = Command::new(libraries.join("ld-linux-x86-64.so.2"));
        clang.arg("--library-path").arg(&libraries);
        clang.arg(llvm.join("bin/clang"));
        clang.arg("-resource-dir");
        clang.arg(llvm.join(format!("lib/clang/{major}")));
        Ok(clang)
    }
}
