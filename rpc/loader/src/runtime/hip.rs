//! ROCm's HIP runtime.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::driver_api::{
    Attach, DeviceAddress, DriverApi, ErrorName, Functions, Help, LoadModule, NO_DEVICE, function,
};

/// Status of `hipInit` of 5.2 without a device. `hipInit` takes no device number.
const INVALID_DEVICE: c_int = 101;

// Numbers of hip_runtime_api.h, the same from 5.2 to 7.2.
pub static API: DriverApi = DriverApi {
    library: "hip",
    platform: "HIP",
    help: Help {
        missing: "install ROCm's HIP runtime, and AMD's driver; a container needs /dev/kfd and /dev/dri",
        hidden: "`rocminfo` lists devices; HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES hide them, as does a /dev/kfd \
                 that this user may not open",
        outdated: "install ROCm 5.2 or newer",
    },
    // The first whose devices report support of memory pools, which hipMallocAsync needs.
    min_version: (5, 2),
    // 10'000'000 * major + 100'000 * minor + patch
    decode_version: |version| (version / 10_000_000, version / 100_000 % 100),
    no_device: [&[NO_DEVICE, INVALID_DEVICE], &[NO_DEVICE]],
    warp_size: 87,
    occupancy: [63, 57],
    memory_pools_supported: 88,
    // Coherent, portable and mapped. Coherent: each side sees writes of the other while a kernel runs.
    host_memory_flags: 0x4000_0000 | 1 | 2,
    constructor_kernels: [c"amdgcn.device.init", c"amdgcn.device.fini"],
    functions: Functions {
        init: function!(hipInit),
        get_version: function!(hipRuntimeGetVersion),
        get_device_count: function!(hipGetDeviceCount),
        get_device: None,
        get_attribute: function!(hipDeviceGetAttribute),
        attach: Attach::Device(function!(hipSetDevice)),
        stack_limit: None,
        create_stream: function!(hipStreamCreateWithFlags),
        load_module: LoadModule::Plain(
            function!(hipModuleLoadData),
            "the image is for GPUs of another architecture, or for a newer runtime",
        ),
        get_function: function!(hipModuleGetFunction),
        load_function: None,
        get_parameter: None,
        get_global: function!(hipModuleGetGlobal),
        allocate_host: function!(hipHostMalloc),
        get_device_pointer: function!(hipHostGetDevicePointer),
        allocate: function!(hipMalloc),
        copy_to_device: function!(hipMemcpyHtoD),
        copy_to_host: function!(hipMemcpyDtoH),
        launch: function!(hipModuleLaunchKernel),
        query_stream: function!(hipStreamQuery),
        allocate_async: function!(hipMallocAsync),
        free_async: function!(hipFreeAsync),
        error_name: ErrorName::Returned(hipGetErrorName),
    },
};

// SAFETY: the declarations are those of hip_runtime_api.h, with `DeviceAddress` for pointers to memory of the
// device.
unsafe extern "C" {
    fn hipInit(flags: c_uint) -> c_int;
    fn hipRuntimeGetVersion(version: *mut c_int) -> c_int;
    fn hipGetDeviceCount(count: *mut c_int) -> c_int;
    fn hipDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> c_int;
    fn hipSetDevice(device: c_int) -> c_int;
    fn hipStreamCreateWithFlags(stream: *mut *mut c_void, flags: c_uint) -> c_int;
    fn hipModuleLoadData(module: *mut *mut c_void, image: *const c_void) -> c_int;
    fn hipModuleGetFunction(
        function: *mut *mut c_void,
        module: *mut c_void,
        name: *const c_char,
    ) -> c_int;
    fn hipModuleGetGlobal(
        address: *mut DeviceAddress,
        size: *mut usize,
        module: *mut c_void,
        name: *const c_char,
    ) -> c_int;
    fn hipHostMalloc(memory: *mut *mut c_void, size: usize, flags: c_uint) -> c_int;
    fn hipHostGetDevicePointer(
        address: *mut DeviceAddress,
        memory: *mut c_void,
        flags: c_uint,
    ) -> c_int;
    fn hipMalloc(address: *mut DeviceAddress, size: usize) -> c_int;
    fn hipMemcpyHtoD(to: DeviceAddress, from: *const c_void, size: usize) -> c_int;
    fn hipMemcpyDtoH(to: *mut c_void, from: DeviceAddress, size: usize) -> c_int;
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
    fn hipMallocAsync(address: *mut DeviceAddress, size: usize, stream: *mut c_void) -> c_int;
    fn hipFreeAsync(address: DeviceAddress, stream: *mut c_void) -> c_int;
    fn hipGetErrorName(error: c_int) -> *const c_char;
}
