//! CUDA's driver.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use super::{Driver, Global, Handle, HostMemory, OUT_OF_MEMORY, Runtime, Shape, failed, refused};
use crate::error::{Error, Result};

const DRIVER: Driver = Driver {
    library: "cuda",
    vendor: "CUDA",
    missing: "install NVIDIA's driver; a container has it if it is started with GPUs (`--gpus all`)",
    hidden: "`nvidia-smi` lists devices; CUDA_VISIBLE_DEVICES hides them, and a container has those it was started with",
    newer: "install NVIDIA's driver 460 or newer",
};

/// The first with `cuMemAllocAsync`.
const OLDEST: (c_int, c_int) = (11, 2);

// CUresult, CUdevice_attribute and so on (cuda.h).
const INVALID_VALUE: c_int = 1;
const NO_DEVICE: c_int = 100;
const NOT_FOUND: c_int = 500;
const NOT_READY: c_int = 600;
const WARP_SIZE: c_int = 10;
const MEMORY_POOLS_SUPPORTED: c_int = 115;
const NON_BLOCKING: c_uint = 1;
const HOST_PORTABLE_AND_MAPPED: c_uint = 1 | 2;
const JIT_ERROR_LOG: c_int = 5;
const JIT_ERROR_LOG_SIZE: c_int = 6;
const LIMIT_STACK_SIZE: c_int = 0;

/// Bytes of stack of each thread: functions of LLVM's libc need more than the driver's 1024 where it cannot
/// compute the depth, and LLVM's loader gives them as many (`llvm-gpu-loader/nvptx.cpp`).
const STACK: usize = 3 * 1024;

// SAFETY: the declarations are those of cuda.h. It maps some names to newer ones with macros
// (cuMemAlloc is cuMemAlloc_v2); these are the names that the library exports.
unsafe extern "C" {
    safe fn cuInit(flags: c_uint) -> c_int;
    fn cuDriverGetVersion(version: *mut c_int) -> c_int;
    fn cuDeviceGetCount(count: *mut c_int) -> c_int;
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int;
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> c_int;
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int;
    fn cuCtxSetCurrent(context: *mut c_void) -> c_int;
    fn cuCtxGetLimit(value: *mut usize, limit: c_int) -> c_int;
    safe fn cuCtxSetLimit(limit: c_int, value: usize) -> c_int;
    fn cuStreamCreate(stream: *mut *mut c_void, flags: c_uint) -> c_int;
    fn cuModuleLoadDataEx(
        module: *mut *mut c_void,
        image: *const c_void,
        option_count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void,
    ) -> c_int;
    fn cuModuleGetFunction(
        function: *mut *mut c_void,
        module: *mut c_void,
        name: *const c_char,
    ) -> c_int;
    fn cuFuncLoad(function: *mut c_void) -> c_int;
    fn cuFuncGetParamInfo(
        function: *mut c_void,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) -> c_int;
    fn cuModuleGetGlobal_v2(
        address: *mut u64,
        size: *mut usize,
        module: *mut c_void,
        name: *const c_char,
    ) -> c_int;
    fn cuMemHostAlloc(memory: *mut *mut c_void, size: usize, flags: c_uint) -> c_int;
    fn cuMemHostGetDevicePointer_v2(address: *mut u64, memory: *mut c_void, flags: c_uint)
    -> c_int;
    fn cuMemAlloc_v2(address: *mut u64, size: usize) -> c_int;
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, size: usize) -> c_int;
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, size: usize) -> c_int;
    fn cuLaunchKernel(
        function: *mut c_void,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: *mut c_void,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> c_int;
    fn cuStreamQuery(stream: *mut c_void) -> c_int;
    fn cuMemAllocAsync(address: *mut u64, size: usize, stream: *mut c_void) -> c_int;
    fn cuMemFreeAsync(address: u64, stream: *mut c_void) -> c_int;
    fn cuGetErrorName(error: c_int, name: *mut *const c_char) -> c_int;
}

fn error(call: &str, status: c_int) -> Error {
    let mut name = null();
    // SAFETY: writes one pointer, to a constant or NULL.
    unsafe { cuGetErrorName(status, &mut name) };
    failed(call, status, name)
}

fn check(call: &str, status: c_int) -> Result<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(error(call, status))
    }
}

/// A device, by its primary context.
pub struct Cuda {
    context: Handle,
    lanes: u32,
    /// Whether functions are loaded by a call of their own (12.4).
    has_func_load: bool,
    /// Whether it tells what kernels take (12.4).
    has_param_info: bool,
}

