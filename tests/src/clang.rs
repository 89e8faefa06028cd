//! Compilers for GPUs that are newer than the system's.

use std::path::PathBuf;
use std::process::Command;

use crate::Result;
use crate::command::succeed;
use crate::components::component;

/// A release of clang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clang {
    /// The package of the system.
    System(u32),
    /// The component `clang-` with its number.
    Component(u32),
}

impl Clang {
    /// Its major version.
    pub fn major(self) -> u32 {
        match self {
            Self::System(major) | Self::Component(major) => major,
        }
    }

    /// A command that runs it. An error says what is missing, or that it is another release.
    pub fn command(self) -> Result<Command> {
        let mut clang = self.started()?;
        let said = succeed(clang.arg("--version"))?.stdout;
        let expected = format!("clang version {}.", self.major());
        if !said.contains(&expected) {
            return Err(format!("{self:?} says no {expected:?}: {said}").into());
        }
        self.started()
    }

    fn started(self) -> Result<Command> {
        let major = match self {
            Self::System(major) => return Ok(Command::new(format!("clang-{major}"))),
            Self::Component(major) => major,
        };
        // It needs a newer C library than this system may have: it runs with its own.
        let root = component(&format!("clang-{major}/usr/lib"))?;
        let libraries = root.join("x86_64-linux-gnu");
        let home = root.join(format!("llvm-{major}"));
        let mut clang = Command::new(libraries.join("ld-linux-x86-64.so.2"));
        clang.arg("--library-path").arg(&libraries);
        clang.arg(home.join("bin/clang"));
        let resources: PathBuf = home.join(format!("lib/clang/{major}"));
        clang.arg("-resource-dir").arg(resources);
        Ok(clang)
    }
}
