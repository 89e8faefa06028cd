//! A device of a GPU driver, with all operations that a run needs.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use super::driver_api::{
    Attach, DriverApi, Function, INVALID_VALUE, LoadModule, NOT_FOUND, NOT_READY, OUT_OF_MEMORY,
    STREAM_NON_BLOCKING,
};
use super::host_memory::HostMemory;
use super::{cuda, hip};
use crate::error::{Code, Error, Result};
use crate::image::Kind;

/// An opaque module, function, stream or context of the driver.
#[derive(Debug, Clone, Copy)]
pub struct Handle(*mut c_void);

// SAFETY: drivers accept their handles on any thread, and nothing here reads through one.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// A variable of a loaded image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Global {
    /// Address on the device.
    pub address: u64,
    /// Size in bytes.
    pub size: usize,
}

/// Number of threads that run a kernel, in x, y and z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Blocks (work groups).
    pub blocks: [u32; 3],
    /// Threads of each block (work items).
    pub threads: [u32; 3],
}

impl Shape {
    /// One thread.
    pub const ONE: Self = Self {
        blocks: [1; 3],
        threads: [1; 3],
    };

    /// Number of all threads.
    pub fn size(self) -> u64 {
        self.blocks
            .into_iter()
            .chain(self.threads)
            .fold(1, |product, count| product.saturating_mul(u64::from(count)))
    }
}

/// A device of a driver.
///
/// While a kernel runs that may call the host, only [`Self::attach`], [`Self::is_done`], [`Self::allocate`]
/// and [`Self::free`] are called: other functions may wait for the kernel, which waits for the host.
pub struct Gpu {
    api: &'static DriverApi,
    device: c_int,
    /// Primary context, in drivers that attach by context.
    context: Handle,
    lanes: u32,
    resident_threads: u32,
    /// Whether the driver has `load_function`.
    has_load_function: bool,
    /// Whether the driver has `get_parameter`.
    has_get_parameter: bool,
}

impl Gpu {
    /// Opens a device.
    ///
    /// # Errors
    ///
    /// If the driver is missing or too old, or the device does not exist.
    pub fn open(kind: Kind, ordinal: u32) -> Result<Self> {
        let api = match kind {
            Kind::Cuda => &cuda::API,
            Kind::Hip => &hip::API,
        };
        let functions = &api.functions;
        api.load_library()?;
        let version = get(api, &functions.get_version, |call, value| {
            // SAFETY: writes one number.
            unsafe { call(value) }
        })?;
        api.check_version(version)?;
        api.init()?;
        let ordinal = api.check_ordinal(ordinal, api.device_count()?)?;
        let device = match &functions.get_device {
            None => ordinal,
            Some(function) => get(api, function, |call, value| {
                // SAFETY: writes one number.
                unsafe { call(value, ordinal) }
            })?,
        };
        let memory_pools_supported = api.attribute(device, api.memory_pools_supported)?;
        api.check_memory_pools(ordinal, memory_pools_supported)?;
        let lanes = api.attribute(device, api.warp_size)?.unsigned_abs();
        let [processors, threads] = api.occupancy;
        let processors = api.attribute(device, processors)?.unsigned_abs();
        let threads = api.attribute(device, threads)?.unsigned_abs();
        let mut context = null_mut();
        if let Attach::PrimaryContext { retain, .. } = &functions.attach {
            // SAFETY: writes one handle.
            let status = unsafe { (retain.call)(&mut context, device) };
            api.check(retain, status)?;
        }
        let gpu = Self {
            api,
            device,
            context: Handle(context),
            lanes,
            resident_threads: processors.saturating_mul(threads),
            has_load_function: api.has(&functions.load_function),
            has_get_parameter: api.has(&functions.get_parameter),
        };
        gpu.attach()?;
        gpu.raise_stack_limit()?;
        Ok(gpu)
    }

    fn raise_stack_limit(&self) -> Result<()> {
        let Some(stack) = &self.api.functions.stack_limit else {
            return Ok(());
        };
        let mut size = 0;
        // SAFETY: writes one number.
        let status = unsafe { (stack.get.call)(&mut size, stack.limit) };
        self.api.check(&stack.get, status)?;
        if size >= stack.size {
            return Ok(());
        }
        // SAFETY: takes any numbers.
        let status = unsafe { (stack.set.call)(stack.limit, stack.size) };
        self.api.check(&stack.set, status)
    }

    /// Number of threads of a warp (wavefront), as the driver reports it. Images may have another one.
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Number of warps of `lanes` threads that the device can run at once, if the driver knows it.
    pub fn resident_warps(&self, lanes: u32) -> Option<u32> {
        let warps = self.resident_threads / lanes.max(1);
        (warps > 0).then_some(warps)
    }

    /// Makes the device current on this thread.
    pub fn attach(&self) -> Result<()> {
        match &self.api.functions.attach {
            Attach::Device(function) => {
                // SAFETY: takes any number.
                let status = unsafe { (function.call)(self.device) };
                self.api.check(function, status)
            }
            Attach::PrimaryContext { set_current, .. } => {
                // SAFETY: the context is never released.
                let status = unsafe { (set_current.call)(self.context.0) };
                self.api.check(set_current, status)
            }
        }
    }