impl Cuda {
    /// Opens a device.
    pub fn open(ordinal: u32) -> Result<Self> {
        DRIVER.load()?;
        let mut version = 0;
        // SAFETY: writes one number.
        check("cuDriverGetVersion", unsafe {
            cuDriverGetVersion(&mut version)
        })?;
        // 1000 * major + 10 * minor
        DRIVER.at_least((version / 1000, version % 1000 / 10), OLDEST)?;
        match cuInit(0) {
            NO_DEVICE => return Err(DRIVER.no_device()),
            status => check("cuInit", status)?,
        }
        let (mut count, mut device) = (0, 0);
        // SAFETY: writes one number.
        check("cuDeviceGetCount", unsafe { cuDeviceGetCount(&mut count) })?;
        let ordinal = DRIVER.device(ordinal, count)?;
        // SAFETY: writes one number.
        check("cuDeviceGet", unsafe { cuDeviceGet(&mut device, ordinal) })?;
        let attribute = |which| {
            let mut value = 0;
            // SAFETY: writes one number.
            let status = unsafe { cuDeviceGetAttribute(&mut value, which, device) };
            check("cuDeviceGetAttribute", status).map(|()| value)
        };
        DRIVER.has_pools(ordinal, attribute(MEMORY_POOLS_SUPPORTED)?)?;
        let lanes = attribute(WARP_SIZE)?.unsigned_abs();
        let mut context = null_mut();
        // SAFETY: writes one handle.
        let status = unsafe { cuDevicePrimaryCtxRetain(&mut context, device) };
        check("cuDevicePrimaryCtxRetain", status)?;
        let cuda = Self {
            context: Handle(context),
            lanes,
            has_func_load: gpustub::has("cuda", "cuFuncLoad"),
            has_param_info: gpustub::has("cuda", "cuFuncGetParamInfo"),
        };
        cuda.attach()?;
        let mut stack = 0;
        // SAFETY: writes one number.
        let status = unsafe { cuCtxGetLimit(&mut stack, LIMIT_STACK_SIZE) };
        check("cuCtxGetLimit", status)?;
        if stack < STACK {
            check("cuCtxSetLimit", cuCtxSetLimit(LIMIT_STACK_SIZE, STACK))?;
        }
        Ok(cuda)
    }
}

impl Runtime for Cuda {
    fn lanes(&self) -> u32 {
        self.lanes
    }

    fn attach(&self) -> Result<()> {
        // SAFETY: the context is never released.
        check("cuCtxSetCurrent", unsafe {
            cuCtxSetCurrent(self.context.0)
        })
    }

    fn stream(&self) -> Result<Handle> {
        let mut stream = null_mut();
        // SAFETY: writes one handle.
        let status = unsafe { cuStreamCreate(&mut stream, NON_BLOCKING) };
        check("cuStreamCreate", status).map(|()| Handle(stream))
    }

