//! The compilers of a build, one for each vendor.

use std::io;
use std::process::Command;

use gpustub_core::gpu_arch::Vendor;

use super::cuda_clang::CudaClang;
use super::hip::Clang;
use super::nvcc::Nvcc;
use crate::error::Error;

/// The compilers that the libraries of a package need.
pub(super) struct Compilers {
    /// For architectures of NVIDIA, and their device links.
    pub(super) nvcc: Option<Nvcc>,
    /// For tables of NVIDIA's architectures that choose it.
    pub(super) cuda_clang: Option<CudaClang>,
    /// For architectures of AMD.
    pub(super) clang: Option<Clang>,
}

/// Compiler of one vendor's code.
#[derive(Clone, Copy)]
pub(super) enum Compiler<'a> {
    Nvcc(&'a Nvcc),
    CudaClang(&'a CudaClang),
    /// For AMD.
    Clang(&'a Clang),
}

impl Compiler<'_> {
    /// Vendor of the code.
    pub(super) fn vendor(self) -> Vendor {
        match self {
            Self::Nvcc(_) | Self::CudaClang(_) => Vendor::Nvidia,
            Self::Clang(_) => Vendor::Amd,
        }
    }

    /// Text that fingerprints store of a command.
    pub(super) fn key(self, command: &Command) -> String {
        match self {
            Self::Nvcc(nvcc) => nvcc.key(command),
            Self::CudaClang(clang) => clang.key(command),
            Self::Clang(clang) => clang.key(command),
        }
    }

    /// Error for a command that did not start.
    pub(super) fn cannot_run(self, error: &io::Error) -> Error {
        match self {
            Self::Nvcc(nvcc) => nvcc.cannot_run(&nvcc.compile(), error),
            Self::CudaClang(clang) => clang.cannot_run(error),
            Self::Clang(clang) => clang.cannot_run(error),
        }
    }
}