    /// Creates a stream that waits for no other.
    pub fn create_stream(&self) -> Result<Handle> {
        let function = &self.api.functions.create_stream;
        let mut stream = null_mut();
        // SAFETY: writes one handle.
        let status = unsafe { (function.call)(&mut stream, STREAM_NON_BLOCKING) };
        self.api.check(function, status).map(|()| Handle(stream))
    }

    /// Loads an image completely.
    pub fn load_module(&self, image: &[u8]) -> Result<Handle> {
        match &self.api.functions.load_module {
            LoadModule::Plain(function, help) => {
                let mut module = null_mut();
                // SAFETY: the image is complete and contains its size.
                let status = unsafe { (function.call)(&mut module, image.as_ptr().cast()) };
                match self.api.check(function, status) {
                    Ok(()) => Ok(Handle(module)),
                    Err(error) => Err(rejected_image(error, status).help(*help)),
                }
            }
            LoadModule::WithLog(function, options, help) => {
                // PTX ends with a NUL; other images contain their size.
                let mut image = image.to_vec();
                image.push(0);
                let (mut module, mut log) = (null_mut(), [0u8; 8192]);
                let mut options = *options;
                // A numeric option is stored in place of a pointer.
                let mut values = [
                    log.as_mut_ptr().cast(),
                    std::ptr::without_provenance_mut(log.len()),
                ];
                // SAFETY: the image is complete, and the log has the size that the options state.
                let status = unsafe {
                    (function.call)(
                        &mut module,
                        image.as_ptr().cast(),
                        2,
                        options.as_mut_ptr(),
                        values.as_mut_ptr(),
                    )
                };
                self.api.check(function, status).map_err(|error| {
                    let log = CStr::from_bytes_until_nul(&log)
                        .unwrap_or_default()
                        .to_string_lossy();
                    let error = rejected_image(error, status);
                    match log.trim() {
                        "" => error.help(*help),
                        log => error.help(format!("log of the driver:\n{log}")),
                    }
                })?;
                Ok(Handle(module))
            }
        }
    }

    /// Returns a kernel that is ready to be launched; nothing if the image has none of this name.
    pub fn function(&self, module: Handle, name: &CStr) -> Result<Option<Handle>> {
        let functions = &self.api.functions;
        let mut function = null_mut();
        // SAFETY: the module is never unloaded, the name is a C string.
        let status =
            unsafe { (functions.get_function.call)(&mut function, module.0, name.as_ptr()) };
        if status == NOT_FOUND {
            return Ok(None);
        }
        self.api.check(&functions.get_function, status)?;
        if let (Some(load), true) = (&functions.load_function, self.has_load_function) {
            // SAFETY: it is a function of the module.
            let status = unsafe { (load.call)(function) };
            self.api.check(load, status)?;
        }
        Ok(Some(Handle(function)))
    }

    /// Whether a kernel has parameters, if the driver can report it.
    pub fn has_parameters(&self, function: Handle) -> Result<Option<bool>> {
        let get_parameter = self.api.functions.get_parameter.as_ref();
        let Some(get_parameter) = get_parameter.filter(|_| self.has_get_parameter) else {
            return Ok(None);
        };
        let (mut offset, mut size) = (0, 0);
        // SAFETY: writes two numbers; it is a function of a module that is never unloaded.
        match unsafe { (get_parameter.call)(function.0, 0, &mut offset, &mut size) } {
            INVALID_VALUE => Ok(Some(false)),
            status => self.api.check(get_parameter, status).map(|()| Some(true)),
        }
    }

    /// Names of the kernels that LLVM generates for global constructors and destructors.
    pub fn constructor_kernels(&self) -> [&'static CStr; 2] {
        self.api.constructor_kernels
    }

    /// Returns a variable; nothing if the image has none of this name.
    pub fn global(&self, module: Handle, name: &CStr) -> Result<Option<Global>> {
        let function = &self.api.functions.get_global;
        let (mut address, mut size) = (0, 0);
        // SAFETY: writes an address and a size; the module is never unloaded, the name is a C string.
        match unsafe { (function.call)(&mut address, &mut size, module.0, name.as_ptr()) } {
            NOT_FOUND => Ok(None),
            status => {
                self.api.check(function, status)?;
                Ok(Some(Global { address, size }))
            }
        }
    }

    /// Allocates host memory that the device can access at the same time.
    pub fn host_memory(&self, size: usize) -> Result<HostMemory> {
        let functions = &self.api.functions;
        let (mut host, mut device) = (null_mut(), 0);
        // SAFETY: writes one pointer.
        let status =
            unsafe { (functions.allocate_host.call)(&mut host, size, self.api.host_memory_flags) };
        self.api.check(&functions.allocate_host, status)?;
        // SAFETY: writes one address, for memory that was just allocated.
        let status = unsafe { (functions.get_device_pointer.call)(&mut device, host, 0) };
        self.api.check(&functions.get_device_pointer, status)?;
        // SAFETY: as allocated; it is never freed.
        unsafe { HostMemory::new(host.cast(), device, size) }
    }

