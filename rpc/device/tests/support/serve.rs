// The host of device code in tests and examples. Included, so that examples of the documentation have it, too.

use std::fmt::Debug;
use std::io::{self, Write};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use gpurpc::libc::Services;
use gpurpc::memory::Region;
use gpurpc::server::{Device, Doorbell, Handlers, IdlePolicy, Limits, Server};
use gpurpc::{Generation, Layout};
use gpurpc_device::host;

/// Data that the host has received.
#[derive(Debug, Default)]
#[allow(dead_code)]
pub struct Served {
    pub stdout: String,
    pub stderr: String,
    /// Statuses of exits; `None` is an abort.
    pub ends: Vec<Option<i32>>,
    /// Event in the mailbox of the doorbell, 0 if it did not ring. Before LLVM 23 there is none.
    pub event: u64,
}

const EVENT: u32 = 7;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Stops the server also if the program panics.
struct Stop<'s>(&'s Server);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        } else {
            self.0.drain();
        }
    }
}

/// Runs a program whose warps have `lanes` lanes, with these services, and handlers of its own.
///
/// # Panics
///
/// If the program does, or if a call is dropped or refused.
#[allow(dead_code)]
pub fn run<T>(
    lanes: u32,
    services: Services,
    mut handlers: Handlers,
    program: impl FnOnce() -> T,
) -> (T, Served) {
    let (stdout, stderr) = (Sink::default(), Sink::default());
    let ends = Arc::new(Mutex::new(Vec::new()));
    let faults = Arc::new(Mutex::new(Vec::new()));
    let (exits, aborts) = (Arc::clone(&ends), Arc::clone(&ends));
    let services = services.stdout(stdout.clone()).stderr(stderr.clone());
    let services = services.on_exit(move |status| exits.lock().unwrap().push(Some(status)));
    let services = services.on_abort(move || aborts.lock().unwrap().push(None));
    services.register(&mut handlers).unwrap();
    let (dropped, refused) = (Arc::clone(&faults), Arc::clone(&faults));
    handlers.on_fault(move |call| dropped.lock().unwrap().push(format!("{call:?}")));
    handlers.on_refusal(move |call| refused.lock().unwrap().push(format!("{call:?}")));

    let generation = Generation::find(c"__llvm_rpc_client", host::CLIENT_SIZE).unwrap();
    let layout = Layout::with_generation(generation, 16, lanes).unwrap();
    let memory = Region::zeroed(layout).unwrap();
    let client = layout.client(memory.start().as_ptr() as u64);
    let server = Server::new(IdlePolicy::default());
    let handlers = Arc::new(handlers);
    let mut device = Device::new(memory, handlers, Limits::default());
    // Counter of open calls, and mailbox.
    let signal: &'static [AtomicU64; 2] = Box::leak(Box::default());
    if generation.has_doorbell() {
        let [value, mailbox] = signal.each_ref();
        let [value, mailbox] = [value, mailbox].map(|word| NonNull::new(word.as_ptr()).unwrap());
        // SAFETY: the signal is never freed, and is only accessed atomically.
        let doorbell = unsafe { Doorbell::new(value, mailbox, EVENT) };
        device = device.with_doorbell(doorbell).unwrap();
    }
    server.add_device(device);
    // SAFETY: the server keeps the memory, and the program's threads have ended before the connection is dropped.
    let connection = unsafe { host::connect(client.first_chunk().unwrap()) };
    let result = thread::scope(|scope| {
        scope.spawn(|| server.serve());
        let _stop = Stop(&server);
        program()
    });
    drop(connection);
    assert_eq!(*faults.lock().unwrap(), Vec::<String>::new());
    let [open, event] = signal.each_ref().map(|word| word.load(Ordering::Acquire));
    assert_eq!(open, 0, "calls that the doorbell counts");
    let ends = ends.lock().unwrap().clone();
    let (stdout, stderr) = (stdout.text(), stderr.text());
    let served = Served {
        stdout,
        stderr,
        ends,
        event,
    };
    (result, served)
}

/// Result of an example.
pub trait Outcome {
    fn check(self);
}

impl Outcome for () {
    fn check(self) {}
}

impl<E: Debug> Outcome for Result<(), E> {
    fn check(self) {
        self.unwrap();
    }
}

fn services() -> Services {
    Services::new().stdin("a line\nanother one\n".as_bytes())
}

/// Serves an opcode that changes the words of each lane.
#[allow(dead_code)]
pub fn serve<T: Outcome>(
    opcode: u32,
    answer: impl Fn(&mut [u64; 8]) + Send + Sync + 'static,
    program: impl FnOnce() -> T,
) {
    let mut handlers = Handlers::new();
    let serve = move |warp: &mut gpurpc::server::Warp<'_>| {
        for lane in warp.lanes() {
            let mut words = *warp.input().get(lane);
            answer(&mut words);
            for (word, value) in words.into_iter().enumerate() {
                warp.set_word(lane, word, value);
            }
        }
    };
    handlers.on_warp(opcode, 8, serve).unwrap();
    run(1, services(), handlers, program).0.check();
}

/// Runs an example in a thread, and returns what it prints.
#[allow(dead_code)]
pub fn stdout<T: Outcome>(program: impl FnOnce() -> T) -> String {
    let (result, served) = run(1, services(), Handlers::new(), program);
    result.check();
    served.stdout
}

/// The same for the standard error.
#[allow(dead_code)]
pub fn stderr<T: Outcome>(program: impl FnOnce() -> T) -> String {
    let (result, served) = run(1, services(), Handlers::new(), program);
    result.check();
    served.stderr
}

/// Runs an example that launches warps.
#[allow(dead_code)]
pub fn stdout_of_warps(lanes: u32, program: impl FnOnce()) -> String {
    run(lanes, services(), Handlers::new(), program).1.stdout
}

/// Runs an example that uses files.
#[allow(dead_code)]
pub fn files<T>(program: impl FnOnce() -> T) -> T {
    let root = tempfile::tempdir().unwrap();
    let services = services().files(root.path()).unwrap();
    run(1, services, Handlers::new(), program).0
}
