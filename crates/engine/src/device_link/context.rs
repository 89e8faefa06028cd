//! Inputs that the steps of a device-link build share.

use std::path::Path;

use gpustub_core::gpu_arch::{Arch, Vendor};
use gpustub_core::manifest::DeviceModule;

use super::directories::Directories;
use super::disabled::Disabled;
use super::metadata::{DeviceLibrary, Stubs};
use crate::env::Env;
use crate::error::{Error, SourceText};
use crate::store::Store;
use crate::toolchain::{Linker, Toolchain};

/// The package that is built.
pub(super) struct Context<'a> {
    pub(super) env: &'a Env,
    /// `GpuStub.toml`, and its directory.
    pub(super) manifest: SourceText<'a>,
    pub(super) package: &'a Path,
    /// `OUT_DIR/gpustub`.
    pub(super) out: &'a Path,
    /// Outputs that other builds share.
    pub(super) store: Option<Store>,
    /// The package's libraries whose cargo feature is disabled.
    pub(super) disabled: &'a [Disabled<'a>],
    /// Architectures that the package's programs request.
    pub(super) link_archs: &'a [Arch],
    /// The package's stubs of the CUDA runtime.
    pub(super) stubs: Stubs,
    /// Its stubs of the HIP runtime.
    pub(super) hip_stubs: Stubs,
    /// Function that finds the C compiler and the archiver.
    pub(super) tools: &'a dyn Fn() -> Result<Toolchain, Error>,
    /// Function that finds the linker of C++ code.
    pub(super) linker: &'a dyn Fn() -> Result<Linker, Error>,
}

impl Context<'_> {
    pub(super) fn out_dir(&self) -> &Path {
        self.out.parent().unwrap_or(self.out)
    }

    /// Its stubs of a vendor's runtime.
    pub(super) fn stubs(&self, vendor: Vendor) -> &Stubs {
        match vendor {
            Vendor::Nvidia => &self.stubs,
            Vendor::Amd => &self.hip_stubs,
        }
    }

    pub(super) fn directories(&self) -> Directories<'_> {
        Directories {
            package: self.package,
            out_dir: Some(self.out_dir()),
        }
    }
}

/// The compile steps of a package: its libraries and its compilers.
pub(super) struct BuildContext<'a> {
    /// Commands run in the package's directory, so that messages name files relative to it.
    pub(super) context: &'a Context<'a>,
    /// Libraries of the package, and its modules behind them.
    pub(super) libraries: &'a [DeviceLibrary],
    pub(super) modules: &'a [&'a DeviceModule],
    /// Libraries of its dependencies.
    pub(super) dependencies: &'a [DeviceLibrary],
    /// `OUT_DIR/gpustub/device-link`.
    pub(super) out: &'a Path,
    /// `OPT_LEVEL` of cargo.
    pub(super) opt_level: &'a str,
    /// `DEBUG` of cargo.
    pub(super) debug: bool,
}
