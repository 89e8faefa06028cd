//! Device link of the CUDA code of each program that uses this crate.

#![no_std]

/// Functions that shared libraries with CUDA code call when they are loaded.
mod exports {
    include!(concat!(env!("OUT_DIR"), "/gpustub/exports.rs"));
}

#[doc(hidden)]
pub use geometry as _geometry;
#[doc(hidden)]
pub use physics as _physics;
