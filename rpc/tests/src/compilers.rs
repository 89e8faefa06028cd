//! Compilers for GPUs, newer than the system's.

use std::path::PathBuf;
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
        let mut clang = self.started()?;
        let version = succeed(clang.arg("--version"))?.stdout;
        let expected = format!("clang version {}.", self.major());
        if !version.contains(&expected) {
            return Err(format!("{self:?} says no {expected:?}: {version}").into());
        }
        self.started()
    }

    fn started(self) -> Result<Command> {
        let major = match self {
            Self::System(major) => return Ok(Command::new(format!("clang-{major}"))),
            Self::Component(major) => major,
        };
        // Runs with its own C library, which may be newer than the system's.
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

/// CUDA toolkit with nvcc.
#[derive(Debug, Clone, Copy)]
pub struct Toolkit {
    compiler: &'static str,
    /// Component with its headers and libraries, if separate from the compiler.
    runtime: Option<&'static str>,
}

/// From wheels, as all of 13.
pub const TOOLKIT_13: Toolkit = Toolkit {
    compiler: "wheels/nvcc-13.5/nvidia/cu13/bin/nvcc",
    runtime: Some("wheels/cudart-13.5/nvidia/cu13"),
};

/// From Debian; for `heavy_` tests only.
pub const TOOLKIT_12: Toolkit = Toolkit {
    compiler: "toolkit-12.4/bin/nvcc",
    runtime: None,
};

impl Toolkit {
    /// The toolkit's compiler, which finds headers and libraries; without architectures.
    pub fn nvcc(&self) -> Result<Command> {
        let mut nvcc = Command::new(component(self.compiler)?);
        if let Some(runtime) = self.runtime {
            nvcc.arg("-I").arg(component(runtime)?.join("include"));
            nvcc.arg("-L").arg(component(runtime)?.join("lib"));
        }
        Ok(nvcc)
    }
}
