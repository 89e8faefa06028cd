//! Memory that client and server share.

mod access;
mod bulk;
mod mailboxes;
#[cfg(all(test, feature = "std"))]
pub(crate) mod racing;
mod region;
mod shared;

pub use access::{Memory, Side};
pub use region::Region;
pub use shared::SharedMemory;
