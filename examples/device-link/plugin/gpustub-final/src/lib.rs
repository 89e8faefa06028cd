//! Whatever program uses this crate has the device link of its CUDA code.

#![no_std]

#[doc(hidden)]
pub use geometry as _geometry;
#[doc(hidden)]
pub use physics as _physics;
