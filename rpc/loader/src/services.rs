//! Services for a running program.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gpurpc::libc;
use gpurpc::memory::{Region, SharedMemory};
use gpurpc::server::{Device, DroppedCall, Handlers, IdlePolicy, Limits, RefusedCall, Server};
use gpurpc::{Layout, opcode};

use crate::error::{Code, Error, Result};
use crate::runtime::{Gpu, Handle, HostMemory};
use crate::test_services;

/// Pause between two polls for calls that other threads answer.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Request of a program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitRequest {
    /// `exit` with this status.
    Exit(i32),
    /// `abort`.
    Abort,
}

/// Running services and their thread.
pub struct Services {
    server: Arc<Server>,
    exit_requests: Receiver<ExitRequest>,
    serving: Option<JoinHandle<()>>,
}

/// Stops the thread before a normal exit, in which the driver releases the memory.
impl Drop for Services {
    fn drop(&mut self) {
        self.server.stop();
        if let Some(serving) = self.serving.take() {
            // A panic of the thread needs no further handling.
            let _ = serving.join();
        }
    }
}

/// Memory of a client.
pub struct ClientMemory {
    /// Memory that both sides access.
    pub memory: HostMemory,
    /// Layout of the memory.
    pub layout: Layout,
}

impl Services {
    /// Starts to serve a program. Memory of the device is allocated on `stream`; files are those below `root`.
    pub fn start(
        gpu: &Arc<Gpu>,
        stream: Handle,
        client: &ClientMemory,
        root: Option<&Path>,
    ) -> Result<Self> {
        let (sender, exit_requests) = channel();
        let handlers = handlers(gpu, stream, root, sender)?;
        let ClientMemory { memory, layout } = *client;
        // SAFETY: the memory is never freed, and no other code of the host accesses it from now on.
        let shared = unsafe { SharedMemory::new(memory.host(), memory.size(), layout) }
            .map_err(|error| Error::new(Code::Failed, error.to_string()))?;
        let region = Region::new(shared, |_| {});
        let server = Arc::new(Server::new(IdlePolicy::default()));
        server.add_device(Device::new(region, Arc::new(handlers), Limits::default()));

        let served = Arc::clone(&server);
        let serving = thread::Builder::new()
            .name("services".into())
            .spawn(move || served.serve())
            .map_err(|e| {
                Error::new(
                    Code::Failed,
                    format!("cannot start the thread of the services: {e}"),
                )
            })?;
        Ok(Self {
            server,
            exit_requests,
            serving: Some(serving),
        })
    }

    /// Waits for an exit request, at most for this time.
    pub fn wait_for_exit(&self, time: Duration) -> Option<ExitRequest> {
        self.exit_requests.recv_timeout(time).ok()
    }

    /// Number of open calls.
    pub fn open_calls(&self) -> usize {
        self.server.open_calls()
    }

    /// Answers the calls of a kernel that has ended. Returns whether all were answered in time.
    pub fn drain(&self, deadline: Instant) -> bool {
        while !self.server.poll_idle() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(POLL_INTERVAL);
        }
        true
    }
}

/// Handlers of all services.
fn handlers(
    gpu: &Arc<Gpu>,
    stream: Handle,
    root: Option<&Path>,
    sender: Sender<ExitRequest>,
) -> Result<Handlers> {
    let mut services = libc::Services::new();
    if let Some(root) = root {
        services = services.files(root).map_err(|e| {
            let message = format!("cannot open the directory `{}`: {e}", root.display());
            Error::new(Code::Failed, message)
                .help("--root takes the directory of the files that the program may use")
        })?;
    }
    let abort_sender = sender.clone();
    // The first request counts; the receiver may be gone for later ones.
    services = services.on_exit(move |status| {
        let _ = sender.send(ExitRequest::Exit(status));
    });
    services = services.on_abort(move || {
        let _ = abort_sender.send(ExitRequest::Abort);
    });
    let (allocating, freeing) = (Arc::clone(gpu), Arc::clone(gpu));
    services = services.memory(
        move |size| {
            or_warn(allocate(&allocating, size, stream))
                .flatten()
                .unwrap_or(0)
        },
        move |address| {
            or_warn(
                freeing
                    .attach()
                    .and_then(|()| freeing.free(address, stream)),
            );
        },
    );
    let mut handlers = Handlers::new();
    handlers.on_fault(warn);
    handlers.on_refusal(|call| {
        let RefusedCall { port, reason, .. } = call;
        let opcode = opcode_name(call.opcode);
        eprintln!("warning: call on port {port} refused: opcode {opcode}: {reason}");
    });
    services
        .register(&mut handlers)
        .and_then(|_| test_services::register(&mut handlers))
        .map_err(|error| Error::new(Code::Failed, error.to_string()))?;
    Ok(handlers)
}

/// Allocates memory of the device and waits for the allocation. Returns nothing if there is not enough memory.
pub fn allocate(gpu: &Gpu, size: u64, stream: Handle) -> Result<Option<u64>> {
    gpu.attach()?;
    // Drivers allocate nothing for a size of 0.
    let address = gpu.allocate(size.max(1), stream)?;
    wait(gpu, stream)?;
    Ok(address)
}

/// Waits for a stream by polling: blocking calls of some drivers also wait for other streams.
pub fn wait(gpu: &Gpu, stream: Handle) -> Result<()> {
    while !gpu.is_done(stream)? {
        thread::yield_now();
    }
    Ok(())
}

fn or_warn<T>(result: Result<T>) -> Option<T> {
    result
        .map_err(|error| eprintln!("warning: {}", error.message))
        .ok()
}

fn warn(dropped: &DroppedCall) {
    let DroppedCall {
        port,
        opcode,
        fault,
        ..
    } = dropped;
    let opcode = opcode_name(*opcode);
    eprintln!(
        "warning: call on port {port} dropped, its warp may wait indefinitely: opcode {opcode}: {fault}"
    );
}

/// Number of an opcode, with its name if it has one.
fn opcode_name(opcode: u32) -> String {
    match opcode::ALL.iter().find(|(_, number)| *number == opcode) {
        Some((name, _)) => format!("{opcode:#x} ({name})"),
        None => format!("{opcode:#x}"),
    }
}
