//! Memory that client and server share.

mod access;
mod pages;
#[cfg(all(test, feature = "std"))]
pub(crate) mod racing;
mod region;
mod shared;
mod simd_scan;

pub use access::{Memory, Side};
pub use region::Region;
pub use shared::SharedMemory;
