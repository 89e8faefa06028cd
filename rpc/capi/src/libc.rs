//! The services of LLVM's libc, with functions of the program for what they may do.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::{self, Read, Write};
use std::mem::size_of;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gpurpc::host::{Limits, Services};
use gpurpc::opcode;

use crate::callback::{
    CDevice, Callback, DeviceCallback, DeviceFree, DeviceMalloc, ExitCallback, HostCallCallback,
    ReadCallback, SystemCallback, WriteCallback,
};
use crate::options::{Options, given};
use crate::status::Status;

/// `gpurpc_libc_options_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LibcOptions {
    /// Its bytes where the caller was compiled.
    pub struct_size: u64,
    /// Gives standard input.
    pub read: Option<ReadCallback>,
    /// Takes standard output.
    pub write: Option<WriteCallback>,
    /// The folder for files.
    pub root: *const c_char,
    /// The program has ended.
    pub exit: Option<ExitCallback>,
    /// The program has failed.
    pub abort: Option<DeviceCallback>,
    /// Allocates memory of the device.
    pub malloc: Option<DeviceMalloc>,
    /// Frees it.
    pub free: Option<DeviceFree>,
    /// Runs a command.
    pub system: Option<SystemCallback>,
    /// Calls a function of the host.
    pub host_call: Option<HostCallCallback>,
    /// Nothing of the device uses `data` any more.
    pub end: Option<DeviceCallback>,
    /// For all of them.
    pub data: *mut c_void,
    /// Files that are open.
    pub file_limit: u64,
    /// Bytes that a lane reads at once.
    pub read_limit: u64,
    /// Bytes that a warp prints at once.
    pub print_limit: u64,
    /// Allocations of the device that were not freed.
    pub allocation_limit: u64,
}

// SAFETY: as declared; a function is any address or none.
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
        end: None,
        data: std::ptr::null_mut(),
        file_limit: 0,
        read_limit: 0,
        print_limit: 0,
        allocation_limit: 0,
    };
    const FIRST: usize = size_of::<Self>();
}

/// What devices get of it.
#[derive(Clone, Debug)]
pub struct Libc {
    functions: Functions,
    root: Option<PathBuf>,
    limits: Limits,
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
    end: Option<Callback<DeviceCallback>>,
}

/// Its opcodes.
pub const OPCODES: RangeInclusive<u32> = opcode::NOOP..=opcode::SYSTEM;

impl Libc {
    /// As the program wants it.
    ///
    /// # Safety
    ///
    /// The folder is null or a string that ends with zero.
    pub unsafe fn new(options: &LibcOptions) -> Result<Self, Status> {
        let data = options.data;
        let memory = match (options.malloc, options.free) {
            (Some(malloc), Some(free)) => {
                Some((Callback::new(malloc, data), Callback::new(free, data)))
            }
            (None, None) => None,
            _ => return Err(Status::INVALID_ARGUMENT),
        };
        let root = match options.root.is_null() {
            true => None,
            // SAFETY: as the caller promises.
            false => Some(folder(unsafe { CStr::from_ptr(options.root) })?),
        };
        let default = Limits::default();
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Ok(Self {
            functions: Functions {
                read: options.read.map(|read| Callback::new(read, data)),
                write: options.write.map(|write| Callback::new(write, data)),
                exit: options.exit.map(|exit| Callback::new(exit, data)),
                abort: options.abort.map(|abort| Callback::new(abort, data)),
                memory,
                system: options.system.map(|system| Callback::new(system, data)),
                host_call: options.host_call.map(|call| Callback::new(call, data)),
                end: options.end.map(|end| Callback::new(end, data)),
            },
            root,
            limits: Limits {
                files: given(number(options.file_limit), default.files),
                read: given(number(options.read_limit), default.read),
                print: given(number(options.print_limit), default.print),
                allocations: given(number(options.allocation_limit), default.allocations),
            },
        })
    }

    /// Those of one device: what it leaves open is closed with it. Its end is told if it was added.
    pub fn services(
        &self,
        device: CDevice,
        is_added: &Arc<AtomicBool>,
    ) -> Result<Services, Status> {
        let functions = &self.functions;
        let uses = Arc::new(Uses {
            device,
            end: functions.end,
            is_added: Arc::clone(is_added),
        });
        let stream = |stream| Stream {
            functions: *functions,
            stream,
            uses: Arc::clone(&uses),
        };
        let mut services = Services::new().limits(self.limits);
        if functions.read.is_some() {
            services = services.stdin(stream(0));
        }
        if functions.write.is_some() {
            services = services.stdout(stream(1)).stderr(stream(2));
        }
        if let Some(root) = &self.root {
            services = services.files(root).map_err(|_| Status::INVALID_ROOT)?;
        }
        if let Some(abort) = functions.abort {
            let uses = Arc::clone(&uses);
            services = services.on_abort(move || abort.of(uses.device));
        }
        if let Some((malloc, free)) = functions.memory {
            let (one, other) = (Arc::clone(&uses), Arc::clone(&uses));
            services = services.memory(
                move |size| malloc.malloc(one.device, size),
                move |address| free.free_of(other.device, address),
            );
        }
        if let Some(system) = functions.system {
            let uses = Arc::clone(&uses);
            services = services.system(move |command| system.run(uses.device, command));
        }
        if let Some(host_call) = functions.host_call {
            let uses = Arc::clone(&uses);
            let call = move |function, arguments: &mut [u8]| {
                host_call.call_host(uses.device, function, arguments)
            };
            services = services.host_call(call);
        }
        // There in any case: the end is told with the device's, not before.
        let exit = functions.exit;
        Ok(services.on_exit(move |status| {
            if let Some(exit) = exit {
                exit.exit(uses.device, status);
            }
        }))
    }
}

/// A folder, wherever the process is later.
fn folder(path: &CStr) -> Result<PathBuf, Status> {
    #[cfg(unix)]
    let path = {
        use std::os::unix::ffi::OsStrExt;
        std::ffi::OsStr::from_bytes(path.to_bytes())
    };
    #[cfg(not(unix))]
    let path = path.to_str().map_err(|_| Status::INVALID_ROOT)?;
    let path = std::fs::canonicalize(path).map_err(|_| Status::INVALID_ROOT)?;
    match path.is_dir() {
        true => Ok(path),
        false => Err(Status::INVALID_ROOT),
    }
}

/// The data of the program is in use, by a device.
struct Uses {
    device: CDevice,
    end: Option<Callback<DeviceCallback>>,
    /// A device that could not be added has no end: the program knows nothing of it.
    is_added: Arc<AtomicBool>,
}

impl Drop for Uses {
    fn drop(&mut self) {
        match self.end {
            Some(end) if self.is_added.load(Ordering::Acquire) => end.of(self.device),
            _ => {}
        }
    }
}

/// A standard stream that the program gives or takes.
struct Stream {
    functions: Functions,
    stream: c_int,
    uses: Arc<Uses>,
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.functions.read.ok_or(io::ErrorKind::Unsupported)?;
        let count = read.read(self.uses.device, into);
        counted(count, into.len())
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let write = self.functions.write.ok_or(io::ErrorKind::Unsupported)?;
        let count = write.write(self.uses.device, self.stream, bytes);
        counted(count, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// No function has done more than it was asked for.
fn counted(count: i64, most: usize) -> io::Result<usize> {
    let count = usize::try_from(count).map_err(|_| io::ErrorKind::Other)?;
    Ok(count.min(most))
}
