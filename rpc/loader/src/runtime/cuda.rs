//! CUDA's driver.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::driver_api::{
    Attach, DeviceAddress, DriverApi, ErrorName, Functions, Help, LoadModule, NO_DEVICE,
    StackLimit, function,
};

pub static API: DriverApi = DriverApi {
    library: "cuda",
    platform: "CUDA",
    help: Help {
        missing: "install NVIDIA's driver; a container has it if it is started with GPUs (`--gpus all`)",
        hidden: "`nvidia-smi` lists devices; CUDA_VISIBLE_DEVICES hides them, and a container has those it was started with",
        outdated: "install NVIDIA's driver 460 or newer",
    },
    // The first with cuMemAllocAsync.
    min_version: (11, 2),
    // 1000 * major + 10 * minor
    decode_version: |version| (version / 1000, version % 1000 / 10),
    no_device: [&[NO_DEVICE], &[]],
    warp_size: 10,
    occupancy: [16, 39],
    memory_pools_supported: 115,
    // Portable and mapped.
    host_memory_flags: 1 | 2,
    constructor_kernels: [c"nvptx$device$init", c"nvptx$device$fini"],
    functions: Functions {
        init: function!(cuInit),
        get_version: function!(cuDriverGetVersion),
        get_device_count: function!(cuDeviceGetCount),
        get_device: Some(function!(cuDeviceGet)),
        get_attribute: function!(cuDeviceGetAttribute),
        attach: Attach::PrimaryContext {
            retain: function!(cuDevicePrimaryCtxRetain),
            set_current: function!(cuCtxSetCurrent),
        },
        stack_limit: Some(StackLimit {
            get: function!(cuCtxGetLimit),
            set: function!(cuCtxSetLimit),
            limit: 0,
            // Functions of LLVM's libc need more than the driver's 1024 where it cannot compute the depth.
            // LLVM's loader sets the same size (`llvm-gpu-loader/nvptx.cpp`).
            size: 3 * 1024,
        }),
        create_stream: function!(cuStreamCreate),
        load_module: LoadModule::WithLog(
            function!(cuModuleLoadDataEx),
            // CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
            [5, 6],
            "the image is for GPUs of another architecture, or for a newer driver",
        ),
        get_function: function!(cuModuleGetFunction),
        // Since 12.4.
        load_function: Some(function!(cuFuncLoad)),
        // Since 12.4.
        get_parameter: Some(function!(cuFuncGetParamInfo)),
        get_global: function!("cuModuleGetGlobal" = cuModuleGetGlobal_v2),
        allocate_host: function!(cuMemHostAlloc),
        get_device_pointer: function!("cuMemHostGetDevicePointer" = cuMemHostGetDevicePointer_v2),
        allocate: function!("cuMemAlloc" = cuMemAlloc_v2),
        copy_to_device: function!("cuMemcpyHtoD" = cuMemcpyHtoD_v2),
        copy_to_host: function!("cuMemcpyDtoH" = cuMemcpyDtoH_v2),
        launch: function!(cuLaunchKernel),
        query_stream: function!(cuStreamQuery),
        allocate_async: function!(cuMemAllocAsync),
        free_async: function!(cuMemFreeAsync),
        error_name: ErrorName::Written(cuGetErrorName),
    },
};

// SAFETY: the declarations are those of cuda.h, which maps some names to newer ones with macros (cuMemAlloc is
// cuMemAlloc_v2); these are the names that the library exports.
unsafe extern "C" {
    fn cuInit(flags: c_uint) -> c_int;
    fn cuDriverGetVersion(version: *mut c_int) -> c_int;
    fn cuDeviceGetCount(count: *mut c_int) -> c_int;
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int;
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> c_int;
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int;
    fn cuCtxSetCurrent(context: *mut c_void) -> c_int;
    fn cuCtxGetLimit(value: *mut usize, limit: c_int) -> c_int;
    fn cuCtxSetLimit(limit: c_int, value: usize) -> c_int;
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
        address: *mut DeviceAddress,
        size: *mut usize,
        module: *mut c_void,
        name: *const c_char,
    ) -> c_int;
    fn cuMemHostAlloc(memory: *mut *mut c_void, size: usize, flags: c_uint) -> c_int;
    fn cuMemHostGetDevicePointer_v2(
        address: *mut DeviceAddress,
        memory: *mut c_void,
        flags: c_uint,
    ) -> c_int;
    fn cuMemAlloc_v2(address: *mut DeviceAddress, size: usize) -> c_int;
    fn cuMemcpyHtoD_v2(to: DeviceAddress, from: *const c_void, size: usize) -> c_int;
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: DeviceAddress, size: usize) -> c_int;
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
    fn cuMemAllocAsync(address: *mut DeviceAddress, size: usize, stream: *mut c_void) -> c_int;
    fn cuMemFreeAsync(address: DeviceAddress, stream: *mut c_void) -> c_int;
    fn cuGetErrorName(error: c_int, name: *mut *const c_char) -> c_int;
}
