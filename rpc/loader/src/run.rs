//! Sequence of a run: all driver calls that may wait for the device precede the first kernel. While a kernel
//! runs, the driver is only queried whether it has ended.

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gpurpc::{Generation, Layout};

use crate::arguments::CStringArray;
use crate::client::Client;
use crate::constructors::{self, Constructors};
use crate::error::{ABORTED, Code, Error, Result};
use crate::image_lanes;
use crate::kernel::{Arguments, Kernel};
use crate::runtime::{Gpu, Handle, HostMemory, Shape};
use crate::services::{ClientMemory, ExitRequest, Services, allocate, wait};

/// Time for a kernel to end after an exit request, so that the driver can shut down normally.
const EXIT_GRACE: Duration = Duration::from_millis(50);
/// Time to answer the calls of a kernel that has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to answer the calls of a kernel that has failed: some of them never complete.
const DRAIN_TIMEOUT_AFTER_FAILURE: Duration = Duration::from_secs(2);
/// Longest pause between two queries whether a kernel has ended.
const MAX_PAUSE: Duration = Duration::from_millis(1);

/// Program to run, and its options.
#[derive(Debug)]
pub struct Program<'a> {
    /// The image.
    pub image: &'a [u8],
    /// Kernel that replaces those of LLVM's libc.
    pub entry: Option<&'a CStr>,
    /// Number of threads.
    pub shape: Shape,
    /// Arguments, starting with the name.
    pub arguments: CStringArray,
    /// Environment.
    pub environment: CStringArray,
    /// Number of ports; by default the number of threads, within limits.
    pub ports: Option<u32>,
    /// Directory of the files that the program may use.
    pub root: Option<&'a Path>,
    /// Code that runs global constructors; by default detected from the image.
    pub constructors: Option<Constructors>,
    /// Time limit.
    pub timeout: Option<Duration>,
}

/// End of a run, with the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No kernel is running.
    Exited(u8),
    /// A kernel may still be running: the driver would wait for it.
    StillRunning(u8),
}

/// Runs a program to its end.
///
/// # Errors
///
/// If the program cannot be run or exceeds its time limit.
pub fn run(gpu: &Arc<Gpu>, program: &Program<'_>) -> Result<Outcome> {
    prepare(gpu, program)?.run()
}

/// A loaded program with all its memory and services.
struct Prepared {
    gpu: Arc<Gpu>,
    stream: Handle,
    kernels: Vec<Kernel>,
    arguments: Arguments,
    /// Device address of the result, an `int`.
    result: u64,
    services: Option<Services>,
    timeout: Option<Duration>,
}

