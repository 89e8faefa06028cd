//! What the host does for a program while it runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gpurpc::libc;
use gpurpc::memory::{Region, SharedMemory};
use gpurpc::server::{Device, DroppedCall, Handlers, IdlePolicy, Limits, Opcodes, Server};
use gpurpc::{Layout, opcode};

use crate::error::{Code, Error, Result};
use crate::runtime::{Gpu, Handle, HostMemory};

/// Between two looks whether calls have ended that threads of their own answer.
const LOOK: Duration = Duration::from_micros(50);

/// What a program says of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// `exit`, with this status.
    Exit(i32),
    /// `abort`.
    Abort,
}

/// The services, and the threads that give them.
pub struct Services {
    server: Arc<Server>,
    ends: Receiver<End>,
    serving: Option<JoinHandle<()>>,
}

/// Before the process ends as usual: a driver takes its memory away then.
impl Drop for Services {
    fn drop(&mut self) {
        self.server.stop();
        if let Some(serving) = self.serving.take() {
            // Nothing else is to be done for one that has panicked.
            let _ = serving.join();
        }
    }
}

/// What a program asks for is answered in this memory.
pub struct Wires {
    /// What both sides see.
    pub memory: HostMemory,
    /// Where what lies in it.
    pub layout: Layout,
    /// How opcodes are written.
    pub opcodes: Opcodes,
}

impl Services {
    /// Begins to serve a program. Memory of the device is allocated on `stream`, files are those below
    /// `root`.
    pub fn start(
        gpu: &Arc<Gpu>,
        stream: Handle,
        wires: &Wires,
        root: Option<&Path>,
    ) -> Result<Self> {
        let (end, ends) = channel();
        let handlers = handlers(gpu, stream, root, end)?;
        let refused = |error: gpurpc::Error| Error::new(Code::Failed, error.to_string());
        let Wires {
            memory,
            layout,
            opcodes,
        } = *wires;
        // SAFETY: the memory is never freed, and nothing else here touches it from now on.
        let shared = unsafe { SharedMemory::new(memory.host(), memory.size(), layout) };
        let region = Region::new(shared.map_err(refused)?, |_| {});
        let server = Arc::new(Server::new(IdlePolicy::default()));
        server.add_device(Device::new(
            region,
            Arc::new(handlers),
            Limits::default(),
            opcodes,
        ));

        let served = Arc::clone(&server);
        let serving = thread::Builder::new()
            .name("services".into())
            .spawn(move || served.serve())
            .map_err(|e| Error::new(Code::Failed, format!("no thread for the services: {e}")))?;
        Ok(Self {
            server,
            ends,
            serving: Some(serving),
        })
    }

    /// What the program says of its end, if it says so within this time.
    pub fn end_within(&self, time: Duration) -> Option<End> {
        self.ends.recv_timeout(time).ok()
    }

    /// How many calls are under way.
    pub fn open(&self) -> usize {
        self.server.open_calls()
    }

    /// Answers what a kernel that has ended had asked for. Gives whether that was done in time.
    pub fn settle(&self, until: Instant) -> bool {
        while !self.server.poll_idle() {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }
}

/// All that a program may ask for.
fn handlers(
    gpu: &Arc<Gpu>,
    stream: Handle,
    root: Option<&Path>,
    end: Sender<End>,
) -> Result<Handlers> {
    let mut services = libc::Services::new();
    if let Some(root) = root {
        services = services.files(root).map_err(|e| {
            let message = format!("cannot open the folder `{}`: {e}", root.display());
            Error::new(Code::Failed, message)
                .help("--root takes the folder whose files the program may use")
        })?;
    }
    let aborting = end.clone();
    // The first one counts; nobody may listen to others.
    services = services.on_exit(move |status| {
        let _ = end.send(End::Exit(status));
    });
    services = services.on_abort(move || {
        let _ = aborting.send(End::Abort);
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
    let registered = services.register(&mut handlers);
    let registered = registered.and_then(|()| {
        // What LLVM's tests ask their loader for, and what measures a round trip.
        handlers.on_request(opcode::TEST_INCREMENT, |packets| {
            for lane in packets.lanes() {
                packets.set_word(lane, 0, packets.word(lane, 0).wrapping_add(1));
            }
        })
    });
    registered.map_err(|error| Error::new(Code::Failed, error.to_string()))?;
    Ok(handlers)
}

/// Allocates memory of the device, and waits until it is there. Nothing if there is not as much.
pub fn allocate(gpu: &Gpu, size: u64, stream: Handle) -> Result<Option<u64>> {
    gpu.attach()?;
    // Of nothing, drivers allocate nothing.
    let address = gpu.allocate(size.max(1), stream)?;
    wait(gpu, stream)?;
    Ok(address)
}

/// Waits for a stream, without a call that waits: on some drivers those wait for other streams, too.
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
    let name = opcode::ALL.iter().find(|(_, number)| number == opcode);
    let name = name.map_or(String::new(), |(name, _)| format!(" ({name})"));
    eprintln!(
        "warning: a call on port {port} is not served any more, and its warp may wait for ever: opcode \
         {opcode:#x}{name}: {fault}"
    );
}
