//! Table of the functions and constants of a GPU driver. CUDA and HIP have the same functions with the same
//! parameters, under different names; the few differences are enums and options here.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null;

use crate::error::{Code, Error, Result};

// Status codes that CUDA and HIP share (`CUresult`, `hipError_t`).
pub const INVALID_VALUE: c_int = 1;
pub const OUT_OF_MEMORY: c_int = 2;
pub const NO_DEVICE: c_int = 100;
pub const NOT_FOUND: c_int = 500;
pub const NOT_READY: c_int = 600;

/// Flag of a stream that does not synchronise with the default stream, in CUDA and HIP.
pub const STREAM_NON_BLOCKING: c_uint = 1;

/// Address in memory of a device: `CUdeviceptr`, and HIP's `hipDeviceptr_t`, which is a pointer. On hosts of
/// 64 bits both are passed and stored alike.
pub type DeviceAddress = u64;

const _: () = assert!(size_of::<DeviceAddress>() == size_of::<*mut c_void>());

/// A function of the driver, with the name for error messages.
#[derive(Clone, Copy)]
pub struct Function<F> {
    pub name: &'static str,
    pub call: F,
}

/// Table entry of an imported function. The name in messages is that of the function, or the given one for a
/// function whose header maps a name to a versioned symbol.
macro_rules! function {
    ($function:ident) => {
        $crate::runtime::driver_api::Function {
            name: stringify!($function),
            call: $function,
        }
    };
    ($name:literal = $function:ident) => {
        $crate::runtime::driver_api::Function {
            name: $name,
            call: $function,
        }
    };
}
pub(super) use function;

/// A major and a minor version.
pub type Version = (c_int, c_int);

