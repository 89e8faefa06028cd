//! ROCm's HIP runtime.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use super::{Driver, Global, Handle, HostMemory, OUT_OF_MEMORY, Runtime, Shape, failed, refused};
use crate::error::{Error, Result};

const DRIVER: Driver = Driver {
    library: "hip",
    vendor: "HIP",
    missing: "install ROCm's HIP runtime, and AMD's driver; a container needs /dev/kfd and /dev/dri",
    hidden: "`rocminfo` lists devices; HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES hide them, as does a /dev/kfd \
             that this user may not open",
    newer: "install ROCm 5.2 or newer",
};

/// The first whose devices say whether they have memory pools, which `hipMallocAsync` needs.
const OLDEST: (c_int, c_int) = (5, 2);

// hipError_t, hipDeviceAttribute_t and so on (hip_runtime_api.h; the same from 5.2 to 7.2).
const NO_DEVICE: c_int = 100;
/// What `hipInit` of 5.2 says where there is no device; it takes no number of one.
const INVALID_DEVICE: c_int = 101;
const NOT_FOUND: c_int = 500;
const NOT_READY: c_int = 600;
const WARP_SIZE: c_int = 87;
const MEMORY_POOLS_SUPPORTED: c_int = 88;
const NON_BLOCKING: c_uint = 1;
/// Coherent: what one side writes the other one sees while a kernel runs.
const HOST_COHERENT_PORTABLE_AND_MAPPED: c_uint = 0x4000_0000 | 1 | 2;

// SAFETY: the declarations are those of hip_runtime_api.h.
unsafe extern "C" {
    safe fn hipInit(flags: c_uint) -> c_int;
    fn hipRuntimeGetVersion(version: *mut c_int) -> c_int;
    fn hipGetDeviceCount(count: *mut c_int) -> c_int;
    fn hipDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> c_int;
    safe fn hipSetDevice(device: c_int) -> c_int;
    fn hipStreamCreateWithFlags(stream: *mut *mut c_void, flags: c_uint) -> c_int;
    fn hipModuleLoadData(module: *mut *mut c_void, image: *const c_void) -> c_int;
    fn hipModuleGetFunction(
        function: *mut *mut c_void,
        module: *mut c_void,
        name: *const c_char,
    ) -> c_int;
    fn hipModuleGetGlobal(
        address: *mut *mut c_void,
        size: *mut usize,
        module: *mut c_void,
        name: *const c_char,
    ) -> c_int;
    fn hipHostMalloc(memory: *mut *mut c_void, size: usize, flags: c_uint) -> c_int;
    fn hipHostGetDevicePointer(
        address: *mut *mut c_void,
        memory: *mut c_void,
        flags: c_uint,
    ) -> c_int;
    fn hipMalloc(address: *mut *mut c_void, size: usize) -> c_int;
    fn hipMemcpyHtoD(to: *mut c_void, from: *const c_void, size: usize) -> c_int;
    fn hipMemcpyDtoH(to: *mut c_void, from: *mut c_void, size: usize) -> c_int;
    fn hipModuleLaunchKernel(
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
    fn hipStreamQuery(stream: *mut c_void) -> c_int;
    fn hipMallocAsync(address: *mut *mut c_void, size: usize, stream: *mut c_void) -> c_int;
    fn hipFreeAsync(address: *mut c_void, stream: *mut c_void) -> c_int;
    safe fn hipGetErrorName(error: c_int) -> *const c_char;
}

fn check(call: &str, status: c_int) -> Result<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(error(call, status))
    }
}

fn error(call: &str, status: c_int) -> Error {
    failed(call, status, hipGetErrorName(status))
}

/// An address of the device, which is never followed here.
fn pointer(address: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(address as usize)
}

/// A device.
pub struct Hip {
    device: c_int,
    lanes: u32,
}

impl Hip {
    /// Opens a device.
    pub fn open(ordinal: u32) -> Result<Self> {
        DRIVER.load()?;
        let mut version = 0;
        // SAFETY: writes one number.
        check("hipRuntimeGetVersion", unsafe {
            hipRuntimeGetVersion(&mut version)
        })?;
        // 10'000'000 * major + 100'000 * minor + patch
        DRIVER.at_least((version / 10_000_000, version / 100_000 % 100), OLDEST)?;
        match hipInit(0) {
            NO_DEVICE | INVALID_DEVICE => return Err(DRIVER.no_device()),
            status => check("hipInit", status)?,
        }
        let mut count = 0;
        // SAFETY: writes one number.
        match unsafe { hipGetDeviceCount(&mut count) } {
            NO_DEVICE => count = 0,
            status => check("hipGetDeviceCount", status)?,
        }
        let device = DRIVER.device(ordinal, count)?;
        let attribute = |which| {
            let mut value = 0;
            // SAFETY: writes one number.
            let status = unsafe { hipDeviceGetAttribute(&mut value, which, device) };
            check("hipDeviceGetAttribute", status).map(|()| value)
        };
        DRIVER.has_pools(device, attribute(MEMORY_POOLS_SUPPORTED)?)?;
        let lanes = attribute(WARP_SIZE)?.unsigned_abs();
        let hip = Self { device, lanes };
        hip.attach()?;
        Ok(hip)
    }
}

