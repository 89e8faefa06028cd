//! What is asked of a GPU's driver, whichever it is.

mod cuda;
mod hip;
mod host_memory;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use crate::error::{Code, Error, Result};
use crate::image::Kind;
pub use host_memory::HostMemory;

/// Something of the driver's: a module, function or stream. It is only passed on.
#[derive(Debug, Clone, Copy)]
pub struct Handle(*mut c_void);

// SAFETY: drivers take their handles from any thread, and nothing is read through one here.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// A variable of a loaded image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Global {
    /// Where it is on the device.
    pub address: u64,
    /// Its bytes.
    pub size: usize,
}

/// How many threads run a kernel, in x, y and z.
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

    /// All threads.
    pub fn size(self) -> u64 {
        let all = self.blocks.into_iter().chain(self.threads);
        all.fold(1, |product, of| product.saturating_mul(u64::from(of)))
    }
}

/// A device of a driver, with all that a run needs of it.
///
/// While a kernel runs that may call the host, only [`Self::attach`], [`Self::is_done`],
/// [`Self::allocate`] and [`Self::free`] are called: the others may wait for the kernel, which waits for
/// the host.
pub trait Runtime: Send + Sync {
    /// How many threads of a warp (wavefront) take part in a call.
    fn lanes(&self) -> u32;

    /// Makes the device that of this thread.
    fn attach(&self) -> Result<()>;

    /// A stream that waits for no other.
    fn stream(&self) -> Result<Handle>;

    /// Loads an image, all of it.
    fn load(&self, image: &[u8]) -> Result<Handle>;

    /// A kernel, with all that it needs to be launched; nothing if the image has none of this name.
    fn function(&self, module: Handle, name: &CStr) -> Result<Option<Handle>>;

    /// Whether a kernel takes arguments, if the driver tells.
    fn takes_arguments(&self, function: Handle) -> Result<Option<bool>>;

    /// The kernels that LLVM makes of global constructors and destructors.
    fn constructor_kernels(&self) -> [&'static CStr; 2];

    /// A variable; nothing if the image has none of this name.
    fn global(&self, module: Handle, name: &CStr) -> Result<Option<Global>>;

    /// Memory of the host that the device sees at once, too.
    fn host_memory(&self, size: usize) -> Result<HostMemory>;

    /// Memory of the device.
    fn device_memory(&self, size: usize) -> Result<u64>;

    /// Writes to memory of the device.
    fn write(&self, to: u64, from: &[u8]) -> Result<()>;

    /// Reads from memory of the device.
    fn read(&self, from: u64, to: &mut [u8]) -> Result<()>;

    /// Begins to run a kernel.
    ///
    /// # Safety
    ///
    /// There is a pointer for each parameter of the kernel, to a value of the parameter's size.
    unsafe fn launch(
        &self,
        function: Handle,
        shape: Shape,
        stream: Handle,
        arguments: &mut [*mut c_void],
    ) -> Result<()>;

    /// Whether all is done that was asked of a stream.
    fn is_done(&self, stream: Handle) -> Result<bool>;

    /// Begins to allocate memory of the device; it is there once the stream is done. Nothing if there is
    /// not as much.
    fn allocate(&self, size: u64, stream: Handle) -> Result<Option<u64>>;

    /// Begins to free what was allocated.
    fn free(&self, address: u64, stream: Handle) -> Result<()>;
}

/// Opens a device.
///
/// # Errors
///
/// If there is no driver, it is too old, or there is no such device.
pub fn open(kind: Kind, device: u32) -> Result<Arc<dyn Runtime>> {
    Ok(match kind {
        Kind::Cuda => Arc::new(cuda::Cuda::open(device)?),
        Kind::Hip => Arc::new(hip::Hip::open(device)?),
    })
}

/// What both drivers have in common.
struct Driver {
    /// Its stubs in `GpuStub.toml`.
    library: &'static str,
    /// What its versions are versions of.
    vendor: &'static str,
    /// What to do where there is none.
    missing: &'static str,
    /// What to do where it finds no device.
    hidden: &'static str,
    /// What to do where it is too old.
    newer: &'static str,
}

impl Driver {
    /// Loads the library.
    fn load(&self) -> Result<()> {
        let Err(why) = gpustub::load(self.library) else {
            return Ok(());
        };
        let mut message = format!("no GPU driver found: {why}");
        // Where it was looked for; the first line is the reason again.
        let report = gpustub::report(self.library)
            .unwrap_or_default()
            .to_string();
        for line in report.lines().skip(1) {
            message += &format!("\n{line}");
        }
        Err(Error::new(Code::NoGpu, message).help(self.missing))
    }

    /// Refuses a version that is too old.
    fn at_least(&self, found: (i32, i32), needed: (i32, i32)) -> Result<()> {
        if found >= needed {
            return Ok(());
        }
        let message = format!(
            "the driver is too old: it is for {} {}.{}; {}.{} is the first that allocates memory while a kernel runs",
            self.vendor, found.0, found.1, needed.0, needed.1
        );
        Err(Error::new(Code::NoGpu, message).help(self.newer))
    }

    /// There is no device.
    fn no_device(&self) -> Error {
        let message = format!("the driver finds no {} device", self.vendor);
        Error::new(Code::NoGpu, message).help(self.hidden)
    }

    /// A number of a device that there is.
    fn device(&self, wanted: u32, count: c_int) -> Result<c_int> {
        let device = c_int::try_from(wanted).ok();
        device.filter(|device| *device < count).ok_or_else(|| {
            let message = match count {
                ..=0 => return self.no_device(),
                1 => format!(
                    "there is no {} device {wanted}: the only one is 0",
                    self.vendor
                ),
                _ => format!(
                    "there is no {} device {wanted}: the last one is {}",
                    self.vendor,
                    count - 1
                ),
            };
            Error::new(Code::NoGpu, message)
        })
    }

    /// Refuses a device that cannot allocate memory while a kernel runs.
    fn has_pools(&self, device: c_int, pools: c_int) -> Result<()> {
        if pools != 0 {
            return Ok(());
        }
        let message = format!(
            "{} device {device} has no memory pools, so that nothing can be allocated while a kernel runs",
            self.vendor
        );
        Err(Error::new(Code::NoGpu, message).help("take another one: --device"))
    }
}

/// Of CUDA and of HIP.
const OUT_OF_MEMORY: c_int = 2;

/// The error of a driver that does not load an image, for whatever is wrong with it.
fn refused(error: Error, status: c_int) -> Error {
    match status {
        OUT_OF_MEMORY => error,
        _ => Error {
            code: Code::NotRunnable,
            ..error
        },
    }
}

/// The error of a call of the driver that failed.
fn failed(call: &str, status: c_int, name: *const c_char) -> Error {
    let name = if name.is_null() {
        "an error without a name".into()
    } else {
        // SAFETY: the names that drivers have for their errors are constants.
        unsafe { CStr::from_ptr(name) }.to_string_lossy()
    };
    Error::new(Code::Failed, format!("{call}: {name} ({status})"))
}
