//! The services of LLVM's libc.
//!
//! A program on a device gets what the host lets it have, and no more: the standard streams of the
//! process, unless there are others for them; files below one folder, if there is one; memory, commands
//! and functions of the host through functions that are given here. The library never ends the process:
//! what an exit is, the host says.
//!
//! ```
//! use gpurpc::host::Services;
//! use gpurpc::server::Handlers;
//!
//! # fn main() -> Result<(), gpurpc::Error> {
//! let mut handlers = Handlers::new();
//! Services::new()
//!     .on_exit(|status| println!("the program has ended with {status}"))
//!     .register(&mut handlers)?;
//! # Ok(())
//! # }
//! ```
//!
//! What the program has in place of a `FILE *` is a number that the host gave out, never a pointer: one
//! that was closed, or that was never there, is as a stream that has failed. All that may block is done
//! by threads beside the server, one for each stream and one for each command or function: a program that
//! waits for input keeps no other call waiting.

mod data;
#[cfg(feature = "files")]
mod files;
#[cfg(not(feature = "files"))]
#[path = "no_files.rs"]
mod files;
mod io;
mod lanes;
mod pool;
mod print;
pub mod printf;
mod program;
mod stream;
mod streams;

use std::ffi::CStr;
use std::fmt;
use std::io::{BufReader, Read, Write};
#[cfg(feature = "files")]
use std::path::Path;
use std::sync::Arc;

use crate::server::Handlers;
use crate::{Error, opcode};
use files::Root;
use io::Io;
use pool::Pool;
use program::{Allocator, HostCall, OnAbort, OnExit, System};
use stream::Backing;
use streams::Streams;

/// What a program may have at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Files that are open, or being opened, at the same time. Each has a thread.
    pub files: usize,
    /// Bytes that a lane reads at once. A program that asks for more gets as many, and its stream has an
    /// error; a longer line comes in parts. They count as messages do
    /// ([`server::Limits::memory`](crate::server::Limits::memory)).
    pub read: usize,
    /// Bytes that all lanes of a warp print by one `printf`; those of a call that would print more are not
    /// printed, and its port is not served any more.
    pub print: usize,
    /// What the program has allocated and not freed, in numbers: the host remembers each address. More gives
    /// a null pointer.
    pub allocations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files: 64,
            read: 16 << 20,
            print: 1 << 20,
            allocations: 1 << 20,
        }
    }
}

/// The services of LLVM's libc, for one program.
///
/// Devices that share handlers share files: a program for which nobody else closes files has services
/// of its own. Files that it left open are closed when the handlers are dropped.
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
    limits: Limits,
}

impl Services {
    /// The process's standard streams, and nothing else.
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
            limits: Limits::default(),
        }
    }

    /// What the program reads from its standard input.
    pub fn stdin(mut self, from: impl Read + Send + 'static) -> Self {
        self.stdin = Backing::Reader(Box::new(BufReader::new(from)));
        self
    }

    /// What the program's standard output goes to. It is flushed after each call.
    pub fn stdout(mut self, to: impl Write + Send + 'static) -> Self {
        self.stdout = Backing::Writer(Box::new(to));
        self
    }

    /// What the program's standard error output goes to. It is flushed after each call.
    pub fn stderr(mut self, to: impl Write + Send + 'static) -> Self {
        self.stderr = Backing::Writer(Box::new(to));
        self
    }

    /// Lets the program open, rename and remove files below a folder. Its paths are relative to the folder;
    /// absolute ones, and those that lead out of it by `..` or symlinks, are not there for the program.
    ///
    /// Without a folder, `fopen` gives a null pointer, `remove` and `rename` -1.
    ///
    /// # Errors
    ///
    /// If the folder cannot be opened.
    #[cfg(feature = "files")]
    pub fn files(mut self, root: impl AsRef<Path>) -> std::io::Result<Self> {
        self.root = Some(Arc::new(Root::open(root.as_ref())?));
        Ok(self)
    }

    /// What an exit does, with the program's status: the one that the first lane gives. Each warp that
    /// exits calls it. It must not wait for anything: a thread of the server calls it.
    pub fn on_exit(mut self, act: impl Fn(i32) + Send + Sync + 'static) -> Self {
        self.on_exit = Some(Arc::new(act));
        self
    }

    /// What an abort does. It must not wait for anything: a thread of the server calls it.
    pub fn on_abort(mut self, act: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_abort = Some(Arc::new(act));
        self
    }

    /// What allocates bytes of the device's memory and gives their address, or 0; and what frees them.
    ///
    /// One thread makes all these calls, one after the other. Nothing is freed but what was allocated, and
    /// that once, whatever the program says. What it does not free stays.
    ///
    /// Without them, `malloc` gives a null pointer.
    pub fn memory(
        mut self,
        alloc: impl Fn(u64) -> u64 + Send + Sync + 'static,
        free: impl Fn(u64) + Send + Sync + 'static,
    ) -> Self {
        self.memory = Some(Allocator::new(alloc, free));
        self
    }

    /// What runs a command and gives its status. Any number of threads call it. The command is whatever the
    /// program says.
    ///
    /// Without it, `system` gives -1.
    pub fn system(mut self, run: impl Fn(&CStr) -> i32 + Send + Sync + 'static) -> Self {
        self.system = Some(Arc::new(run));
        self
    }

    /// What calls a function of the host: by what the program has for it, which may be any number, with a
    /// copy of the arguments, which is aligned as bytes are. Any number of threads call it.
    ///
    /// Without it, the port of a program that tries is not served any more.
    pub fn host_call(
        mut self,
        call: impl Fn(u64, &mut [u8]) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.host_call = Some(Arc::new(call));
        self
    }

    /// What the program may have at most.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves all these opcodes.
    ///
    /// # Errors
    ///
    /// If one of them has a handler. Others may have been added then.
    pub fn register(self, handlers: &mut Handlers) -> Result<(), Error> {
        let pool = Arc::new(Pool::default());
        let files = self.limits.files;
        let io = Arc::new(Io {
            streams: Streams::new(self.stdin, self.stdout, self.stderr, files),
            root: self.root,
            pool: Arc::clone(&pool),
            read: self.limits.read,
            print: self.limits.print,
        });
        handlers.reply(opcode::NOOP, |_| {})?;
        program::ends(self.on_exit, self.on_abort, handlers)?;
        program::memory(self.memory, self.limits.allocations, handlers)?;
        program::calls(self.system, self.host_call, &pool, handlers)?;
        print::register(&io, handlers)?;
        io::register(&io, handlers)
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
