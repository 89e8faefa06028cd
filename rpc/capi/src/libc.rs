//! Services of LLVM's libc, implemented by callbacks of the program.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::{self, Read, Write};
use std::mem::size_of;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gpurpc::libc::{LibcLimits, Services};

use crate::callback::{
    CDevice, Callback, DeviceCallback, DeviceFree, DeviceMalloc, ExitCallback, HostCallCallback,
    ReadCallback, SystemCallback, WriteCallback,
};
use crate::options::{Options, or_default, saturating_usize};
use crate::status::Status;

/// `gpurpc_libc_options_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LibcOptions {
    /// Size of the struct that the caller was compiled with.
    pub struct_size: u64,
    /// Source of standard input.
    pub read: Option<ReadCallback>,
    /// Destination of standard output and standard error.
    pub write: Option<WriteCallback>,
    /// Directory for files.
    pub root: *const c_char,
    /// Called when the program exits.
    pub exit: Option<ExitCallback>,
    /// Called when the program aborts.
    pub abort: Option<DeviceCallback>,
    /// Allocates memory of the device.
    pub malloc: Option<DeviceMalloc>,
    /// Frees memory of the device.
    pub free: Option<DeviceFree>,
    /// Runs a command.
    pub system: Option<SystemCallback>,
    /// Calls a function of the host.
    pub host_call: Option<HostCallCallback>,
    /// Called after the last use of `data` by the device.
    pub release: Option<DeviceCallback>,
    /// Passed to all callbacks.
    pub data: *mut c_void,
    /// Maximum number of open files.
    pub file_limit: u64,
    /// Maximum number of bytes of one read of a lane.
    pub read_limit: u64,
    /// Maximum number of bytes that a warp prints at once.
    pub print_limit: u64,
    /// Maximum number of allocations of the device that are not freed.
    pub allocation_limit: u64,
}

// SAFETY: as declared; a function is any address or null.
unsafe impl Options for LibcOptions {
    const ZERO: Self = Self {
        struct_size: 0,
        read: None,
        write: None,
        root: std::ptr::null(),
        exit: None,
        abort: None,
        malloc: None,
        free: None,
        system: None,
        host_call: None,
        release: None,
        data: std::ptr::null_mut(),
        file_limit: 0,
        read_limit: 0,
        print_limit: 0,
        allocation_limit: 0,
    };
    const MIN_SIZE: usize = size_of::<Self>();
}

/// Validated options, from which each device gets its services.
#[derive(Clone, Debug)]
pub struct Libc {
    functions: Functions,
    root: Option<PathBuf>,
    limits: LibcLimits,
}

#[derive(Clone, Copy, Debug)]
struct Functions {
    read: Option<Callback<ReadCallback>>,
    write: Option<Callback<WriteCallback>>,
    exit: Option<Callback<ExitCallback>>,
    abort: Option<Callback<DeviceCallback>>,
    memory: Option<(Callback<DeviceMalloc>, Callback<DeviceFree>)>,
    system: Option<Callback<SystemCallback>>,
    host_call: Option<Callback<HostCallCallback>>,
    release: Option<Callback<DeviceCallback>>,
}

impl Libc {
    /// Validates options of the program.
    ///
    /// # Safety
    ///
    /// The root is null or a NUL-terminated string.
    pub unsafe fn new(options: &LibcOptions) -> Result<Self, Status> {
        let data = options.data;
        let memory = match (options.malloc, options.free) {
            (Some(malloc), Some(free)) => {
                Some((Callback::new(malloc, data), Callback::new(free, data)))
            }
            (None, None) => None,
            _ => return Err(Status::INVALID_ARGUMENT),
        };
        let root = if options.root.is_null() {
            None
        } else {
            // SAFETY: guaranteed by the caller.
            Some(resolve_root(unsafe { CStr::from_ptr(options.root) })?)
        };
        let default = LibcLimits::default();
        Ok(Self {
            functions: Functions {
                read: options.read.map(|read| Callback::new(read, data)),
                write: options.write.map(|write| Callback::new(write, data)),
                exit: options.exit.map(|exit| Callback::new(exit, data)),
                abort: options.abort.map(|abort| Callback::new(abort, data)),
                memory,
                system: options.system.map(|system| Callback::new(system, data)),
                host_call: options.host_call.map(|call| Callback::new(call, data)),
                release: options.release.map(|release| Callback::new(release, data)),
            },
            root,
            limits: LibcLimits {
                files: or_default(saturating_usize(options.file_limit), default.files),
                read: or_default(saturating_usize(options.read_limit), default.read),
                print: or_default(saturating_usize(options.print_limit), default.print),
                allocations: or_default(
                    saturating_usize(options.allocation_limit),
                    default.allocations,
                ),
            },
        })
    }

