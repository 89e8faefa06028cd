//! Services of LLVM's libc.
//!
//! A program on a device gets only what the host allows: the standard streams of the process, or replacements
//! for them; files below one directory, if any; memory, commands and functions of the host through functions
//! registered here. The library never ends the process: the host decides what an exit does.
//!
//! ```
//! use gpurpc::libc::Services;
//! use gpurpc::server::Handlers;
//!
//! # fn main() -> Result<(), gpurpc::Error> {
//! let mut handlers = Handlers::new();
//! Services::new()
//!     .on_exit(|status| println!("the program exited with {status}"))
//!     .register(&mut handlers)?;
//! # Ok(())
//! # }
//! ```
//!
//! The program's `FILE *` is a handle chosen by the host, never a pointer: a closed or unknown handle behaves as
//! a failed stream. Blocking work runs on threads other than the server's, one for each stream and one for each
//! command or function: a program that waits for input blocks no other call.

#[cfg(feature = "files")]
mod files;
#[cfg(not(feature = "files"))]
#[path = "libc/no_files.rs"]
mod files;
mod growing_bytes;
mod io;
mod lanes;
mod pool;
mod print;
pub mod printf;
mod program;
mod read_buffer;
mod stream;
mod streams;

use std::ffi::CStr;
use std::fmt;
use std::io::{BufReader, Read, Write};
#[cfg(feature = "files")]
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::opcode;
use crate::server::Handlers;
use files::Root;
use io::Io;
use pool::Pool;
use program::{Allocator, HostCall, OnAbort, OnExit, System};
use stream::Backing;
use streams::Streams;

/// Limits of a program.
///
/// ```
/// use gpurpc::libc::{LibcLimits, Services};
///
/// let services = Services::new().limits(LibcLimits { files: 8, ..LibcLimits::default() });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LibcLimits {
    /// Maximum number of files that are open or being opened. Each has a thread.
    pub files: usize,
    /// Maximum number of bytes of one read of a lane. A larger read returns this many and sets the error
    /// indicator of its stream; a longer line is returned in parts. The bytes count as messages
    /// ([`Limits::memory`](crate::server::Limits::memory)).
    pub read: usize,
    /// Maximum number of bytes that all lanes of a warp print with one `printf`. Lanes that would print more print
    /// nothing, and their `printf` returns -1; [`Handlers::on_refusal`] has the reason.
    pub print: usize,
    /// Maximum number of allocations that are not freed: the host remembers each address. Further allocations
    /// return a null pointer.
    pub allocations: usize,
}

impl Default for LibcLimits {
    fn default() -> Self {
        Self {
            files: 64,
            read: 16 << 20,
            print: 1 << 20,
            allocations: 1 << 20,
        }
    }
}

/// Services of LLVM's libc for one program.
///
/// Devices that share handlers share files, so a program whose files no other program may close needs its own
/// services. Files that it leaves open are closed when the handlers are dropped.
///
/// ```
/// use gpurpc::libc::Services;
/// use gpurpc::server::Handlers;
///
/// let mut handlers = Handlers::new();
/// Services::new()
///     .stdin("input of the program\n".as_bytes())
///     .stdout(std::io::sink())
///     .on_exit(|status| println!("exit {status}"))
///     .register(&mut handlers)?;
/// # Ok::<(), gpurpc::Error>(())
/// ```
pub struct Services {
    stdin: Backing,
    stdout: Backing,
    stderr: Backing,
    root: Option<Arc<Root>>,
    on_exit: Option<OnExit>,
    on_abort: Option<OnAbort>,
    memory: Option<Allocator>,
    system: Option<System>,
    host_call: Option<HostCall>,
    limits: LibcLimits,
}

impl Services {
    /// Services with only the standard streams of the process.
    pub fn new() -> Self {
        Self {
            stdin: Backing::Stdin,
            stdout: Backing::Writer(Box::new(std::io::stdout())),
            stderr: Backing::Writer(Box::new(std::io::stderr())),
            root: None,
            on_exit: None,
            on_abort: None,
            memory: None,
            system: None,
            host_call: None,
            limits: LibcLimits::default(),
        }
    }

    /// Sets the source of the program's standard input.
    pub fn stdin(mut self, from: impl Read + Send + 'static) -> Self {
        self.stdin = Backing::Reader(Box::new(BufReader::new(from)));
        self
    }

    /// Sets the destination of the program's standard output. It is flushed after each call.
    pub fn stdout(mut self, to: impl Write + Send + 'static) -> Self {
        self.stdout = Backing::Writer(Box::new(to));
        self
    }

    /// Sets the destination of the program's standard error. It is flushed after each call.
    pub fn stderr(mut self, to: impl Write + Send + 'static) -> Self {
        self.stderr = Backing::Writer(Box::new(to));
        self
    }

