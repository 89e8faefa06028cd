//! A program without a device: calls as LLVM's libc makes them, for the lanes of a mask.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::thread;

use gpurpc::client::{Call, Client, HostLocks};
use gpurpc::libc::Services;
use gpurpc::memory::Region;
use gpurpc::server::{Device, DroppedCall, Handlers, IdlePolicy, Limits, RefusedCall, Server};
use gpurpc::{Generation, Lanes, Layout, PACKET_WORDS, opcode};

pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;
/// Values of the participating lanes.
pub type ByLane<T> = BTreeMap<u32, T>;

pub const FAILED: u64 = u64::MAX;
pub const STDIN: u64 = 1;
pub const STDOUT: u64 = 2;
pub const STDERR: u64 = 3;

/// Output whose contents tests can inspect.
#[derive(Clone, Default)]
pub struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    /// Text written since the last call.
    pub fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock().expect("no panic in a sink"));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic in a sink").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Services without access to this process.
pub fn quiet() -> Services {
    Services::new()
        .stdin(io::empty())
        .stdout(io::sink())
        .stderr(io::sink())
}

const PORTS: u32 = 64;

/// Layout for warps of this size.
pub fn layout_of(lanes: u32) -> Layout {
    Layout::new(PORTS, lanes).expect("a valid number of lanes")
}

/// Layouts of all sizes of warps, without a doorbell and with one.
pub fn layouts() -> impl Iterator<Item = Layout> {
    let generations = [Generation::LLVM_20, Generation::LLVM_23].into_iter();
    generations.flat_map(|generation| {
        let layout = |lanes| Layout::with_generation(generation, PORTS, lanes);
        [1, 32, 64].map(|lanes| layout(lanes).expect("a valid number of lanes"))
    })
}

/// Masks of all lanes, and of some.
pub fn masks(lanes: u32) -> Vec<u64> {
    let all = u64::MAX >> (64 - lanes);
    let mut masks = vec![
        all,
        1,
        all & 0x5a5a_5a5a_5a5a_5a5a,
        all & !0xff,
        1 << (lanes - 1),
    ];
    masks.retain(|mask| *mask != 0);
    masks
}

pub struct Program {
    client: Client<Region, HostLocks>,
    faults: Arc<Mutex<Vec<DroppedCall>>>,
    refused: Arc<Mutex<Vec<RefusedCall>>>,
}

/// Serves a program until it has ended, or was stopped.
pub fn run<T>(
    layout: Layout,
    services: Services,
    limits: Limits,
    server: &Server,
    program: impl FnOnce(&Program) -> Result<T>,
) -> Result<T> {
    let mut handlers = Handlers::new();
    services.register(&mut handlers)?;
    let faults = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&faults);
    handlers.on_fault(move |fault| {
        seen.lock()
            .expect("no panic while the lock is held")
            .push(fault.clone());
    });
    let refused = Arc::new(Mutex::new(Vec::new()));
    let warned = Arc::clone(&refused);
    handlers.on_refusal(move |call| {
        let mut warned = warned.lock().expect("no panic while the lock is held");
        warned.push(call.clone());
    });
    let region = Region::zeroed(layout)?;
    let client = Client::new(region.clone(), HostLocks::yielding());
    server.add_device(Device::new(region, Arc::new(handlers), limits));
    thread::scope(|scope| {
        scope.spawn(|| server.serve());
        // Also if the program panics.
        let _stop = Stop(server);
        program(&Program {
            client,
            faults,
            refused,
        })
    })
}

struct Stop<'s>(&'s Server);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs a program that ends without being stopped.
pub fn run_program<T>(
    layout: Layout,
    services: Services,
    program: impl FnOnce(&Program) -> Result<T>,
) -> Result<T> {
    let server = Server::new(IdlePolicy::default());
    run(layout, services, Limits::default(), &server, program)
}

