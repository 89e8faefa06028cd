//! The order of a run, whoever the driver is: all that may wait for the device comes before the first
//! kernel, and while one runs there are only questions whether it has ended.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gpurpc::server::Opcodes;
use gpurpc::{Layout, MAX_PORTS};

use crate::arguments::Vector;
use crate::client::Client;
use crate::constructors::{self, Constructors};
use crate::error::{ABORTED, Code, Error, Result};
use crate::kernel::{Arguments, Kernel};
use crate::runtime::{Gpu, Handle, HostMemory, Shape};
use crate::services::{End, Services, Wires, allocate, wait};

/// How long a kernel that has said its end is waited for, so that the driver can end as usual.
const GRACE: Duration = Duration::from_millis(50);
/// How long what a kernel had asked for is waited for when it has ended.
const SETTLING: Duration = Duration::from_secs(10);
/// The same of one that has failed: some of its calls come to no end.
const SETTLING_OF_FAILED: Duration = Duration::from_secs(2);
/// The longest pause between two questions whether a kernel has ended.
const PAUSE: Duration = Duration::from_millis(1);

/// What is to be run, and how.
#[derive(Debug)]
pub struct Program<'a> {
    /// The image.
    pub image: &'a [u8],
    /// A kernel to be run in place of those of LLVM's libc.
    pub entry: Option<&'a CStr>,
    /// How many threads run it.
    pub shape: Shape,
    /// Its arguments, the name first.
    pub arguments: Vector,
    /// Its environment.
    pub environment: Vector,
    /// How many calls may be under way; by default as many as there are threads, within limits.
    pub ports: Option<u32>,
    /// The folder whose files it may use.
    pub root: Option<&'a Path>,
    /// How its opcodes are written; by default what its client says.
    pub opcodes: Option<Opcodes>,
    /// Who runs its global constructors; by default what the image says.
    pub constructors: Option<Constructors>,
    /// How long it may run.
    pub timeout: Option<Duration>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With this exit code, and nothing runs any more.
    Ended(u8),
    /// With this exit code, and a kernel may still be running: the driver would wait for it.
    Left(u8),
}

/// Runs a program to its end.
///
/// # Errors
///
/// If it cannot be run, or comes to no end.
pub fn run(gpu: &Arc<Gpu>, program: &Program<'_>) -> Result<Outcome> {
    prepare(gpu, program)?.run()
}

/// A program for which everything is there that it needs.
struct Prepared {
    gpu: Arc<Gpu>,
    stream: Handle,
    kernels: Vec<Kernel>,
    arguments: Arguments,
    /// Where the result lies on the device, an `int`.
    result: u64,
    services: Option<Services>,
    timeout: Option<Duration>,
}

fn prepare(gpu: &Arc<Gpu>, program: &Program<'_>) -> Result<Prepared> {
    let stream = gpu.create_stream()?;
    let module = gpu.load_module(program.image)?;
    let mut kernels = Kernel::all(gpu, module, program.entry, program.shape)?;
    if program.entry.is_none() {
        let told = program.constructors;
        constructors::add(gpu, module, program.image, told, &mut kernels)?;
    }
    let client = Client::find(gpu, module)?;
    let argv = visible(gpu, &program.arguments)?;
    let envp = visible(gpu, &program.environment)?;
    // Of the device: its threads put their results together there by atomic operations.
    let result = gpu.device_memory(size_of::<i32>())?;
    gpu.write(result, &0_i32.to_ne_bytes())?;
    let services = match client {
        Some(client) => Some(serve(gpu, program, client)?),
        None => None,
    };
    let argc = i32::try_from(program.arguments.len());
    let argc = argc.map_err(|_| Error::new(Code::Failed, "too many arguments"))?;
    Ok(Prepared {
        gpu: Arc::clone(gpu),
        stream,
        kernels,
        arguments: Arguments::new(argc, argv, envp, result),
        result,
        services,
        timeout: program.timeout,
    })
}

/// Puts texts where the device can read them.
fn visible(gpu: &Gpu, texts: &Vector) -> Result<u64> {
    let mut memory = gpu.host_memory(texts.size())?;
    let bytes = texts.at(memory.device());
    // SAFETY: the device knows nothing of it yet.
    unsafe { memory.fill(&bytes) };
    Ok(memory.device())
}

