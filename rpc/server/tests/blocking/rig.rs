//! A server with a device, and a client on its thread.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use gpurpc::client::{Call, Client, HostLocks, Locks};
use gpurpc::memory::Region;
use gpurpc::server::{Device, DeviceId, Fault, Handlers, IdlePolicy, Limits, Server};
use gpurpc::{Error, Layout, PortIndex};

/// Adds numbers of each lane until those of all lanes are 0, and answers with the sums.
pub const SUM: u32 = 0x6700_0001;
/// Sends messages back.
pub const ECHO: u32 = 0x6700_0002;
/// Opcode of a test.
pub const OTHER: u32 = 0x6700_0003;

pub fn handlers() -> Result<Handlers, Error> {
    let mut handlers = Handlers::new();
    handlers.on_blocking(SUM, |call| {
        let mut sums = [0; 64];
        loop {
            let numbers = call.recv(|packets| {
                let mut numbers = [0; 64];
                for lane in packets.lanes() {
                    numbers[lane as usize] = packets.word(lane, 0);
                }
                numbers
            })?;
            if numbers == [0; 64] {
                break;
            }
            for (sum, number) in sums.iter_mut().zip(numbers) {
                *sum += number;
            }
        }
        call.send(|packets| {
            for lane in packets.lanes() {
                packets.set_word(lane, 0, sums[lane as usize]);
            }
        })
    })?;
    handlers.on_blocking(ECHO, |call| {
        let texts = call.recv_n()?;
        call.send_n(|lane| texts.get(lane).unwrap_or_default())
    })?;
    Ok(handlers)
}

/// Polls the server while a client waits.
pub struct Polling {
    server: Arc<Server>,
    locks: HostLocks,
    waits_for_threads: Cell<bool>,
}

impl Locks for Polling {
    fn try_lock(&self, port: PortIndex) -> bool {
        self.locks.try_lock(port)
    }

    fn unlock(&self, port: PortIndex) {
        self.locks.unlock(port);
    }

    fn relax(&self) {
        assert!(
            self.server.poll() || self.waits_for_threads.get(),
            "no answer"
        );
    }
}

pub struct Rig {
    pub server: Arc<Server>,
    pub client: Client<Region, Polling>,
    device: DeviceId,
    faults: Arc<Mutex<Vec<Fault>>>,
}

impl Rig {
    pub fn new(handlers: Handlers, ports: u32, lanes: u32, limits: Limits) -> Result<Self, Error> {
        Self::with_layout(handlers, Layout::new(ports, lanes)?, limits)
    }

    pub fn with_layout(
        mut handlers: Handlers,
        layout: Layout,
        limits: Limits,
    ) -> Result<Self, Error> {
        let faults = Arc::new(Mutex::new(Vec::new()));
        let found = Arc::clone(&faults);
        handlers.on_fault(move |call| found.lock().unwrap().push(call.fault.clone()));
        let server = Arc::new(Server::new(IdlePolicy::default()));
        let memory = Region::zeroed(layout)?;
        let client = client(&server, memory.clone());
        let device = Device::new(memory, Arc::new(handlers), limits);
        let device = server.add_device(device);
        Ok(Self {
            server,
            client,
            device,
            faults,
        })
    }

    /// A client of another device of the server.
    pub fn client_of(&self, memory: Region) -> Client<Region, Polling> {
        client(&self.server, memory)
    }

    /// Opens a call on a port.
    pub fn open_at(&self, port: u32) -> Call<'_, Region, Polling> {
        let call = self.client.try_open_at(PortIndex::new(port), OTHER, 1);
        call.expect("no other client has the port")
    }

    /// Lets clients wait for threads other than theirs.
    pub fn wait_for_threads(&self) {
        self.client.locks().waits_for_threads.set(true);
    }

    pub fn faults(&self) -> Vec<Fault> {
        self.faults.lock().unwrap().clone()
    }

    pub fn remove(&self) -> Result<(), Error> {
        self.server.remove_device(self.device)
    }

    pub fn reset(&self) -> Result<usize, Error> {
        self.server.reset_ports(self.device)
    }
}

fn client(server: &Arc<Server>, memory: Region) -> Client<Region, Polling> {
    let locks = Polling {
        server: Arc::clone(server),
        locks: HostLocks::new(),
        waits_for_threads: Cell::new(false),
    };
    Client::new(memory, locks)
}