    fn load(&self, image: &[u8]) -> Result<Handle> {
        // PTX ends with a NUL, and other images have their size in them.
        let mut image = image.to_vec();
        image.push(0);
        let (mut module, mut log) = (null_mut(), [0u8; 8192]);
        let mut options = [JIT_ERROR_LOG, JIT_ERROR_LOG_SIZE];
        // An option that is a number has it in place of its pointer.
        let mut values = [
            log.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(log.len()),
        ];
        // SAFETY: the image is whole, and the log has the size that the options say.
        let status = unsafe {
            let image = image.as_ptr().cast();
            cuModuleLoadDataEx(
                &mut module,
                image,
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        check("cuModuleLoadDataEx", status).map_err(|error| {
            let log = CStr::from_bytes_until_nul(&log)
                .unwrap_or_default()
                .to_string_lossy();
            let error = refused(error, status);
            match log.trim() {
                "" => error
                    .help("the image is for GPUs of another architecture, or for a newer driver"),
                log => error.help(format!("the driver says:\n{log}")),
            }
        })?;
        Ok(Handle(module))
    }

    fn function(&self, module: Handle, name: &CStr) -> Result<Option<Handle>> {
        let mut function = null_mut();
        // SAFETY: the module is never unloaded, the name is a C string.
        let status = unsafe { cuModuleGetFunction(&mut function, module.0, name.as_ptr()) };
        if status == NOT_FOUND {
            return Ok(None);
        }
        check("cuModuleGetFunction", status)?;
        if self.has_func_load {
            // SAFETY: it is a function of the module.
            check("cuFuncLoad", unsafe { cuFuncLoad(function) })?;
        }
        Ok(Some(Handle(function)))
    }

    fn takes_arguments(&self, function: Handle) -> Result<Option<bool>> {
        if !self.has_param_info {
            return Ok(None);
        }
        let (mut offset, mut size) = (0, 0);
        // SAFETY: writes two numbers; it is a function of a module that is never unloaded.
        match unsafe { cuFuncGetParamInfo(function.0, 0, &mut offset, &mut size) } {
            INVALID_VALUE => Ok(Some(false)),
            status => check("cuFuncGetParamInfo", status).map(|()| Some(true)),
        }
    }

    fn constructor_kernels(&self) -> [&'static CStr; 2] {
        [c"nvptx$device$init", c"nvptx$device$fini"]
    }

    fn global(&self, module: Handle, name: &CStr) -> Result<Option<Global>> {
        let (mut address, mut size) = (0, 0);
        // SAFETY: writes two numbers; the module is never unloaded, the name is a C string.
        let status =
            unsafe { cuModuleGetGlobal_v2(&mut address, &mut size, module.0, name.as_ptr()) };
        if status == NOT_FOUND {
            return Ok(None);
        }
        check("cuModuleGetGlobal", status).map(|()| Some(Global { address, size }))
    }

    fn host_memory(&self, size: usize) -> Result<HostMemory> {
        let (mut host, mut device) = (null_mut(), 0);
        // SAFETY: writes one pointer.
        let status = unsafe { cuMemHostAlloc(&mut host, size, HOST_PORTABLE_AND_MAPPED) };
        check("cuMemHostAlloc", status)?;
        // SAFETY: writes one number, for memory that was just allocated.
        let status = unsafe { cuMemHostGetDevicePointer_v2(&mut device, host, 0) };
        check("cuMemHostGetDevicePointer", status)?;
        // SAFETY: as allocated; it is never freed.
        unsafe { HostMemory::new(host.cast(), device, size) }
    }

    fn device_memory(&self, size: usize) -> Result<u64> {
        let mut address = 0;
        // SAFETY: writes one number.
        let status = unsafe { cuMemAlloc_v2(&mut address, size) };
        check("cuMemAlloc", status).map(|()| address)
    }

    fn write(&self, to: u64, from: &[u8]) -> Result<()> {
        // SAFETY: reads as many bytes as there are; the driver checks the device's end.
        let status = unsafe { cuMemcpyHtoD_v2(to, from.as_ptr().cast(), from.len()) };
        check("cuMemcpyHtoD", status)
    }

    fn read(&self, from: u64, to: &mut [u8]) -> Result<()> {
        // SAFETY: writes as many bytes as there are; the driver checks the device's end.
        let status = unsafe { cuMemcpyDtoH_v2(to.as_mut_ptr().cast(), from, to.len()) };
        check("cuMemcpyDtoH", status)
    }

    unsafe fn launch(
        &self,
        function: Handle,
        shape: Shape,
        stream: Handle,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let ([x, y, z], [of_x, of_y, of_z]) = (shape.blocks, shape.threads);
        let arguments = arguments.as_mut_ptr();
        // SAFETY: the handles are the driver's, never given back; the arguments are the caller's promise.
        let status = unsafe {
            cuLaunchKernel(
                function.0,
                x,
                y,
                z,
                of_x,
                of_y,
                of_z,
                0,
                stream.0,
                arguments,
                null_mut(),
            )
        };
        check("cuLaunchKernel", status)
    }

    fn is_done(&self, stream: Handle) -> Result<bool> {
        // SAFETY: the stream is never destroyed.
        match unsafe { cuStreamQuery(stream.0) } {
            NOT_READY => Ok(false),
            status => check("cuStreamQuery", status).map(|()| true),
        }
    }

    fn allocate(&self, size: u64, stream: Handle) -> Result<Option<u64>> {
        let Ok(size) = usize::try_from(size) else {
            return Ok(None);
        };
        let mut address = 0;
        // SAFETY: writes one number.
        match unsafe { cuMemAllocAsync(&mut address, size, stream.0) } {
            OUT_OF_MEMORY => Ok(None),
            status => check("cuMemAllocAsync", status).map(|()| Some(address)),
        }
    }

    fn free(&self, address: u64, stream: Handle) -> Result<()> {
        // SAFETY: it was allocated by `allocate`, and is freed once.
        check("cuMemFreeAsync", unsafe {
            cuMemFreeAsync(address, stream.0)
        })
    }
}
