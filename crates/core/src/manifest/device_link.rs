//! `[device-link.<name>]`: a library of relocatable CUDA code.

use super::features::RequiredFeatures;
use super::library_type::LibraryType;
use crate::by_name::ByName;
use crate::gpu_arch::{Arch, ArchKind};
use crate::spanned::Spanned;

/// One `[device-link.<name>]` table. `include-dirs`, `defines` and `compile-options` apply to its
/// own sources and to those of every library that requires it.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct DeviceLink {
    /// Name.
    pub name: Spanned<String>,
    /// Origin of its code.
    pub code: DeviceCode,
    /// Directories with its headers, relative to `GpuStub.toml`; those of an archive may be
    /// absolute.
    pub include_dirs: Vec<Spanned<String>>,
    /// Macros and their values, as after `-D`; the spans are those of the names.
    pub defines: ByName<Spanned<String>>,
    /// Arguments for nvcc's compile steps, in this order.
    pub compile_options: Vec<Spanned<String>>,
    /// Other such libraries whose code it calls, in this package or another one.
    pub requires: Vec<Spanned<String>>,
    /// Compiler of its code for NVIDIA.
    pub compiler: CudaCompiler,
    /// Architectures that its code is compiled for. Empty for headers alone.
    pub archs: Vec<Spanned<Arch>>,
    /// Archive or shared library.
    pub library_type: LibraryType,
    /// The runtime that its host code is linked with.
    pub cudart: Cudart,
    /// Whether its kernels launch kernels.
    pub cudadevrt: bool,
    /// Cargo features that enable it.
    pub required_features: RequiredFeatures,
    /// `optional = true`: without nvcc the library is left out, with a warning.
    pub optional: bool,
}

/// Origin of a library's code.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub enum DeviceCode {
    /// Compiled from the `.cu` files that these globs match, relative to `GpuStub.toml`.
    Sources(Vec<Spanned<String>>),
    /// Built elsewhere.
    External {
        /// The archive of relocatable objects, relative to `GpuStub.toml` or absolute.
        prebuilt: Spanned<String>,
        /// Files that contain it at run time, with `type = "shared"`.
        prebuilt_shared: Option<SharedFiles>,
    },
    /// None: headers, which become part of the libraries that require it.
    Headers,
}

/// The two shared libraries of an external library, relative to `GpuStub.toml` or absolute.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct SharedFiles {
    /// The objects, not device-linked.
    pub middle: Spanned<String>,
    /// The device link over the library and its requirements.
    pub r#final: Spanned<String>,
}

/// Compiler of CUDA code. Device links are nvcc's in both cases.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum CudaCompiler {
    /// The toolkit's; the default.
    #[default]
    Nvcc,
    /// clang with the toolkit's headers and assembler.
    Clang,
}

/// The CUDA runtime that host code is linked with. A process must have one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Cudart {
    /// The shared library, or gpustub's stub of it; the default.
    #[default]
    Shared,
    /// `libcudart_static.a`.
    Static,
    /// No runtime: the driver API only.
    None,
}

impl Cudart {
    /// Value of `cudart`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Static => "static",
            Self::None => "none",
        }
    }
}

impl DeviceLink {
    /// Architectures that the compiler of the table does not compile for, each with the next step.
    pub fn uncompilable(&self) -> Vec<(&Spanned<Arch>, String)> {
        let mut uncompilable = Vec::new();
        if self.compiler == CudaCompiler::Nvcc {
            return uncompilable;
        }
        for arch in &self.archs {
            let real = arch.value.as_kind(ArchKind::Real);
            let has_real = self.archs.iter().any(|code| code.value == real);
            let help = match arch.value.kind() {
                ArchKind::Lto => {
                    format!(
                        "clang makes no code for -dlto: write \"{real}\", or compiler = \"nvcc\""
                    )
                }
                ArchKind::Virtual if !has_real => {
                    format!(
                        "clang adds PTX to machine code of the same GPU: write \"{real}\" as well"
                    )
                }
                _ => continue,
            };
            uncompilable.push((arch, help));
        }
        uncompilable
    }
}
