//! Device link of the CUDA code of each program that uses this crate.

#![no_std]

#[cfg(feature = "gpustub-link")]
#[doc(hidden)]
pub use gpustub_rdc_geometry as _geometry;