impl Program {
    pub fn open_call(&self, opcode: u32, mask: u64) -> Call<'_, Region, HostLocks> {
        self.client.open(opcode, mask)
    }

    /// Waits until a call is dropped, and removes and returns its fault.
    pub fn fault(&self) -> DroppedCall {
        loop {
            if let Some(fault) = self
                .faults
                .lock()
                .expect("no panic while the lock is held")
                .pop()
            {
                return fault;
            }
            thread::yield_now();
        }
    }

    /// Removes and returns the reports of refused calls.
    pub fn refusals(&self) -> Vec<RefusedCall> {
        let mut refused = self
            .refused
            .lock()
            .expect("no panic while the lock is held");
        std::mem::take(&mut *refused)
    }

    /// Sends words, and returns answers of one word.
    pub fn ask(&self, opcode: u32, mask: u64, words: impl Fn(u32) -> [u64; 3]) -> ByLane<u64> {
        let mut call = self.client.open(opcode, mask);
        send_words(&mut call, words);
        word(&mut call)
    }

    pub fn write(
        &self,
        opcode: u32,
        mask: u64,
        to: impl Fn(u32) -> u64,
        data: &ByLane<Vec<u8>>,
    ) -> ByLane<u64> {
        let mut call = self.client.open(opcode, mask);
        if opcode == opcode::WRITE_TO_STREAM {
            send_words(&mut call, |lane| [to(lane), 0, 0]);
        }
        call.send_n(|lane| data.get(&lane).map_or(&[][..], |data| data));
        word(&mut call)
    }

    pub fn read(
        &self,
        mask: u64,
        size: impl Fn(u32) -> u64,
        from: impl Fn(u32) -> u64,
    ) -> ByLane<Vec<u8>> {
        let mut call = self.client.open(opcode::READ_FROM_STREAM, mask);
        send_words(&mut call, |lane| [size(lane), from(lane), 0]);
        read_answer(&mut call)
    }

    pub fn fgets(
        &self,
        mask: u64,
        size: impl Fn(u32) -> u64,
        from: impl Fn(u32) -> u64,
    ) -> ByLane<Vec<u8>> {
        let mut call = self.client.open(opcode::READ_FGETS, mask);
        send_words(&mut call, |lane| [size(lane), from(lane), 0]);
        messages(&mut call)
    }

    pub fn fopen(
        &self,
        mask: u64,
        path: impl Fn(u32) -> String,
        mode: impl Fn(u32) -> &'static str,
    ) -> ByLane<u64> {
        let paths = texts(path);
        let mut call = self.client.open(opcode::OPEN_FILE, mask);
        call.send_n(|lane| &paths[lane as usize]);
        call.send(|packets| {
            for lane in packets.lanes() {
                packets.write(lane, 0, mode(lane).as_bytes());
                let end = mode(lane).len() / 8;
                if mode(lane).len() % 8 == 0 && end < PACKET_WORDS {
                    packets.set_word(lane, end, 0);
                }
            }
        });
        word(&mut call)
    }

    /// One lane opens a file.
    #[cfg(feature = "files")]
    pub fn open(&self, path: &str, mode: &'static str) -> u64 {
        self.fopen(1, |_| path.to_owned(), |_| mode)[&0]
    }

    /// Makes a request of one lane.
    pub fn one(&self, opcode: u32, words: [u64; 3]) -> u64 {
        self.ask(opcode, 1, |_| words)[&0]
    }

    pub fn write_one(&self, to: u64, data: &[u8]) -> u64 {
        let data = ByLane::from([(0, data.to_owned())]);
        self.write(opcode::WRITE_TO_STREAM, 1, |_| to, &data)[&0]
    }

    pub fn read_one(&self, size: u64, from: u64) -> Vec<u8> {
        self.read(1, |_| size, |_| from)
            .remove(&0)
            .unwrap_or_default()
    }

    pub fn fgets_one(&self, size: u64, from: u64) -> Vec<u8> {
        self.fgets(1, |_| size, |_| from)
            .remove(&0)
            .unwrap_or_default()
    }

    /// Sends messages, and returns answers of one word: `remove`, `rename`, `system`.
    pub fn messages(&self, opcode: u32, mask: u64, sent: &[&dyn Fn(u32) -> String]) -> ByLane<u64> {
        let mut call = self.client.open(opcode, mask);
        for message in sent {
            let message = texts(message);
            call.send_n(|lane| &message[lane as usize]);
        }
        word(&mut call)
    }
}

/// Texts of 64 lanes, each with its NUL.
fn texts(text: impl Fn(u32) -> String) -> Vec<Vec<u8>> {
    let text = |lane| [text(lane).as_bytes(), b"\0"].concat();
    (0..64).map(text).collect()
}

pub fn send_words(call: &mut Call<'_, Region, HostLocks>, words: impl Fn(u32) -> [u64; 3]) {
    call.send(|packets| {
        for lane in packets.lanes() {
            for (word, value) in words(lane).into_iter().enumerate() {
                packets.set_word(lane, word, value);
            }
        }
    });
}

pub fn word(call: &mut Call<'_, Region, HostLocks>) -> ByLane<u64> {
    let read = call.recv(|packets| {
        let word = |lane| (lane, packets.word(lane, 0));
        packets.lanes().map(word).collect()
    });
    read.expect("the call is open")
}

pub fn messages(call: &mut Call<'_, Region, HostLocks>) -> ByLane<Vec<u8>> {
    let mut got: ByLane<Vec<u8>> = call.lanes().map(|lane| (lane, Vec::new())).collect();
    call.recv_n(|lane, _, bytes| {
        got.entry(lane).or_default().extend(bytes);
    });
    got
}

/// Receives data, then its size.
pub fn read_answer(call: &mut Call<'_, Region, HostLocks>) -> ByLane<Vec<u8>> {
    let data = messages(call);
    let sizes = word(call);
    for (lane, size) in sizes {
        assert_eq!(data[&lane].len() as u64, size, "lane {lane}");
    }
    data
}

/// The same for each lane of a mask.
pub fn for_lanes<T>(mask: u64, value: impl Fn(u32) -> T) -> ByLane<T> {
    Lanes::from_mask(mask)
        .map(|lane| (lane, value(lane)))
        .collect()
}
