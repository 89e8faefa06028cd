//! GPU drivers. One implementation calls either of them through a table of its functions.

mod cuda;
mod driver_api;
mod gpu;
mod hip;
mod host_memory;

pub use gpu::{Global, Gpu, Handle, Shape};
pub use host_memory::HostMemory;
