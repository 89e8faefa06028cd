//! Memory that client and server share.

mod access;
mod pages;
#[cfg(all(test, feature = "std"))]
pub(crate) mod racing;
mod region;
mod shared;
mod vectors;

pub use access::{Memory, PortMemory, Side};
#[cfg(feature = "std")]
pub(crate) use pages::PrivatePages;
pub(crate) use pages::{LARGE, Pages};
pub use region::Region;
pub use shared::{SharedMemory, SharedPort};
