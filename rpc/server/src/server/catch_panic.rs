//! Converts a panic of a handler to a fault of its call.

use super::fault::Fault;

/// Runs a function and returns its value, or a fault if it panics.
#[cfg(feature = "std")]
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    // State that the function was changing is dropped with its port.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|_| Fault::HandlerFailed)
}

/// Runs a function and returns its value. Without `std`, panics cannot be caught.
#[cfg(not(feature = "std"))]
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    Ok(work())
}
