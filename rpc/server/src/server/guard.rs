//! Keeps a handler that panics from ending the server.

use super::Fault;

/// What a function gives, or that it panicked. Without `std`, a panic is none of ours to catch.
#[cfg(feature = "std")]
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    // What the function had in its hands is dropped with its port.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|_| Fault::Handler)
}

/// What a function gives. Without `std`, a panic is none of ours to catch.
#[cfg(not(feature = "std"))]
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    Ok(work())
}