fn prepare(gpu: &Arc<Gpu>, program: &Program<'_>) -> Result<Prepared> {
    let stream = gpu.create_stream()?;
    let module = gpu.load_module(program.image)?;
    let mut kernels = Kernel::find_all(gpu, module, program.entry, program.shape)?;
    if program.entry.is_none() {
        let requested = program.constructors;
        constructors::prepare(gpu, module, program.image, requested, &mut kernels)?;
    }
    let client = Client::find(gpu, module)?;
    let argv = copy_to_device(gpu, &program.arguments)?;
    let envp = copy_to_device(gpu, &program.environment)?;
    // In device memory, because its threads combine their results there with atomic operations.
    let result = gpu.device_memory(size_of::<i32>())?;
    gpu.write(result, &0_i32.to_ne_bytes())?;
    let services = match client {
        Some(client) => Some(serve(gpu, program, client)?),
        None => None,
    };
    let argc = i32::try_from(program.arguments.len())
        .map_err(|_| Error::new(Code::Failed, "too many arguments"))?;
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

/// Copies strings to memory that the device can read.
fn copy_to_device(gpu: &Gpu, strings: &CStringArray) -> Result<u64> {
    let mut memory = gpu.host_memory(strings.size())?;
    let bytes = strings.to_bytes(memory.device());
    // SAFETY: the device does not use it yet.
    unsafe { memory.fill(&bytes) };
    Ok(memory.device())
}

/// Starts the services of the program's client.
fn serve(gpu: &Arc<Gpu>, program: &Program<'_>, client: Client) -> Result<Services> {
    let generation = client.generation;
    let lanes = image_lanes::lanes(program.image, gpu.lanes())?;
    let ports = match program.ports {
        Some(ports) => ports,
        None => default_ports(program.shape.size(), gpu.resident_warps(lanes), generation)
            .unwrap_or_else(|warning| {
                eprintln!("{warning}");
                generation.max_ports
            }),
    };
    let layout = Layout::with_generation(generation, ports, lanes)
        .map_err(|error| Error::new(Code::Failed, error.to_string()))?;
    let mut memory: HostMemory = gpu.host_memory(layout.size())?;
    // SAFETY: the device does not use it yet.
    unsafe { memory.fill(&[]) };
    // Behind the load of the module, in which HIP's runtime may write a client of its own server (rocm-systems#4720), and
    // before the first launch.
    client.install(gpu, layout, memory.device())?;

    // A separate stream, because allocations on the stream of the kernel would wait for it.
    let stream = gpu.create_stream()?;
    // The first allocation creates the pool of the driver, so it must not be one of the program's.
    if let Some(address) = allocate(gpu, 1, stream)? {
        gpu.free(address, stream)?;
        wait(gpu, stream)?;
    }
    let client_memory = ClientMemory { memory, layout };
    Services::start(gpu, stream, &client_memory, program.root)
}

/// Number of ports for a program, at least 64: one for each thread, as a diverged warp may have one call per
/// thread; at most one for each warp that the device runs at once. Fails with a warning if clients of the
/// generation have fewer.
fn default_ports(
    threads: u64,
    resident_warps: Option<u32>,
    generation: &Generation,
) -> std::result::Result<u32, String> {
    let threads = u32::try_from(threads).unwrap_or(u32::MAX);
    let warps = resident_warps.unwrap_or(u32::MAX).max(64);
    let (ports, max_ports) = (threads.clamp(64, warps), generation.max_ports);
    if ports <= max_ports {
        return Ok(ports);
    }
    let mut warning = format!(
        "warning: up to {ports} warps run at once, and clients of {generation} have {max_ports} ports: the program \
         hangs if all of its ports are held by warps that wait for others"
    );
    let [.., last] = Generation::ALL;
    if max_ports < last.max_ports {
        warning += &format!("\nhelp: clients of {last} have {} ports", last.max_ports);
    }
    Err(warning)
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
                let arguments = self.arguments.for_kernel(kernel, result);
                self.gpu
                    .launch(kernel.function, kernel.shape, self.stream, arguments)?;
            }
            if let Some(request) = self.watch(kernel, deadline)? {
                return Ok(self.exit(request));
            }
            let mut bytes = [0; 4];
            self.gpu.read(self.result, &mut bytes)?;
            result = i32::from_ne_bytes(bytes);
        }
        Ok(Outcome::Exited(exit_code(result)))
    }

    /// Waits until a kernel has ended, or the program requests its exit.
    fn watch(&self, kernel: &Kernel, deadline: Option<Instant>) -> Result<Option<ExitRequest>> {
        let mut pause = Duration::from_micros(10);
        let (ended, timeout) = loop {
            match self.gpu.is_done(self.stream) {
                Ok(false) => {}
                Ok(true) => break (Ok(None), DRAIN_TIMEOUT),
                Err(error) => break (Err(kernel.failure(error)), DRAIN_TIMEOUT_AFTER_FAILURE),
            }
            if let Some(request) = self.wait_for_exit(pause) {
                return Ok(Some(request));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(self.timed_out(kernel));
            }
            pause = (pause * 2).min(MAX_PAUSE);
        };
        let Some(services) = &self.services else {
            return ended;
        };
        // The kernel may have made a call, such as exit, without waiting for the answer, and may end with a trap
        // afterwards.
        let drain_deadline = Instant::now() + timeout;
        let drained = services
            .drain(deadline.map_or(drain_deadline, |deadline| deadline.min(drain_deadline)));
        if !drained && ended.is_ok() {
            let (name, open) = (kernel.name(), calls(services.open_calls()));
            eprintln!("warning: `{name}` has ended with {open} open, which are abandoned");
        }
        match services.wait_for_exit(Duration::ZERO) {
            Some(request) => Ok(Some(request)),
            None => ended,
        }
    }

    /// Waits between two queries of the driver. A function in the stream (`cuLaunchHostFunc`) could report that a
    /// kernel has ended, but not that it has failed: such functions are not called then.
    fn wait_for_exit(&self, pause: Duration) -> Option<ExitRequest> {
        match &self.services {
            Some(services) => services.wait_for_exit(pause),
            // Without services there are no exit requests.
            None => {
                thread::sleep(pause);
                None
            }
        }
    }

    fn timed_out(&self, kernel: &Kernel) -> Error {
        let open = match &self.services {
            Some(services) => format!(", with {} of the host open", calls(services.open_calls())),
            None => String::new(),
        };
        let seconds = self.timeout.unwrap_or_default().as_secs_f64();
        let name = kernel.name();
        let message = format!("`{name}` was still running after {seconds} s{open}");
        let help = "no driver can cancel a kernel: it ends with this process; --timeout gives it more time";
        Error::new(Code::TimedOut, message).help(help)
    }

    /// Ends the run at the request of the program, regardless of its other threads.
    fn exit(&self, request: ExitRequest) -> Outcome {
        let code = match request {
            ExitRequest::Exit(status) => exit_code(status),
            ExitRequest::Abort => ABORTED,
        };
        let deadline = Instant::now() + EXIT_GRACE;
        while !self.gpu.is_done(self.stream).unwrap_or(false) {
            if Instant::now() >= deadline {
                return Outcome::StillRunning(code);
            }
            thread::yield_now();
        }
        Outcome::Exited(code)
    }
}

/// Exit code of a process for a status.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_limited_by_the_device_and_the_client() {
        let (old, new) = (Generation::LLVM_20, Generation::LLVM_23);
        for (threads, warps, generation, expected) in [
            (1, Some(9728), old, Ok(64)),
            (1024, Some(9728), old, Ok(1024)),
            (1 << 20, Some(2048), old, Ok(2048)),
            (1 << 40, Some(9728), new, Ok(9728)),
            (1024, None, old, Ok(1024)),
            (1024, Some(8), old, Ok(64)),
            (
                1 << 20,
                Some(9728),
                old,
                Err("9728 warps run at once, and clients of LLVM 20 to 22"),
            ),
            (
                1 << 20,
                Some(20000),
                new,
                Err("20000 warps run at once, and clients of LLVM 23"),
            ),
            (
                1 << 40,
                None,
                old,
                Err("help: clients of LLVM 23 have 16384 ports"),
            ),
        ] {
            match (default_ports(threads, warps, generation), expected) {
                (Err(warning), Err(part)) => assert!(warning.contains(part), "{warning}"),
                (ports, expected) => assert_eq!(ports, expected.map_err(str::to_owned)),
            }
        }
    }
}
