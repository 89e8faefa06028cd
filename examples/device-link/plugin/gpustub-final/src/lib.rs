//! Device link of the CUDA code of each program that uses this crate.

#![no_std]

#[doc(hidden)]
pub use geometry as _geometry;
#[doc(hidden)]
pub use physics as _physics;