/// Begins to serve what the program's client asks for.
fn serve(gpu: &Arc<Gpu>, program: &Program<'_>, client: Client) -> Result<Services> {
    // A warp that diverges has a call for each of its threads.
    let ports = program.ports.unwrap_or_else(|| {
        let threads = u32::try_from(program.shape.size()).unwrap_or(MAX_PORTS);
        threads.clamp(64, MAX_PORTS)
    });
    let layout = Layout::new(ports, gpu.lanes());
    let layout = layout.map_err(|error| Error::new(Code::Failed, error.to_string()))?;
    let mut memory: HostMemory = gpu.host_memory(layout.size())?;
    // SAFETY: the device knows nothing of it yet.
    unsafe { memory.fill(&[]) };
    client.install(gpu, layout, memory.device())?;

    // Its own: memory would wait for the kernel that waits for it.
    let stream = gpu.create_stream()?;
    // The driver makes its pool by the first allocation, which must not be one of the program's.
    if let Some(address) = allocate(gpu, 1, stream)? {
        gpu.free(address, stream)?;
        wait(gpu, stream)?;
    }
    let opcodes = program.opcodes.unwrap_or(client.opcodes());
    let wires = Wires {
        memory,
        layout,
        opcodes,
    };
    Services::start(gpu, stream, &wires, program.root)
}

impl Prepared {
    fn run(mut self) -> Result<Outcome> {
        let deadline = self
            .timeout
            .and_then(|time| Instant::now().checked_add(time));
        let mut result = 0;
        for kernel in &self.kernels {
            // SAFETY: `Arguments` has a value for each parameter of any kernel.
            unsafe {
                let arguments = self.arguments.of(kernel, result);
                self.gpu
                    .launch(kernel.function, kernel.shape, self.stream, arguments)?;
            }
            if let Some(end) = self.watch(kernel, deadline)? {
                return Ok(self.leave(end));
            }
            let mut bytes = [0; 4];
            self.gpu.read(self.result, &mut bytes)?;
            result = i32::from_ne_bytes(bytes);
        }
        Ok(Outcome::Ended(exit_code(result)))
    }

    /// Waits until a kernel has ended, or the program says its end.
    fn watch(&self, kernel: &Kernel, deadline: Option<Instant>) -> Result<Option<End>> {
        let mut pause = Duration::from_micros(10);
        let (ended, settling) = loop {
            match self.gpu.is_done(self.stream) {
                Ok(false) => {}
                Ok(true) => break (Ok(None), SETTLING),
                Err(error) => break (Err(kernel.failed(error)), SETTLING_OF_FAILED),
            }
            if let Some(end) = self.end_within(pause) {
                return Ok(Some(end));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(self.timed_out(kernel));
            }
            pause = (pause * 2).min(PAUSE);
        };
        let Some(services) = &self.services else {
            return ended;
        };
        // It may have asked for something, such as its exit, without waiting for an answer; and a trap may be
        // how it ends then.
        let until = Instant::now() + settling;
        let settled = services.settle(deadline.map_or(until, |deadline| deadline.min(until)));
        if !settled && ended.is_ok() {
            let (name, open) = (kernel.name(), calls(services.open()));
            eprintln!("warning: `{name}` has ended with {open} open, which are not waited for");
        }
        match services.end_within(Duration::ZERO) {
            Some(end) => Ok(Some(end)),
            None => ended,
        }
    }

    /// Between two questions to the driver. It could tell by a function in the stream (`cuLaunchHostFunc`) that
    /// a kernel has ended, but not that one has failed: those functions are not called then.
    fn end_within(&self, pause: Duration) -> Option<End> {
        match &self.services {
            Some(services) => services.end_within(pause),
            // Nobody can say its end.
            None => {
                thread::sleep(pause);
                None
            }
        }
    }

    fn timed_out(&self, kernel: &Kernel) -> Error {
        let open = match &self.services {
            Some(services) => format!(", with {} of the host open", calls(services.open())),
            None => String::new(),
        };
        let seconds = self.timeout.unwrap_or_default().as_secs_f64();
        let name = kernel.name();
        let message = format!("`{name}` was still running after {seconds} s{open}");
        let help = "no driver can cancel a kernel: it ends with this process; --timeout gives it more time";
        Error::new(Code::TimedOut, message).help(help)
    }

    /// Ends the run of a program that has said so, whatever its other threads do.
    fn leave(&self, end: End) -> Outcome {
        let code = match end {
            End::Exit(status) => exit_code(status),
            End::Abort => ABORTED,
        };
        let until = Instant::now() + GRACE;
        while !self.gpu.is_done(self.stream).unwrap_or(false) {
            if Instant::now() >= until {
                return Outcome::Left(code);
            }
            thread::yield_now();
        }
        Outcome::Ended(code)
    }
}

/// What of a status a process can tell.
fn exit_code(status: i32) -> u8 {
    let [low, ..] = status.to_le_bytes();
    low
}

fn calls(open: usize) -> String {
    match open {
        1 => "1 call".to_owned(),
        _ => format!("{open} calls"),
    }
}

/// A text as C has it.
pub fn c_string(text: &std::ffi::OsStr) -> Result<CString> {
    CString::new(text.as_encoded_bytes()).map_err(|_| {
        let text = text.to_string_lossy();
        Error::new(Code::Failed, format!("{text:?} has a NUL in it"))
    })
}
