//! Super-archives: static libraries for many GPU families in one file.

mod device_code;
mod inputs;
mod replace;
#[cfg(feature = "split")]
mod split;
mod super_archive;
mod tables;
mod unpacked_code;

pub use inputs::{LayerPaths, MappedLayers};
pub use replace::replace;
#[cfg(feature = "split")]
pub use split::{SplitBitcode, UnsplitModule};
#[cfg(feature = "split")]
pub use super_archive::unsplit;
pub use super_archive::{
    ArchivePaths, find, may_be_inlined, not_canonical, refused, request, unknown_symbols,
};
pub(crate) use tables::{build_declared, build_empty_declared};
pub use unpacked_code::{Decompress, HOST_VIEW, UnpackedCode, UnpackedViews};
