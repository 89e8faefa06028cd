//! CUDA: lists the devices through the driver and through the runtime, and launches the kernel
//! that NVRTC compiled.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use crate::{Work, inputs, verify};

/// Number of a device in the driver API.
type Device = c_int;
/// Address on the device.
type Address = u64;
/// A context, module, function or stream: opaque.
type Handle = *mut c_void;

/// `CUDA_ERROR_NO_DEVICE` and `cudaErrorNoDevice`.
const NO_DEVICE: c_int = 100;
/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`: NVRTC is newer than the driver.
const PTX_TOO_NEW: c_int = 222;
/// `cudaErrorInsufficientDriver`: the driver is missing or older than the runtime.
const NO_DRIVER: c_int = 35;

// SAFETY: the declarations are those of cuda.h. It maps some names to newer ones with macros
// (cuMemAlloc is cuMemAlloc_v2); these are the names that the library exports.
unsafe extern "C" {
    safe fn cuInit(flags: c_uint) -> c_int;
    fn cuDriverGetVersion(version: *mut c_int) -> c_int;
    fn cuDeviceGetCount(count: *mut c_int) -> c_int;
    fn cuDeviceGet(device: *mut Device, ordinal: c_int) -> c_int;
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: Device) -> c_int;
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: Device) -> c_int;
    fn cuDevicePrimaryCtxRelease_v2(device: Device) -> c_int;
    fn cuCtxSetCurrent(context: Handle) -> c_int;
    safe fn cuCtxSynchronize() -> c_int;
    fn cuModuleLoadDataEx(
        module: *mut Handle,
        image: *const c_void,
        option_count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void,
    ) -> c_int;
    fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) -> c_int;
    fn cuModuleUnload(module: Handle) -> c_int;
    fn cuMemAlloc_v2(address: *mut Address, bytes: usize) -> c_int;
    fn cuMemFree_v2(address: Address) -> c_int;
    fn cuMemcpyHtoD_v2(to: Address, from: *const c_void, bytes: usize) -> c_int;
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: Address, bytes: usize) -> c_int;
    fn cuLaunchKernel(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: Handle,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> c_int;
    fn cuGetErrorString(error: c_int, text: *mut *const c_char) -> c_int;
}

// SAFETY: the declarations are those of cuda_runtime_api.h.
unsafe extern "C" {
    fn cudaRuntimeGetVersion(version: *mut c_int) -> c_int;
    fn cudaGetDeviceCount(count: *mut c_int) -> c_int;
    safe fn cudaGetErrorString(error: c_int) -> *const c_char;
}

/// Runs the kernel through the driver API.
pub fn driver(ptx: Option<&[u8]>) -> Work {
    let mut version = 0;
    // SAFETY: writes one integer.
    check("cuDriverGetVersion", unsafe {
        cuDriverGetVersion(&mut version)
    })?;
    let mut lines = vec![format!("the driver supports CUDA up to {}", spell(version))];

    let status = cuInit(0);
    if status == NO_DEVICE {
        lines.push(format!("no device (cuInit: {})", describe(status)));
        return Ok(lines);
    }
    check("cuInit", status)?;
    let mut count = 0;
    // SAFETY: writes one integer.
    check("cuDeviceGetCount", unsafe { cuDeviceGetCount(&mut count) })?;
    for ordinal in 0..count {
        let mut device = 0;
        // SAFETY: writes one integer.
        check("cuDeviceGet", unsafe { cuDeviceGet(&mut device, ordinal) })?;
        let name = device_name(device)?;
        let result = match ptx {
            None => "no kernel, since there is no NVRTC".to_owned(),
            Some(ptx) => add(device, ptx)?,
        };
        lines.push(format!("device {ordinal}: {name}: {result}"));
    }
    Ok(lines)
}

/// Runs through the runtime API.
pub fn runtime() -> Work {
    let (mut version, mut count) = (0, 0);
    // SAFETY: each writes one integer.
    let (status, devices) = unsafe {
        (
            cudaRuntimeGetVersion(&mut version),
            cudaGetDeviceCount(&mut count),
        )
    };
    // SAFETY: the runtime's error strings are constants.
    let text = |error| unsafe { CStr::from_ptr(cudaGetErrorString(error)) }.to_string_lossy();
    if status != 0 {
        return Err(format!(
            "cudaRuntimeGetVersion: error {status} ({})",
            text(status)
        ));
    }
    let devices = match devices {
        0 => format!("{count} devices"),
        NO_DEVICE | NO_DRIVER => format!("no device (cudaGetDeviceCount: {})", text(devices)),
        _ => {
            return Err(format!(
                "cudaGetDeviceCount: error {devices} ({})",
                text(devices)
            ));
        }
    };
    Ok(vec![format!("runtime {}, {devices}", spell(version))])
}

fn device_name(device: Device) -> Result<String, String> {
    let mut name = [0u8; 256];
    // SAFETY: writes at most the given number of bytes, with a NUL.
    let status = unsafe { cuDeviceGetName(name.as_mut_ptr().cast(), 256, device) };
    check("cuDeviceGetName", status)?;
    let name = CStr::from_bytes_until_nul(&name).map_err(|_| "a device name without an end")?;
    Ok(name.to_string_lossy().into_owned())
}

/// Adds the vectors on a device and checks every sum.
fn add(device: Device, ptx: &[u8]) -> Result<String, String> {
    let _context = Context::new(device)?;
    let module = match Module::new(ptx)? {
        Some(module) => module,
        None => return Ok("the driver is too old for the PTX of this NVRTC".to_owned()),
    };
    let mut function = null_mut();
    // SAFETY: the module is alive, the name is a C string.
    check("cuModuleGetFunction", unsafe {
        cuModuleGetFunction(&mut function, module.0, c"add".as_ptr())
    })?;

    let (a, b) = inputs();
    let (on_a, on_b) = (Buffer::new(&a)?, Buffer::new(&b)?);
    let mut sums = vec![0f32; a.len()];
    let on_sums = Buffer::new(&sums)?;

    let mut n = c_uint::try_from(a.len()).map_err(|e| e.to_string())?;
    let mut addresses = [on_a.0, on_b.0, on_sums.0];
    let [a, b, sum] = &mut addresses;
    let mut arguments: [*mut c_void; 4] = [
        (&raw mut *a).cast(),
        (&raw mut *b).cast(),
        (&raw mut *sum).cast(),
        (&raw mut n).cast(),
    ];
    // SAFETY: four arguments of the kernel's types; its buffers hold n numbers each.
    check("cuLaunchKernel", unsafe {
        let blocks = n.div_ceil(256);
        let arguments = arguments.as_mut_ptr();
        cuLaunchKernel(
            function,
            blocks,
            1,
            1,
            256,
            1,
            1,
            0,
            null_mut(),
            arguments,
            null_mut(),
        )
    })?;
    check("cuCtxSynchronize", cuCtxSynchronize())?;
    on_sums.read(&mut sums)?;
    Ok(format!(
        "added {} numbers, all right, sum {}",
        sums.len(),
        verify(&sums)?
    ))
}

/// Primary context of a device, current on this thread.
struct Context(Device);

impl Context {
    fn new(device: Device) -> Result<Self, String> {
        let mut context = null_mut();
        // SAFETY: writes one handle.
        let status = unsafe { cuDevicePrimaryCtxRetain(&mut context, device) };
        check("cuDevicePrimaryCtxRetain", status)?;
        let owned = Self(device);
        // SAFETY: the context was retained above.
        check("cuCtxSetCurrent", unsafe { cuCtxSetCurrent(context) })?;
        Ok(owned)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: releases what `new` retained.
        unsafe { cuDevicePrimaryCtxRelease_v2(self.0) };
    }
}

/// Loaded module.
struct Module(Handle);

impl Module {
    /// Makes the driver compile NUL-terminated PTX; `None` if it is too new for the driver.
    fn new(ptx: &[u8]) -> Result<Option<Self>, String> {
        if ptx.last() != Some(&0) {
            return Err("the PTX does not end with a NUL".to_owned());
        }
        let mut module = null_mut();
        // SAFETY: the image ends with a NUL, and there are no options.
        let status = unsafe {
            cuModuleLoadDataEx(&mut module, ptx.as_ptr().cast(), 0, null_mut(), null_mut())
        };
        if status == PTX_TOO_NEW {
            return Ok(None);
        }
        check("cuModuleLoadDataEx", status)?;
        Ok(Some(Self(module)))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: unloads what `new` loaded; its kernels have ended.
        unsafe { cuModuleUnload(self.0) };
    }
}

/// Numbers on the device.
struct Buffer(Address);

impl Buffer {
    fn new(numbers: &[f32]) -> Result<Self, String> {
        let mut address = 0;
        let bytes = size_of_val(numbers);
        // SAFETY: writes one address.
        check("cuMemAlloc", unsafe { cuMemAlloc_v2(&mut address, bytes) })?;
        let buffer = Self(address);
        // SAFETY: both sides hold that many bytes.
        let status = unsafe { cuMemcpyHtoD_v2(address, numbers.as_ptr().cast(), bytes) };
        check("cuMemcpyHtoD", status)?;
        Ok(buffer)
    }

    /// Copies the numbers back; `numbers` has the length of the buffer.
    fn read(&self, numbers: &mut [f32]) -> Result<(), String> {
        let bytes = size_of_val(numbers);
        // SAFETY: both sides hold that many bytes.
        let status = unsafe { cuMemcpyDtoH_v2(numbers.as_mut_ptr().cast(), self.0, bytes) };
        check("cuMemcpyDtoH", status)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: frees what `new` allocated.
        unsafe { cuMemFree_v2(self.0) };
    }
}

/// Text of a CUDA version number: 1000 * major + 10 * minor.
fn spell(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn describe(error: c_int) -> String {
    let mut text = null();
    // SAFETY: writes one pointer, to a constant or NULL.
    unsafe { cuGetErrorString(error, &mut text) };
    if text.is_null() {
        return format!("error {error}");
    }
    // SAFETY: the driver's error strings are constants.
    let text = unsafe { CStr::from_ptr(text) };
    format!("error {error}, {}", text.to_string_lossy())
}

fn check(call: &str, result: c_int) -> Result<(), String> {
    if result == 0 {
        Ok(())
    } else {
        Err(format!("{call}: {}", describe(result)))
    }
}