impl Runtime for Hip {
    fn lanes(&self) -> u32 {
        self.lanes
    }

    fn attach(&self) -> Result<()> {
        check("hipSetDevice", hipSetDevice(self.device))
    }

    fn stream(&self) -> Result<Handle> {
        let mut stream = null_mut();
        // SAFETY: writes one handle.
        let status = unsafe { hipStreamCreateWithFlags(&mut stream, NON_BLOCKING) };
        check("hipStreamCreateWithFlags", status).map(|()| Handle(stream))
    }

    fn load(&self, image: &[u8]) -> Result<Handle> {
        let mut module = null_mut();
        // SAFETY: the image is whole, and has its size in it.
        let status = unsafe { hipModuleLoadData(&mut module, image.as_ptr().cast()) };
        check("hipModuleLoadData", status).map_err(|error| {
            refused(error, status)
                .help("the image is for GPUs of another architecture, or for a newer runtime")
        })?;
        Ok(Handle(module))
    }

    fn function(&self, module: Handle, name: &CStr) -> Result<Option<Handle>> {
        let mut function = null_mut();
        // SAFETY: the module is never unloaded, the name is a C string.
        match unsafe { hipModuleGetFunction(&mut function, module.0, name.as_ptr()) } {
            NOT_FOUND => Ok(None),
            status => check("hipModuleGetFunction", status).map(|()| Some(Handle(function))),
        }
    }

    fn takes_arguments(&self, _: Handle) -> Result<Option<bool>> {
        Ok(None)
    }

    fn constructor_kernels(&self) -> [&'static CStr; 2] {
        [c"amdgcn.device.init", c"amdgcn.device.fini"]
    }

    fn global(&self, module: Handle, name: &CStr) -> Result<Option<Global>> {
        let (mut address, mut size) = (null_mut(), 0);
        // SAFETY: writes an address and a number; the module is never unloaded, the name is a C string.
        match unsafe { hipModuleGetGlobal(&mut address, &mut size, module.0, name.as_ptr()) } {
            NOT_FOUND => Ok(None),
            status => {
                let address = address.addr() as u64;
                check("hipModuleGetGlobal", status).map(|()| Some(Global { address, size }))
            }
        }
    }

    fn host_memory(&self, size: usize) -> Result<HostMemory> {
        let (mut host, mut device) = (null_mut(), null_mut());
        // SAFETY: writes one pointer.
        let status = unsafe { hipHostMalloc(&mut host, size, HOST_COHERENT_PORTABLE_AND_MAPPED) };
        check("hipHostMalloc", status)?;
        // SAFETY: writes one pointer, for memory that was just allocated.
        let status = unsafe { hipHostGetDevicePointer(&mut device, host, 0) };
        check("hipHostGetDevicePointer", status)?;
        // SAFETY: as allocated; it is never freed.
        unsafe { HostMemory::new(host.cast(), device.addr() as u64, size) }
    }

    fn device_memory(&self, size: usize) -> Result<u64> {
        let mut address = null_mut();
        // SAFETY: writes one address.
        let status = unsafe { hipMalloc(&mut address, size) };
        check("hipMalloc", status).map(|()| address.addr() as u64)
    }

    fn write(&self, to: u64, from: &[u8]) -> Result<()> {
        // SAFETY: reads as many bytes as there are; the runtime checks the device's end.
        let status = unsafe { hipMemcpyHtoD(pointer(to), from.as_ptr().cast(), from.len()) };
        check("hipMemcpyHtoD", status)
    }

    fn read(&self, from: u64, to: &mut [u8]) -> Result<()> {
        // SAFETY: writes as many bytes as there are; the runtime checks the device's end.
        let status = unsafe { hipMemcpyDtoH(to.as_mut_ptr().cast(), pointer(from), to.len()) };
        check("hipMemcpyDtoH", status)
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
        // SAFETY: the handles are the runtime's, never given back; the arguments are the caller's promise.
        let status = unsafe {
            hipModuleLaunchKernel(
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
        check("hipModuleLaunchKernel", status)
    }

    fn is_done(&self, stream: Handle) -> Result<bool> {
        // SAFETY: the stream is never destroyed.
        match unsafe { hipStreamQuery(stream.0) } {
            NOT_READY => Ok(false),
            status => check("hipStreamQuery", status).map(|()| true),
        }
    }

    fn allocate(&self, size: u64, stream: Handle) -> Result<Option<u64>> {
        let Ok(size) = usize::try_from(size) else {
            return Ok(None);
        };
        let mut address = null_mut();
        // SAFETY: writes one address.
        match unsafe { hipMallocAsync(&mut address, size, stream.0) } {
            OUT_OF_MEMORY => Ok(None),
            status => check("hipMallocAsync", status).map(|()| Some(address.addr() as u64)),
        }
    }

    fn free(&self, address: u64, stream: Handle) -> Result<()> {
        // SAFETY: it was allocated by `allocate`, and is freed once.
        check("hipFreeAsync", unsafe {
            hipFreeAsync(pointer(address), stream.0)
        })
    }
}
