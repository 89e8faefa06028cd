//! Decoded `GpuStub.toml`: the declarations of a package.

#[cfg(feature = "archive")]
pub(crate) mod archive;
#[cfg(feature = "device-link")]
mod device_link;
#[cfg(feature = "device-link")]
pub(crate) mod device_module;
mod dlopen_note;
mod features;
mod library_type;
mod parse;
#[cfg(feature = "tools")]
mod policy;
mod targets;
#[cfg(feature = "tools")]
mod toolkit;

#[cfg(feature = "device-link")]
use std::path::Path;

use crate::by_name::ByName;
#[cfg(feature = "device-link")]
use crate::gpu_arch::Arch;
use crate::library::{LoadName, Out, Returns, Status};
use crate::version::{HeaderChoice, HeaderVersion, Version};

pub use crate::spanned::Spanned;
#[cfg(feature = "archive")]
pub use archive::{Archive, ArchiveLayer, ArchiveView, LayerId, ViewId, is_part_name};
#[cfg(feature = "device-link")]
pub use device_link::{CudaCompiler, Cudart, DeviceCode, DeviceLink, SharedFiles};
#[cfg(feature = "device-link")]
pub use device_module::{DeviceModule, ModuleFormat};
pub use dlopen_note::DlopenNote;
pub use features::{RequiredFeatures, is_same_feature};
pub use library_type::LibraryType;
#[cfg(feature = "tools")]
pub use policy::{Allow, Policy, RuleLevel};
pub use targets::Targets;
#[cfg(feature = "tools")]
pub use toolkit::Toolkit;

/// Rest of a path after `$OUT_DIR/`, for files that the build script itself makes in the directory
/// that cargo assigns to the script. Empty: that directory.
#[cfg(any(feature = "archive", feature = "device-link"))]
pub fn in_out_dir(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("$OUT_DIR")?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/'))
}

/// Whether a source, or a pattern of sources, can be compiled as CUDA or HIP: projects have device code in
/// `.cu` and `.hip` files, and in C++ files that their build system gives to the compiler with `-x cu` or `-x hip`.
#[cfg(feature = "device-link")]
pub fn is_device_source(path: &Path) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| ["cu", "hip", "cpp", "cc", "cxx"].contains(&extension))
}

/// One `[stub.<id>]` table.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq)]
pub struct Stub {
    /// The library's id.
    pub id: Spanned<String>,
    /// Accepted majors, in order of preference; empty: all that the library manifest knows.
    pub majors: Vec<Spanned<String>>,
    /// The version of the headers that the program was compiled against, or the choice to declare none.
    pub header_version: Option<Spanned<HeaderChoice>>,
    /// Functions without which the library counts as unavailable.
    pub required_functions: Vec<Spanned<String>>,
    /// The lowest version that counts as available.
    pub min_version: Option<Spanned<Version>>,
    /// Directories to search first: absolute, or starting with `$ORIGIN`.
    pub search_dirs: Vec<Spanned<String>>,
    /// Archive or shared library.
    pub library_type: LibraryType,
    /// Priority in the note of images that use the stubs.
    pub dlopen_note: DlopenNote,
    /// `false`: another package provides the stubs.
    pub provide: bool,
    /// Cargo features that enable it.
    pub required_features: RequiredFeatures,
    /// Targets for which it exists.
    pub targets: Targets,
    /// Description of a user-defined library, or changes to the shipped manifest.
    pub custom: Custom,
}

impl Stub {
    /// Declared version of the headers.
    pub fn header_version(&self) -> Option<HeaderVersion> {
        self.header_version.as_ref()?.value.version()
    }
}

/// Keys of a stub table that describe a library.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Custom {
    /// Load names by OS.
    pub load_names: ByName<Vec<Spanned<LoadName>>>,
    /// Path of a symbol list, relative to `GpuStub.toml`.
    pub symbols: Option<Spanned<String>>,
    /// `fallback.status` (all reasons).
    pub status: Option<Status>,
    /// `fallback.string`.
    pub status_string: Option<String>,
    /// `fallback.returns`: result of the functions without `returns=` in the list.
    pub returns: Option<Spanned<Returns>>,
    /// `zero-out`, by function; the spans are those of the names.
    pub zero_out: ByName<Spanned<Vec<Out>>>,
    /// Names after `-l`; default: the id.
    pub link_names: Vec<Spanned<String>>,
    /// Names of the C and C++ run time that get a stub all the same.
    pub allowed_symbols: Vec<Spanned<String>>,
}

impl Custom {
    /// Whether the table has none of these keys: a shipped library stays unchanged.
    pub fn is_empty(&self) -> bool {
        // Not `== Self::default()`, for which every build script would compile a comparison of all fields.
        let Self {
            load_names,
            symbols,
            status,
            status_string,
            returns,
            zero_out,
            link_names,
            allowed_symbols,
        } = self;
        load_names.is_empty()
            && zero_out.is_empty()
            && link_names.is_empty()
            && allowed_symbols.is_empty()
            && symbols.is_none()
            && status.is_none()
            && status_string.is_none()
            && returns.is_none()
    }
}

/// A decoded `GpuStub.toml`.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// The file's path as diagnostics name it.
    pub file: String,
    /// The stubs, sorted by id.
    pub stubs: Vec<Stub>,
    /// The libraries of relocatable CUDA code, sorted by name; without those that have an error.
    #[cfg(feature = "device-link")]
    pub device_links: Vec<DeviceLink>,
    /// The modules of device code, likewise.
    #[cfg(feature = "device-link")]
    pub device_modules: Vec<DeviceModule>,
    /// The names of all of both.
    pub device_link_names: Vec<String>,
    /// Architectures that the device links of the package's programs are made for. Empty, or none of a vendor: all
    /// that their libraries contain.
    #[cfg(feature = "device-link")]
    pub link_archs: Vec<Spanned<Arch>>,
    /// The super-archives, sorted by name; without those that have an error.
    #[cfg(feature = "archive")]
    pub archives: Vec<Archive>,
    /// The names of all of them.
    pub archive_names: Vec<String>,
    /// Settings of `check`; the span is that of the key.
    #[cfg(feature = "tools")]
    pub policy: Option<Spanned<Policy>>,
    /// The toolkit directory; the span is that of the key. `None` after an error in it.
    #[cfg(feature = "tools")]
    pub toolkit: Option<Spanned<Toolkit>>,
}

#[cfg(all(test, any(feature = "archive", feature = "device-link")))]
mod tests {
    use super::in_out_dir;

    #[test]
    fn paths_in_out_dir_are_recognised() {
        for (path, rest) in [
            ("$OUT_DIR", Some("")),
            ("$OUT_DIR/", Some("")),
            ("$OUT_DIR/cuda/*.cu", Some("cuda/*.cu")),
            // Never absolute.
            ("$OUT_DIR//etc", Some("etc")),
            ("$OUT_DIRS/a.o", None),
            ("a/$OUT_DIR/b.o", None),
        ] {
            assert_eq!(in_out_dir(path), rest, "{path}");
        }
    }
}
