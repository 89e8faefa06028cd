//! HIP: counts the devices.

use std::ffi::{CStr, c_char, c_int};

use crate::Work;

/// `hipErrorNoDevice`.
const NO_DEVICE: c_int = 100;
/// `hipErrorInsufficientDriver`.
const NO_DRIVER: c_int = 35;

// SAFETY: the declarations are those of hip_runtime_api.h.
unsafe extern "C" {
    fn hipRuntimeGetVersion(version: *mut c_int) -> c_int;
    fn hipGetDeviceCount(count: *mut c_int) -> c_int;
    safe fn hipGetErrorString(error: c_int) -> *const c_char;
}

/// Reads the runtime's version and its number of devices.
pub fn run() -> Work {
    let (mut version, mut count) = (0, 0);
    // SAFETY: each writes one integer.
    let (status, devices) = unsafe {
        (
            hipRuntimeGetVersion(&mut version),
            hipGetDeviceCount(&mut count),
        )
    };
    // SAFETY: the runtime's error strings are constants.
    let text = |error| unsafe { CStr::from_ptr(hipGetErrorString(error)) }.to_string_lossy();
    let version = match status {
        // 10'000'000 * major + 100'000 * minor + patch
        0 => format!(
            "runtime {}.{}",
            version / 10_000_000,
            version / 100_000 % 100
        ),
        NO_DEVICE | NO_DRIVER => "runtime of unknown version".to_owned(),
        _ => {
            return Err(format!(
                "hipRuntimeGetVersion: error {status} ({})",
                text(status)
            ));
        }
    };
    let devices = match devices {
        0 => format!("{count} devices"),
        NO_DEVICE | NO_DRIVER => format!("no device (hipGetDeviceCount: {})", text(devices)),
        _ => {
            return Err(format!(
                "hipGetDeviceCount: error {devices} ({})",
                text(devices)
            ));
        }
    };
    Ok(vec![format!("{version}, {devices}")])
}