    /// Lets the program open, rename and remove files below a directory. Its paths are relative to the
    /// directory; absolute paths, and paths that leave it through `..` or symlinks, do not exist for the program.
    /// Neither do FIFOs, sockets and devices: one could block a thread of the host indefinitely.
    ///
    /// Without a directory, `fopen` returns a null pointer, `remove` and `rename` return -1.
    ///
    /// # Errors
    ///
    /// The error of the system if the directory cannot be opened.
    #[cfg(feature = "files")]
    pub fn files(mut self, root: impl AsRef<Path>) -> std::io::Result<Self> {
        self.root = Some(Arc::new(Root::open(root.as_ref())?));
        Ok(self)
    }

    /// Sets the function that is called with the status of an exit, which is that of the warp's first lane. Each
    /// warp that exits calls it. It must not block, because a thread of the server calls it.
    pub fn on_exit(mut self, act: impl Fn(i32) + Send + Sync + 'static) -> Self {
        self.on_exit = Some(Arc::new(act));
        self
    }

    /// Sets the function that is called for an abort. It must not block, because a thread of the server calls
    /// it.
    pub fn on_abort(mut self, act: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_abort = Some(Arc::new(act));
        self
    }

    /// Sets the function that allocates bytes of the device's memory and returns their address, or 0, and the
    /// function that frees them.
    ///
    /// One thread makes all these calls, in order. Only allocated addresses are freed, each once, for any
    /// addresses that the program passes. Memory that the program does not free stays allocated.
    ///
    /// Without them, `malloc` returns a null pointer.
    pub fn memory(
        mut self,
        alloc: impl Fn(u64) -> u64 + Send + Sync + 'static,
        free: impl Fn(u64) + Send + Sync + 'static,
    ) -> Self {
        self.memory = Some(Allocator::new(alloc, free));
        self
    }

    /// Sets the function that runs a command and returns its status. Any number of threads call it. The command
    /// is untrusted.
    ///
    /// Without it, `system` returns -1.
    pub fn system(mut self, run: impl Fn(&CStr) -> i32 + Send + Sync + 'static) -> Self {
        self.system = Some(Arc::new(run));
        self
    }

    /// Sets the function that calls a function of the host: its argument is the program's number for it, which
    /// is untrusted, and an unaligned copy of the arguments. Any number of threads call it.
    ///
    /// Without it, a host call is dropped.
    pub fn host_call(
        mut self,
        call: impl Fn(u64, &mut [u8]) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.host_call = Some(Arc::new(call));
        self
    }

    /// Sets the limits of the program.
    pub fn limits(mut self, limits: LibcLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Registers handlers for all these opcodes.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateOpcode`] if one of them has a handler. Others may have been registered then. See
    /// [`Self::register_missing`].
    pub fn register(self, handlers: &mut Handlers) -> Result<(), Error> {
        handlers.extend(self.handlers()?)
    }

    /// Registers handlers for those of these opcodes that have none: a handler of the host wins over the service.
    ///
    /// ```
    /// use gpurpc::libc::Services;
    /// use gpurpc::opcode;
    /// use gpurpc::server::Handlers;
    ///
    /// let mut handlers = Handlers::new();
    /// handlers.on_warp(opcode::MALLOC, 1, |warp| {
    ///     warp.lanes().for_each(|lane| warp.set_word(lane, 0, 0x1000));
    /// })?;
    /// Services::new().register_missing(&mut handlers);
    /// # Ok::<(), gpurpc::Error>(())
    /// ```
    pub fn register_missing(self, handlers: &mut Handlers) {
        // Each opcode has one service.
        if let Ok(services) = self.handlers() {
            handlers.extend_missing(services);
        }
    }

    /// Handlers for all opcodes.
    fn handlers(self) -> Result<Handlers, Error> {
        let pool = Arc::new(Pool::default());
        let files = self.limits.files;
        let io = Arc::new(Io {
            streams: Streams::new(self.stdin, self.stdout, self.stderr, files),
            root: self.root,
            pool: Arc::clone(&pool),
            read: self.limits.read,
            print: self.limits.print,
        });
        let mut handlers = Handlers::new();
        handlers.on_warp(opcode::NOOP, 0, |_| {})?;
        program::register_exit(self.on_exit, self.on_abort, &mut handlers)?;
        program::register_memory(self.memory, self.limits.allocations, &mut handlers)?;
        program::register_calls(self.system, self.host_call, &pool, &mut handlers)?;
        print::register(&io, &mut handlers)?;
        io::register(&io, &mut handlers)?;
        Ok(handlers)
    }
}

impl Default for Services {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("files", &self.root.is_some())
            .field("on_exit", &self.on_exit.is_some())
            .field("on_abort", &self.on_abort.is_some())
            .field("memory", &self.memory.is_some())
            .field("system", &self.system.is_some())
            .field("host_call", &self.host_call.is_some())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
