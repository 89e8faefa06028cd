//! Super-archives: static libraries for many GPU families in one file.

mod device_code;
mod inputs;
mod replace;
mod split;
mod super_archive;
mod tables;
mod unpacked_code;

pub use inputs::{LayerPaths, MappedLayers};
pub use replace::replace;
pub use split::{SplitBitcode, UnsplitModule};
pub use super_archive::{
    ArchivePaths, find, may_be_inlined, not_canonical, refused, request, unknown_symbols, unsplit,
};
pub(crate) use tables::{build_declared, build_empty_declared};
pub use unpacked_code::{Decompress, HOST_VIEW, UnpackedCode, UnpackedViews};