/// A GPU driver.
pub struct DriverApi {
    /// Table in `GpuStub.toml` that declares its stubs.
    pub library: &'static str,
    /// Name of the platform whose version it reports.
    pub platform: &'static str,
    pub help: Help,
    /// First version that can allocate memory while a kernel runs.
    pub min_version: Version,
    pub decode_version: fn(c_int) -> Version,
    /// Statuses of `init` and of `get_device_count` for "no device".
    pub no_device: [&'static [c_int]; 2],
    /// Attribute: number of threads of a warp.
    pub warp_size: c_int,
    /// Attributes: number of multiprocessors (compute units), and of threads that one can run at once.
    pub occupancy: [c_int; 2],
    /// Attribute: support of memory pools.
    pub memory_pools_supported: c_int,
    /// Flags for host memory that all threads and the device can access, coherently while a kernel runs.
    pub host_memory_flags: c_uint,
    /// Kernels that LLVM generates for global constructors and destructors.
    pub constructor_kernels: [&'static CStr; 2],
    pub functions: Functions,
}

/// Advice in error messages.
pub struct Help {
    /// The driver is missing.
    pub missing: &'static str,
    /// The driver finds no device.
    pub hidden: &'static str,
    /// The driver is too old.
    pub outdated: &'static str,
}

type GetSymbol = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int;
type GetGlobal =
    unsafe extern "C" fn(*mut DeviceAddress, *mut usize, *mut c_void, *const c_char) -> c_int;
type GetParameter = unsafe extern "C" fn(*mut c_void, usize, *mut usize, *mut usize) -> c_int;
type LoadWithLog = unsafe extern "C" fn(
    *mut *mut c_void,
    *const c_void,
    c_uint,
    *mut c_int,
    *mut *mut c_void,
) -> c_int;
type Launch = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> c_int;

/// Functions of a driver, by purpose.
pub struct Functions {
    pub init: Function<unsafe extern "C" fn(c_uint) -> c_int>,
    pub get_version: Function<unsafe extern "C" fn(*mut c_int) -> c_int>,
    pub get_device_count: Function<unsafe extern "C" fn(*mut c_int) -> c_int>,
    /// Converts an ordinal to a device. Without it, a device is its ordinal.
    pub get_device: Option<Function<unsafe extern "C" fn(*mut c_int, c_int) -> c_int>>,
    pub get_attribute: Function<unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int>,
    pub attach: Attach,
    pub stack_limit: Option<StackLimit>,
    pub create_stream: Function<unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int>,
    pub load_module: LoadModule,
    pub get_function: Function<GetSymbol>,
    /// Loads a function; in newer drivers only.
    pub load_function: Option<Function<unsafe extern "C" fn(*mut c_void) -> c_int>>,
    /// Returns offset and size of a parameter of a function; in newer drivers only.
    pub get_parameter: Option<Function<GetParameter>>,
    pub get_global: Function<GetGlobal>,
    pub allocate_host: Function<unsafe extern "C" fn(*mut *mut c_void, usize, c_uint) -> c_int>,
    pub get_device_pointer:
        Function<unsafe extern "C" fn(*mut DeviceAddress, *mut c_void, c_uint) -> c_int>,
    pub allocate: Function<unsafe extern "C" fn(*mut DeviceAddress, usize) -> c_int>,
    pub copy_to_device:
        Function<unsafe extern "C" fn(DeviceAddress, *const c_void, usize) -> c_int>,
    pub copy_to_host: Function<unsafe extern "C" fn(*mut c_void, DeviceAddress, usize) -> c_int>,
    pub launch: Function<Launch>,
    pub query_stream: Function<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub allocate_async:
        Function<unsafe extern "C" fn(*mut DeviceAddress, usize, *mut c_void) -> c_int>,
    pub free_async: Function<unsafe extern "C" fn(DeviceAddress, *mut c_void) -> c_int>,
    pub error_name: ErrorName,
}

/// Functions that make a device current on the calling thread.
pub enum Attach {
    /// By the device.
    Device(Function<unsafe extern "C" fn(c_int) -> c_int>),
    /// By its primary context.
    PrimaryContext {
        retain: Function<unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int>,
        set_current: Function<unsafe extern "C" fn(*mut c_void) -> c_int>,
    },
}

/// Minimum stack of each thread of the device.
pub struct StackLimit {
    pub get: Function<unsafe extern "C" fn(*mut usize, c_int) -> c_int>,
    pub set: Function<unsafe extern "C" fn(c_int, usize) -> c_int>,
    /// Number of the limit.
    pub limit: c_int,
    /// Size in bytes.
    pub size: usize,
}

/// Function that loads an image.
pub enum LoadModule {
    /// `(module, image)`; help for an image that is rejected.
    Plain(
        Function<unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> c_int>,
        &'static str,
    ),
    /// `(module, image, option_count, options, values)` with the numbers of the options for the address and
    /// the size of a log; help for an image that is rejected without a log.
    WithLog(Function<LoadWithLog>, [c_int; 2], &'static str),
}

/// Function that returns the name of a status.
pub enum ErrorName {
    Returned(unsafe extern "C" fn(c_int) -> *const c_char),
    Written(unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int),
}

impl DriverApi {
    /// Loads the library.
    pub fn load_library(&self) -> Result<()> {
        let Err(error) = gpustub::load(self.library) else {
            return Ok(());
        };
        let mut message = format!("no GPU driver found: {error}");
        // The searched locations. The first line repeats the reason.
        let report = gpustub::report(self.library)
            .unwrap_or_default()
            .to_string();
        for line in report.lines().skip(1) {
            message += &format!("\n{line}");
        }
        Err(Error::new(Code::NoGpu, message).help(self.help.missing))
    }

    /// Rejects a driver that is too old.
    pub fn check_version(&self, version: c_int) -> Result<()> {
        let (major, minor) = (self.decode_version)(version);
        let (min_major, min_minor) = self.min_version;
        if (major, minor) >= (min_major, min_minor) {
            return Ok(());
        }
        let message = format!(
            "the driver is too old: {} {major}.{minor}, but {min_major}.{min_minor} is the first that allocates \
             memory while a kernel runs",
            self.platform
        );
        Err(Error::new(Code::NoGpu, message).help(self.help.outdated))
    }

    /// The error for a machine without a device.
    pub fn no_device(&self) -> Error {
        let message = format!("the driver finds no {} device", self.platform);
        Error::new(Code::NoGpu, message).help(self.help.hidden)
    }

    /// Rejects an ordinal that is not below the number of devices.
    pub fn check_ordinal(&self, ordinal: u32, count: c_int) -> Result<c_int> {
        match c_int::try_from(ordinal) {
            Ok(device) if device < count => return Ok(device),
            _ => {}
        }
        let message = match count {
            ..=0 => return Err(self.no_device()),
            1 => format!(
                "unknown {} device {ordinal}: the only one is 0",
                self.platform
            ),
            _ => format!(
                "unknown {} device {ordinal}: the last one is {}",
                self.platform,
                count - 1
            ),
        };
        Err(Error::new(Code::NoGpu, message))
    }

    /// Rejects a device that cannot allocate memory while a kernel runs.
    pub fn check_memory_pools(&self, ordinal: c_int, supported: c_int) -> Result<()> {
        if supported != 0 {
            return Ok(());
        }
        let message = format!(
            "{} device {ordinal} has no memory pools, which allocations while a kernel runs need",
            self.platform
        );
        Err(Error::new(Code::NoGpu, message).help("choose another device: --device"))
    }

    /// Converts the status of a call to a result.
    pub fn check<F>(&self, function: &Function<F>, status: c_int) -> Result<()> {
        match status {
            0 => Ok(()),
            _ => Err(self.error(function.name, status)),
        }
    }

    fn error(&self, function: &str, status: c_int) -> Error {
        let name = match self.functions.error_name {
            // SAFETY: takes any status.
            ErrorName::Returned(error_name) => unsafe { error_name(status) },
            ErrorName::Written(error_name) => {
                let mut name = null();
                // SAFETY: writes one pointer, to a constant or NULL.
                unsafe { error_name(status, &mut name) };
                name
            }
        };
        let name = if name.is_null() {
            "unnamed error".into()
        } else {
            // SAFETY: names of errors are constants of the driver.
            unsafe { CStr::from_ptr(name) }.to_string_lossy()
        };
        Error::new(Code::Failed, format!("{function}: {name} ({status})"))
    }
}
