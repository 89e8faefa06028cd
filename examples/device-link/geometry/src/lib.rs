//! Device functions for other crates' kernels, and a counter for the host.

#[cfg(test)]
use gpustub_final_geometry as _; // the device link of its CUDA code

#[cfg(gpustub_device_link = "geometry")]
unsafe extern "C" {
    fn geometry_calls(count: *mut u64) -> i32;
}

/// Number of calls of `geometry::triangle` by device code, or the CUDA runtime's status.
#[cfg(gpustub_device_link = "geometry")]
pub fn calls() -> Result<u64, i32> {
    let mut count = 0;
    // SAFETY: writes one number.
    match unsafe { geometry_calls(&mut count) } {
        0 => Ok(count),
        status => Err(status),
    }
}
