//! OpenCL: adds vectors on every device of every platform.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use crate::{Work, inputs, verify};

/// Opaque platform, device, context, queue, program, kernel or buffer.
type Object = *mut c_void;
/// Function that releases an object.
type Release = unsafe extern "C" fn(Object) -> c_int;

const DEVICE_NOT_FOUND: c_int = -1;
/// Status of the ICD loader without platforms.
const PLATFORM_NOT_FOUND: c_int = -1001;
const DEVICE_TYPE_ALL: u64 = 0xffff_ffff;
const DEVICE_NAME: c_uint = 0x102b;
const PROGRAM_BUILD_LOG: c_uint = 0x1183;
const MEM_WRITE_ONLY: u64 = 1 << 1;
const MEM_READ_ONLY_COPIED: u64 = 1 << 2 | 1 << 5;

const SOURCE: &CStr =
    c"kernel void add(global const float *a, global const float *b, global float *sum)
{
    size_t i = get_global_id(0);
    sum[i] = a[i] + b[i];
}
";

// SAFETY: the declarations are those of CL/cl.h; absent callbacks are NULL pointers.
unsafe extern "C" {
    fn clGetPlatformIDs(room: c_uint, platforms: *mut Object, count: *mut c_uint) -> c_int;
    fn clGetDeviceIDs(
        platform: Object,
        kind: u64,
        room: c_uint,
        devices: *mut Object,
        count: *mut c_uint,
    ) -> c_int;
    fn clGetDeviceInfo(
        device: Object,
        what: c_uint,
        room: usize,
        value: *mut c_void,
        size: *mut usize,
    ) -> c_int;
    fn clCreateContext(
        properties: *const isize,
        device_count: c_uint,
        devices: *const Object,
        notify: *const c_void,
        user_data: *mut c_void,
        status: *mut c_int,
    ) -> Object;
    fn clCreateCommandQueue(
        context: Object,
        device: Object,
        properties: u64,
        status: *mut c_int,
    ) -> Object;
    fn clCreateProgramWithSource(
        context: Object,
        count: c_uint,
        sources: *const *const c_char,
        lengths: *const usize,
        status: *mut c_int,
    ) -> Object;
    fn clBuildProgram(
        program: Object,
        device_count: c_uint,
        devices: *const Object,
        options: *const c_char,
        notify: *const c_void,
        user_data: *mut c_void,
    ) -> c_int;
    fn clGetProgramBuildInfo(
        program: Object,
        device: Object,
        what: c_uint,
        room: usize,
        value: *mut c_void,
        size: *mut usize,
    ) -> c_int;
    fn clCreateKernel(program: Object, name: *const c_char, status: *mut c_int) -> Object;
    fn clCreateBuffer(
        context: Object,
        flags: u64,
        bytes: usize,
        host: *mut c_void,
        status: *mut c_int,
    ) -> Object;
    fn clSetKernelArg(kernel: Object, index: c_uint, size: usize, value: *const c_void) -> c_int;
    fn clEnqueueNDRangeKernel(
        queue: Object,
        kernel: Object,
        dimensions: c_uint,
        offset: *const usize,
        global: *const usize,
        local: *const usize,
        wait_count: c_uint,
        wait: *const Object,
        event: *mut Object,
    ) -> c_int;
    fn clEnqueueReadBuffer(
        queue: Object,
        buffer: Object,
        blocking: c_uint,
        offset: usize,
        bytes: usize,
        to: *mut c_void,
        wait_count: c_uint,
        wait: *const Object,
        event: *mut Object,
    ) -> c_int;
    fn clReleaseContext(object: Object) -> c_int;
    fn clReleaseCommandQueue(object: Object) -> c_int;
    fn clReleaseProgram(object: Object) -> c_int;
    fn clReleaseKernel(object: Object) -> c_int;
    fn clReleaseMemObject(object: Object) -> c_int;
}

/// Adds the vectors on every device.
pub fn run() -> Work {
    let mut lines = Vec::new();
    // SAFETY: writes up to `room` objects and one count.
    let platforms = list(
        "clGetPlatformIDs",
        PLATFORM_NOT_FOUND,
        |room, to, count| unsafe { clGetPlatformIDs(room, to, count) },
    )?;
    for platform in platforms {
        // SAFETY: as above, for a listed platform.
        let devices = list(
            "clGetDeviceIDs",
            DEVICE_NOT_FOUND,
            |room, to, count| unsafe { clGetDeviceIDs(platform, DEVICE_TYPE_ALL, room, to, count) },
        )?;
        for device in devices {
            // SAFETY: a listed device; writes at most `room` bytes and one size.
            let name = text("clGetDeviceInfo", |room, to, size| unsafe {
                clGetDeviceInfo(device, DEVICE_NAME, room, to, size)
            })?;
            let sums = add(device).map_err(|error| format!("{name}: {error}"))?;
            let sum = verify(&sums).map_err(|error| format!("{name}: {error}"))?;
            lines.push(format!(
                "{name}: added {} numbers, all right, sum {sum}",
                sums.len()
            ));
        }
    }
    if lines.is_empty() {
        lines.push("no device".to_owned());
    }
    Ok(lines)
}