    /// Allocates memory of the device.
    pub fn device_memory(&self, size: usize) -> Result<u64> {
        let function = &self.api.functions.allocate;
        let mut address = 0;
        // SAFETY: writes one address.
        let status = unsafe { (function.call)(&mut address, size) };
        self.api.check(function, status).map(|()| address)
    }

    /// Writes to memory of the device.
    pub fn write(&self, to: u64, from: &[u8]) -> Result<()> {
        let function = &self.api.functions.copy_to_device;
        // SAFETY: reads the bytes of the slice; the driver checks the device's address.
        let status = unsafe { (function.call)(to, from.as_ptr().cast(), from.len()) };
        self.api.check(function, status)
    }

    /// Reads from memory of the device.
    pub fn read(&self, from: u64, to: &mut [u8]) -> Result<()> {
        let function = &self.api.functions.copy_to_host;
        // SAFETY: writes the bytes of the slice; the driver checks the device's address.
        let status = unsafe { (function.call)(to.as_mut_ptr().cast(), from, to.len()) };
        self.api.check(function, status)
    }

    /// Starts a kernel.
    ///
    /// # Safety
    ///
    /// `arguments` has a pointer for each parameter of the kernel, to a value of the parameter's size.
    pub unsafe fn launch(
        &self,
        function: Handle,
        shape: Shape,
        stream: Handle,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let launch = &self.api.functions.launch;
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (shape.blocks, shape.threads);
        // SAFETY: the handles are never released; the caller guarantees the arguments.
        let status = unsafe {
            (launch.call)(
                function.0,
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                0,
                stream.0,
                arguments.as_mut_ptr(),
                null_mut(),
            )
        };
        self.api.check(launch, status)
    }

    /// Whether all work of a stream is done.
    pub fn is_done(&self, stream: Handle) -> Result<bool> {
        let function = &self.api.functions.query_stream;
        // SAFETY: the stream is never destroyed.
        match unsafe { (function.call)(stream.0) } {
            NOT_READY => Ok(false),
            status => self.api.check(function, status).map(|()| true),
        }
    }

    /// Starts an allocation of memory of the device, which is complete once the stream is done. Returns nothing
    /// if there is not enough memory.
    pub fn allocate(&self, size: u64, stream: Handle) -> Result<Option<u64>> {
        let function = &self.api.functions.allocate_async;
        let Ok(size) = usize::try_from(size) else {
            return Ok(None);
        };
        let mut address = 0;
        // SAFETY: writes one address.
        match unsafe { (function.call)(&mut address, size, stream.0) } {
            OUT_OF_MEMORY => Ok(None),
            status => self.api.check(function, status).map(|()| Some(address)),
        }
    }

    /// Starts to free memory of [`Self::allocate`].
    pub fn free(&self, address: u64, stream: Handle) -> Result<()> {
        let function = &self.api.functions.free_async;
        // SAFETY: it was allocated by `allocate`, and is freed once.
        let status = unsafe { (function.call)(address, stream.0) };
        self.api.check(function, status)
    }
}

impl DriverApi {
    /// Whether the loaded driver has an optional function.
    fn has<F>(&self, function: &Option<Function<F>>) -> bool {
        function
            .as_ref()
            .is_some_and(|function| gpustub::has_function(self.library, function.name))
    }

    /// Initialises the driver.
    fn init(&self) -> Result<()> {
        let function = &self.functions.init;
        // SAFETY: takes any number.
        let status = unsafe { (function.call)(0) };
        if self.no_device[0].contains(&status) {
            return Err(self.no_device());
        }
        self.check(function, status)
    }

    /// Number of devices.
    fn device_count(&self) -> Result<c_int> {
        let function = &self.functions.get_device_count;
        let mut count = 0;
        // SAFETY: writes one number.
        let status = unsafe { (function.call)(&mut count) };
        if self.no_device[1].contains(&status) {
            return Ok(0);
        }
        self.check(function, status).map(|()| count)
    }

    /// Value of an attribute of a device.
    fn attribute(&self, device: c_int, attribute: c_int) -> Result<c_int> {
        get(self, &self.functions.get_attribute, |call, value| {
            // SAFETY: writes one number.
            unsafe { call(value, attribute, device) }
        })
    }
}

/// Returns a number that a function of the driver writes.
fn get<F: Copy>(
    api: &DriverApi,
    function: &Function<F>,
    call: impl FnOnce(F, &mut c_int) -> c_int,
) -> Result<c_int> {
    let mut value = 0;
    let status = call(function.call, &mut value);
    api.check(function, status).map(|()| value)
}

/// Error for an image that the driver rejects for any reason other than memory.
fn rejected_image(error: Error, status: c_int) -> Error {
    match status {
        OUT_OF_MEMORY => error,
        _ => Error {
            code: Code::NotRunnable,
            ..error
        },
    }
}
