//! Settings of a build, and the paths and tools that follow from them.

use std::path::{Path, PathBuf};

use gpustub_core::target::Target;

#[cfg(feature = "device-link")]
use crate::device_link::Delivery;
use crate::env::Env;
use crate::error::Error;
#[cfg(feature = "device-link")]
use crate::toolchain::Linker;
use crate::toolchain::{self, Toolchain};

/// Input of [`build`](crate::build). By default everything comes from the environment that cargo sets.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Environment variables.
    pub env: Env,
    /// Path of the manifest; `None`: `GpuStub.toml` beside `Cargo.toml`.
    pub manifest_path: Option<PathBuf>,
    /// Output directory; `None`: `OUT_DIR`.
    pub out_dir: Option<PathBuf>,
    /// C compiler; `None`: the value of `CC`.
    pub compiler: Option<PathBuf>,
    /// Archiver; `None`: the value of `AR`.
    pub archiver: Option<PathBuf>,
    /// Device link of the package's dependencies; `None`: the package has no device link.
    #[cfg(feature = "device-link")]
    pub delivery: Option<Delivery>,
    /// Super-archives to build; empty: all that are declared.
    #[cfg(feature = "archive")]
    pub archives: Vec<String>,
}

impl Settings {
    pub(crate) fn out_dir(&self) -> Result<PathBuf, Error> {
        Ok(match &self.out_dir {
            Some(dir) => dir.clone(),
            None => self.env.cargo_text("OUT_DIR")?.into(),
        })
    }

    /// Directory of all outputs except super-archives.
    pub(crate) fn gpustub_dir(&self) -> Result<PathBuf, Error> {
        Ok(self.out_dir()?.join("gpustub"))
    }

    /// Linker of C++ code.
    #[cfg(feature = "device-link")]
    pub(crate) fn linker(&self, target: &Target, scratch: &Path) -> Result<Linker, Error> {
        let host = self.env.cargo_text("HOST")?;
        for variable in toolchain::tool_variables(&["CXX", "CXXFLAGS"], &target.triple, &host) {
            self.env.rerun_if_env_changed(&variable);
        }
        Linker::find(target, &host, scratch)
    }

    pub(crate) fn toolchain(&self, target: &Target, scratch: &Path) -> Result<Toolchain, Error> {
        let host = self.env.cargo_text("HOST")?;
        for variable in toolchain::variables(&target.triple, &host) {
            self.env.rerun_if_env_changed(&variable);
        }
        if target.os == "macos" {
            // rustc writes the oldest system into objects, and linkers warn if the program's is older.
            self.env.rerun_if_env_changed("MACOSX_DEPLOYMENT_TARGET");
        }
        let tools = Toolchain::find(
            target,
            &host,
            scratch,
            self.compiler.as_deref(),
            self.archiver.as_deref(),
        )?;
        let is_optimised = (self.env.get("OPT_LEVEL")).is_some_and(|level| level != "0");
        let tools = if is_optimised {
            tools.optimised()
        } else {
            tools
        };
        // Cargo sets the variable for build scripts.
        Ok(match self.env.get("RUSTC") {
            Some(rustc) => tools.with_rustc(rustc),
            None => tools,
        })
    }
}