/// Adds the vectors on a device.
fn add(device: Object) -> Result<Vec<f32>, String> {
    let (a, b) = inputs();
    let mut sums = vec![0f32; a.len()];
    let bytes = size_of_val(sums.as_slice());

    // SAFETY: one listed device, no properties, no callback.
    let context = Owned::new("clCreateContext", clReleaseContext, |status| unsafe {
        clCreateContext(null(), 1, &device, null(), null_mut(), status)
    })?;
    // SAFETY: the context is alive and is the device's.
    let queue = Owned::new(
        "clCreateCommandQueue",
        clReleaseCommandQueue,
        |status| unsafe { clCreateCommandQueue(context.0, device, 0, status) },
    )?;
    // SAFETY: one C string.
    let program = Owned::new(
        "clCreateProgramWithSource",
        clReleaseProgram,
        |status| unsafe {
            clCreateProgramWithSource(context.0, 1, &SOURCE.as_ptr(), null(), status)
        },
    )?;
    // SAFETY: the program is alive, no callback.
    let built = unsafe { clBuildProgram(program.0, 1, &device, null(), null(), null_mut()) };
    if let Err(error) = check("clBuildProgram", built) {
        // SAFETY: writes at most `room` bytes and one size.
        let log = text("clGetProgramBuildInfo", |room, to, size| unsafe {
            clGetProgramBuildInfo(program.0, device, PROGRAM_BUILD_LOG, room, to, size)
        });
        return Err(log.map_or(error.clone(), |log| format!("{error}: {log}")));
    }
    // SAFETY: the program was built; the name is a C string.
    let kernel = Owned::new("clCreateKernel", clReleaseKernel, |status| unsafe {
        clCreateKernel(program.0, c"add".as_ptr(), status)
    })?;
    let input = |numbers: &[f32]| {
        let host = numbers.as_ptr().cast_mut().cast();
        // SAFETY: the numbers are copied immediately.
        Owned::new("clCreateBuffer", clReleaseMemObject, |status| unsafe {
            clCreateBuffer(context.0, MEM_READ_ONLY_COPIED, bytes, host, status)
        })
    };
    let (on_a, on_b) = (input(&a)?, input(&b)?);
    // SAFETY: copies no data.
    let on_sums = Owned::new("clCreateBuffer", clReleaseMemObject, |status| unsafe {
        clCreateBuffer(context.0, MEM_WRITE_ONLY, bytes, null_mut(), status)
    })?;
    for (index, buffer) in (0..).zip([&on_a, &on_b, &on_sums]) {
        let value = (&raw const buffer.0).cast();
        // SAFETY: the kernel has three arguments, all buffers.
        let status = unsafe { clSetKernelArg(kernel.0, index, size_of::<Object>(), value) };
        check("clSetKernelArg", status)?;
    }
    // SAFETY: one dimension, as many work items as numbers; no events to wait for.
    check("clEnqueueNDRangeKernel", unsafe {
        let (global, local, no_event) = (sums.len(), null(), null_mut());
        clEnqueueNDRangeKernel(
            queue.0,
            kernel.0,
            1,
            null(),
            &global,
            local,
            0,
            null(),
            no_event,
        )
    })?;
    // SAFETY: both sides hold that many bytes; the call blocks until they are copied.
    check("clEnqueueReadBuffer", unsafe {
        let to = sums.as_mut_ptr().cast();
        clEnqueueReadBuffer(queue.0, on_sums.0, 1, 0, bytes, to, 0, null(), null_mut())
    })?;
    Ok(sums)
}

/// Object that is released when dropped.
struct Owned(Object, Release);

impl Owned {
    fn new(
        call: &str,
        release: Release,
        create: impl FnOnce(&mut c_int) -> Object,
    ) -> Result<Self, String> {
        let mut status = 0;
        let object = create(&mut status);
        check(call, status)?;
        Ok(Self(object, release))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the object's own release function, called once.
        unsafe { (self.1)(self.0) };
    }
}

/// List of objects, in OpenCL's two steps. `none` is the status for an empty list.
fn list(
    call: &str,
    none: c_int,
    get: impl Fn(c_uint, *mut Object, *mut c_uint) -> c_int,
) -> Result<Vec<Object>, String> {
    let mut count = 0;
    let status = get(0, null_mut(), &mut count);
    if status == none || (status == 0 && count == 0) {
        return Ok(Vec::new());
    }
    check(call, status)?;
    let mut objects = vec![null_mut(); count as usize];
    check(call, get(count, objects.as_mut_ptr(), null_mut()))?;
    Ok(objects)
}

/// Text, in OpenCL's two steps.
fn text(
    call: &str,
    get: impl Fn(usize, *mut c_void, *mut usize) -> c_int,
) -> Result<String, String> {
    let mut size = 0;
    check(call, get(0, null_mut(), &mut size))?;
    let mut bytes = vec![0u8; size];
    check(call, get(size, bytes.as_mut_ptr().cast(), null_mut()))?;
    Ok(String::from_utf8_lossy(&bytes)
        .trim_end_matches('\0')
        .trim()
        .to_owned())
}

fn check(call: &str, status: c_int) -> Result<(), String> {
    if status == 0 {
        Ok(())
    } else {
        Err(format!("{call}: error {status}"))
    }
}
