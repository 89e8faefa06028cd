//! Queries of the CUDA driver and NVML.

mod ffi {
    unsafe extern "C" {
        pub fn cuDriverGetVersion(version: *mut i32) -> i32;
        pub fn cuInit(flags: u32) -> i32;
        pub fn nvmlInit_v2() -> i32;
    }
}

/// CUDA version that the driver supports, as `1000 * major + 10 * minor`.
///
/// # Errors
///
/// The driver's status: `CUDA_ERROR_NO_DEVICE` (100) without a driver.
pub fn driver_version() -> Result<i32, i32> {
    let mut version = 0;
    // SAFETY: cuInit takes no pointer, and cuDriverGetVersion writes one int.
    let status = unsafe {
        match ffi::cuInit(0) {
            0 => ffi::cuDriverGetVersion(&raw mut version),
            status => status,
        }
    };
    if status == 0 { Ok(version) } else { Err(status) }
}

/// Initializes NVML.
///
/// # Errors
///
/// NVML's status: `NVML_ERROR_LIBRARY_NOT_FOUND` (12) without a driver.
pub fn init_nvml() -> Result<(), i32> {
    // SAFETY: nvmlInit_v2 has no arguments.
    match unsafe { ffi::nvmlInit_v2() } {
        0 => Ok(()),
        status => Err(status),
    }
}
