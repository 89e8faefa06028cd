//! A container, its form and its entries.

use std::fmt;

use super::code::CodeKind;

/// Form of a container.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(any(test, feature = "tools"), derive(Debug))]
pub enum ContainerFormat {
    /// Container of CUDA.
    Fatbin,
    /// Offload binary of clang's newer offload driver.
    Binary,
    /// Bundle of `clang-offload-bundler`.
    Bundle,
    /// Bundle whose table is compressed as well.
    CompressedBundle,
    /// Archive of code objects beside the images that use them.
    Kpack,
    /// Names of the kpack archives of an image.
    KpackReference,
}

/// Compression of code or of a whole container.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "tools"), derive(Debug))]
pub enum Compression {
    /// zlib.
    Zlib,
    /// Zstandard.
    Zstd,
    /// Blocks of LZ4.
    Lz4,
    /// Another one, by its number.
    Unknown(u16),
}

/// Programming model of an entry's host code.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "tools"), derive(Debug))]
pub enum Model {
    /// Code for the host.
    Host,
    /// CUDA.
    Cuda,
    /// HIP.
    Hip,
    /// OpenMP.
    OpenMp,
    /// SYCL.
    Sycl,
    /// Another one.
    Unknown,
}

/// Code for one target.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "tools"), derive(Debug))]
pub struct Entry {
    /// Programming model.
    pub model: Model,
    /// Target triple of LLVM.
    pub triple: String,
    /// Architecture, `gfx90a:xnack-` or `sm_90a`; empty if unknown.
    pub arch: String,
    /// Form of the code; unknown if it is compressed, except in a fatbin.
    pub code: CodeKind,
    /// Position of the code in the container. It may be beyond the end of a damaged one.
    pub offset: usize,
    /// Size of the code in the container.
    pub size: usize,
    /// Compression of this entry alone.
    pub compression: Option<Compression>,
    /// Size of the code once unpacked; 0 if unknown.
    pub unpacked_size: usize,
}

/// A container of device code.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "tools"), derive(Debug))]
pub struct Container<'d> {
    /// Form.
    pub format: ContainerFormat,
    /// Version of the form; 0 if it has none.
    pub version: u32,
    /// Section that it is in; empty for a file that is a container.
    pub section: &'d [u8],
    /// Position in the section or file.
    pub offset: usize,
    /// Its bytes.
    pub data: &'d [u8],
    /// Its code by targets; empty if the table is compressed or of an unknown version.
    pub entries: Vec<Entry>,
    /// Compression of the whole container with its table.
    pub compression: Option<Compression>,
    /// Size of its compressed part once unpacked; 0 if unknown.
    pub unpacked_size: usize,
    /// Whether table and code are within its bytes.
    pub is_complete: bool,
}

pub(super) const BUNDLE_MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
pub(super) const KPACK_REFERENCE: &[u8] = b".rocm_kpack_ref";

const MAGICS: [(&[u8], ContainerFormat); 5] = [
    (&[0x50, 0xED, 0x55, 0xBA], ContainerFormat::Fatbin),
    (&[0x10, 0xFF, 0x10, 0xAD], ContainerFormat::Binary),
    (BUNDLE_MAGIC, ContainerFormat::Bundle),
    (b"CCOB", ContainerFormat::CompressedBundle),
    (b"KPAK", ContainerFormat::Kpack),
];

/// Limit above the entries of any real container: LLVM has about 200 architectures.
pub(super) const MAX_ENTRIES: usize = 1024;

impl ContainerFormat {
    /// Form of a file that is a container itself, by its first bytes.
    pub fn of_file(head: &[u8]) -> Option<Self> {
        MAGICS
            .into_iter()
            .find(|(magic, _)| head.starts_with(magic))
            .map(|(_, format)| format)
    }

    /// Newest version that is read.
    pub fn newest_version(self) -> u32 {
        match self {
            Self::Binary | Self::CompressedBundle => 3,
            Self::Fatbin | Self::Kpack => 1,
            Self::Bundle | Self::KpackReference => 0,
        }
    }

    /// Command that extracts the code of one architecture.
    pub fn extractor(self) -> &'static str {
        match self {
            Self::Fatbin => "`cuobjdump -xelf all -xptx all`",
            Self::Binary => "`llvm-offload-binary` (before LLVM 22: `clang-offload-packager`)",
            Self::Bundle | Self::CompressedBundle => "`clang-offload-bundler -unbundle`",
            Self::Kpack | Self::KpackReference => "ROCm's `rocm-kpack`",
        }
    }
}

impl fmt::Display for ContainerFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fatbin => "a fatbin of CUDA",
            Self::Binary => "an offload binary of clang",
            Self::Bundle => "an offload bundle of clang",
            Self::CompressedBundle => "a compressed offload bundle of clang",
            Self::Kpack => "a kpack archive of ROCm",
            Self::KpackReference => "a reference to kpack archives of ROCm",
        })
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zlib => f.write_str("zlib"),
            Self::Zstd => f.write_str("zstd"),
            Self::Lz4 => f.write_str("LZ4"),
            Self::Unknown(method) => write!(f, "method {method}"),
        }
    }
}

impl<'d> Container<'d> {
    pub(super) fn new(format: ContainerFormat, data: &'d [u8]) -> Self {
        Self {
            format,
            version: 0,
            section: &[],
            offset: 0,
            data,
            entries: Vec::new(),
            compression: None,
            unpacked_size: 0,
            is_complete: true,
        }
    }

    /// Whether a linker has yet to finish the code: no runtime loads it from its place.
    pub fn is_relocatable(&self) -> bool {
        match self.section {
            b".hip_fatbin" | b".nv_fatbin" | KPACK_REFERENCE => false,
            [] => !matches!(
                self.format,
                ContainerFormat::Fatbin | ContainerFormat::Kpack
            ),
            _ => true,
        }
    }

    /// Whether the version is newer than those that are read.
    pub fn is_newer(&self) -> bool {
        self.version > self.format.newest_version()
    }

    /// Code of an entry; `None` beyond the end of a damaged container.
    pub fn code(&self, entry: &Entry) -> Option<&'d [u8]> {
        self.data.get(entry.offset..)?.get(..entry.size)
    }
}