    /// Services of one device; files that it leaves open are closed with it. Also returns the use of the program's data,
    /// which lasts as long as the device. `release` is called only if the device was added.
    pub fn services(
        &self,
        device: CDevice,
        is_added: &Arc<AtomicBool>,
    ) -> Result<(Services, Arc<DataUse>), Status> {
        let functions = &self.functions;
        let data_use = Arc::new(DataUse {
            device,
            release: functions.release,
            is_added: Arc::clone(is_added),
        });
        let [input, output, error] = [0, 1, 2].map(|number| StandardStream {
            functions: *functions,
            number,
            data_use: Arc::clone(&data_use),
        });
        let mut services = Services::new().limits(self.limits);
        if functions.read.is_some() {
            services = services.stdin(input);
        }
        if functions.write.is_some() {
            services = services.stdout(output).stderr(error);
        }
        if let Some(root) = &self.root {
            services = services.files(root).map_err(|_| Status::INVALID_ROOT)?;
        }
        if let Some(abort) = functions.abort {
            let data_use = Arc::clone(&data_use);
            services = services.on_abort(move || abort.call(data_use.device));
        }
        if let Some((malloc, free)) = functions.memory {
            let (malloc_data, free_data) = (Arc::clone(&data_use), Arc::clone(&data_use));
            services = services.memory(
                move |size| malloc.malloc(malloc_data.device, size),
                move |address| free.free(free_data.device, address),
            );
        }
        if let Some(system) = functions.system {
            let data_use = Arc::clone(&data_use);
            services = services.system(move |command| system.run(data_use.device, command));
        }
        if let Some(host_call) = functions.host_call {
            let data_use = Arc::clone(&data_use);
            services = services.host_call(move |function, arguments| {
                host_call.call(data_use.device, function, arguments)
            });
        }
        if let Some(exit) = functions.exit {
            let data_use = Arc::clone(&data_use);
            services = services.on_exit(move |status| exit.exit(data_use.device, status));
        }
        Ok((services, data_use))
    }
}

/// Absolute path of a directory.
fn resolve_root(path: &CStr) -> Result<PathBuf, Status> {
    #[cfg(unix)]
    let path = {
        use std::os::unix::ffi::OsStrExt;
        std::ffi::OsStr::from_bytes(path.to_bytes())
    };
    #[cfg(not(unix))]
    let path = path.to_str().map_err(|_| Status::INVALID_ROOT)?;
    let path = std::fs::canonicalize(path).map_err(|_| Status::INVALID_ROOT)?;
    if path.is_dir() {
        Ok(path)
    } else {
        Err(Status::INVALID_ROOT)
    }
}

/// Use of the program's data by a device.
pub struct DataUse {
    device: CDevice,
    release: Option<Callback<DeviceCallback>>,
    /// `release` is not called for a device that could not be added, because the program does not know it.
    is_added: Arc<AtomicBool>,
}

impl Drop for DataUse {
    fn drop(&mut self) {
        match self.release {
            Some(release) if self.is_added.load(Ordering::Acquire) => release.call(self.device),
            _ => {}
        }
    }
}

/// A standard stream implemented by callbacks.
struct StandardStream {
    functions: Functions,
    number: c_int,
    data_use: Arc<DataUse>,
}

impl Read for StandardStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.functions.read.ok_or(io::ErrorKind::Unsupported)?;
        let count = read.read(self.data_use.device, into);
        byte_count(count, into.len())
    }
}

impl Write for StandardStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let write = self.functions.write.ok_or(io::ErrorKind::Unsupported)?;
        let count = write.write(self.data_use.device, self.number, bytes);
        byte_count(count, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Number of bytes that a callback reports, at most `max`. Negative: an error.
fn byte_count(count: i64, max: usize) -> io::Result<usize> {
    let count = usize::try_from(count).map_err(|_| io::ErrorKind::Other)?;
    Ok(count.min(max))
}
