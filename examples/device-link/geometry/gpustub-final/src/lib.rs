//! Device link of the CUDA code of each program that uses this crate.

#![no_std]

/// Functions that shared libraries with CUDA code call when they are loaded.
#[cfg(feature = "gpustub-link")]
mod exports {
    include!(concat!(env!("OUT_DIR"), "/gpustub/exports.rs"));
}

#[cfg(feature = "gpustub-link")]
#[doc(hidden)]
pub use gpustub_rdc_geometry as _geometry;
