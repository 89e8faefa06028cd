//! Queries of NVRTC, for the devices of this machine.

mod ffi {
    unsafe extern "C" {
        pub fn cuDeviceGetCount(count: *mut i32) -> i32;
        pub fn cuInit(flags: u32) -> i32;
        pub fn nvrtcVersion(major: *mut i32, minor: *mut i32) -> i32;
    }
}

/// Number of devices to compile for.
///
/// # Errors
///
/// The driver's status: `CUDA_ERROR_NO_DEVICE` (100) without a driver.
pub fn device_count() -> Result<i32, i32> {
    let mut count = 0;
    // SAFETY: cuInit takes no pointer, and cuDeviceGetCount writes one int.
    let status = unsafe {
        match ffi::cuInit(0) {
            0 => ffi::cuDeviceGetCount(&raw mut count),
            status => status,
        }
    };
    if status == 0 { Ok(count) } else { Err(status) }
}

/// Version of NVRTC, as major and minor.
///
/// # Errors
///
/// NVRTC's status: `NVRTC_ERROR_INTERNAL_ERROR` (11) without the library.
pub fn nvrtc_version() -> Result<(i32, i32), i32> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: nvrtcVersion writes two ints.
    match unsafe { ffi::nvrtcVersion(&raw mut major, &raw mut minor) } {
        0 => Ok((major, minor)),
        status => Err(status),
    }
}
