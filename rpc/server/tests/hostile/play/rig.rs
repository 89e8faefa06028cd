//! A client that does anything to its ports, and an honest one on another port of the device.

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::script::{
    BUDGET, ECHO, Fill, HONEST, HOSTILE, Memory as Amount, PORTS, Script, Setting, Step,
};
use super::services::{Kept, register_own, services};
use gpurpc::client::{Call, Client, HostLocks, Locks};
use gpurpc::memory::{Memory, Region, SharedMemory, Side};
use gpurpc::server::{Device, DroppedCall, Fault, Handlers, Limits, Opcodes};
use gpurpc::{Error, Layout, PACKET_WORDS, Packets, PortIndex, opcode};

/// Result of a run on a device.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Survived {
    /// Memory limit of its calls.
    pub memory: usize,
    /// Number of ports that are no longer served.
    pub dropped: usize,
    /// Number of answered calls of the honest client.
    pub answered: usize,
}

/// Serves a client that follows the arbitrary script `data`, with all services: files are below `root`.
/// With `storm`, another thread continuously overwrites all memory that the client may write, so that
/// two reads of a word by the server differ.
///
/// Panics unless the honest client of the device receives correct answers, ports are dropped only with a
/// reported fault, and all memory is released in the end.
pub fn hostile(data: &[u8], root: Option<&Path>, storm: bool) -> Survived {
    let (setting, script) = Script::new(data);
    let rig = Rig::new(setting, root).expect("the sizes are allowed");
    let ended = AtomicBool::new(false);
    let answered = thread::scope(|scope| {
        // Also if the client panics.
        let _end = End(&ended);
        if storm {
            let seed = data
                .iter()
                .fold(1, |sum: u64, byte| sum.rotate_left(9) ^ u64::from(*byte));
            let memory = &rig.memory;
            let ended = &ended;
            scope.spawn(move || noise(memory, seed, ended));
        }
        rig.play(script)
    });
    rig.end(answered)
}

struct End<'e>(&'e AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Overwrites the hostile client's memory: mostly with small numbers, which are more often meaningful.
fn noise(memory: &SharedMemory, seed: u64, ended: &AtomicBool) {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let layout = memory.layout();
    while !ended.load(Ordering::Acquire) {
        for port in HOSTILE {
            let (what, value) = (next(), next() >> (next() % 64));
            match what % 8 {
                0 => memory.set_outbox(Side::Client, port, value as u32),
                1 => memory.set_outbox(Side::Client, port, value as u32 & 1),
                2 => {
                    let known = opcode::ALL[value as usize % opcode::ALL.len()].1;
                    memory.set_header(port, value, known);
                }
                _ => {
                    let lane = (what >> 8) as u32 % layout.lanes();
                    let word = (what >> 16) as usize % PACKET_WORDS;
                    memory.set_word(port, lane, word, value);
                }
            }
        }
        thread::yield_now();
    }
}

/// Polls the device while waiting.
struct Polling {
    locks: HostLocks,
    device: RefCell<Device>,
    faults: Arc<Mutex<Vec<DroppedCall>>>,
}

impl Polling {
    fn faults(&self) -> Vec<DroppedCall> {
        let faults = self.faults.lock();
        faults.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Locks for Polling {
    fn try_lock(&self, port: PortIndex) -> bool {
        self.locks.try_lock(port)
    }

    fn unlock(&self, port: PortIndex) {
        self.locks.unlock(port);
    }

    fn relax(&self) {
        if !self.device.borrow_mut().poll() {
            self.locks.relax();
        }
        // No answer could follow.
        let of_honest = self
            .faults()
            .into_iter()
            .find(|dropped| dropped.port == HONEST);
        assert!(of_honest.is_none(), "{of_honest:?}");
    }
}

/// The device with both clients.
struct Rig {
    setting: Setting,
    limits: Limits,
    memory: Region,
    client: Client<Region, Polling>,
    /// Sender whose drop ends the standard input.
    input: Option<Sender<()>>,
    released: Receiver<()>,
    budget: Kept,
}

/// Message of the honest client.
const TEXT: &[u8] =
    b"a text of more than one packet, which has 56 bytes beside its size, and no more";

impl Rig {
    fn new(setting: Setting, root: Option<&Path>) -> Result<Self, Error> {
        let (message, memory) = match setting.memory {
            // Six ports, of 64 lanes each, with a few messages.
            Amount::Ample => (512, 4 << 20),
            Amount::Tight => (512, 8 << 10),
            Amount::Large => (1 << 20, 2 << 20),
        };
        let limits = Limits {
            message,
            memory,
            ..Limits::default()
        };
        let mut handlers = Handlers::new();
        let input = services(setting, root, limits, &mut handlers)?;
        let budget = register_own(&mut handlers)?;
        let faults = Arc::new(Mutex::new(Vec::new()));
        let found = Arc::clone(&faults);
        handlers.on_fault(move |dropped| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push(dropped.clone());
        });
        let layout = Layout::with_generation(setting.generation, PORTS, setting.lanes)?;
        let (release, released) = channel();
        let zeroed = Region::zeroed(layout)?;
        // SAFETY: the memory is valid until the region is released, and no other code uses it.
        let memory = unsafe { SharedMemory::new(zeroed.start(), layout.size(), layout) }?;
        let region = Region::new(memory, move |_| {
            drop(zeroed);
            let _ = release.send(());
        });
        let memory = region.clone();
        let device = Device::new(region, Arc::new(handlers), limits);
        let polling = Polling {
            locks: HostLocks::yielding(),
            device: RefCell::new(device),
            faults,
        };
        Ok(Self {
            setting,
            limits,
            client: Client::new(memory.clone(), polling),
            memory,
            input,
            released,
            budget,
        })
    }

    fn poll(&self) -> bool {
        self.client.locks().device.borrow_mut().poll()
    }

    /// Whether the hostile client owns a port.
    fn is_clients(&self, port: PortIndex) -> bool {
        let outbox = self.memory.outbox(Side::Client, port);
        Side::Client.owns(self.memory.inbox(Side::Client, port), outbox)
    }

    fn flip(&self, port: PortIndex) {
        let outbox = self.memory.outbox(Side::Client, port);
        self.memory
            .set_outbox(Side::Client, port, u32::from(outbox == 0));
    }

    fn fill(&self, port: PortIndex, fill: &Fill) {
        for lane in 0..self.memory.layout().lanes() {
            if let Some((number, differ)) = fill.number {
                let more = if differ { u64::from(lane) * 7 } else { 0 };
                self.memory
                    .set_word(port, lane, 0, number.wrapping_add(more));
            }
            if let Some((first, text)) = &fill.text {
                for (word, part) in (*first..PACKET_WORDS).zip(text.chunks(8)) {
                    let mut bytes = [0; 8];
                    bytes[..part.len()].copy_from_slice(part);
                    let value = u64::from_ne_bytes(bytes);
                    self.memory.set_word(port, lane, word, value);
                }
            }
        }
    }

    /// Runs a script. Returns the number of answered honest calls.
    fn play(&self, script: Script<'_>) -> usize {
        self.call(BUDGET, 1).send(|_| ());
        let mut answered = 0;
        for step in script {
            answered += usize::from(self.step(step));
            self.poll();
        }
        for which in 0..8 {
            self.honest(which, u64::MAX);
            answered += 1;
        }
        answered
    }

    /// Runs a step. Returns whether it was an honest call.
    fn step(&self, step: Step) -> bool {
        let memory = &self.memory;
        match step {
            Step::Begin {
                port,
                opcode,
                mask,
                fill,
            } => {
                if self.is_clients(port) {
                    memory.set_header(port, mask, opcode);
                    self.fill(port, &fill);
                    self.flip(port);
                }
            }
            Step::Next { port, fill } => {
                if self.is_clients(port) {
                    self.fill(port, &fill);
                    self.flip(port);
                }
            }
            Step::Mailbox { port, value } => memory.set_outbox(Side::Client, port, value),
            Step::Theirs { port, value } => memory.set_outbox(Side::Server, port, value),
            Step::Header { port, mask, opcode } => memory.set_header(port, mask, opcode),
            Step::Word {
                port,
                lane,
                word,
                value,
            } => {
                let lane = lane % memory.layout().lanes();
                memory.set_word(port, lane, word % PACKET_WORDS, value);
            }
            Step::Poll(times) => {
                for _ in 0..times {
                    self.poll();
                }
            }
            Step::AwaitAnswer(port) => {
                // An answer from another thread may take time, or never come.
                for _ in 0..64 {
                    if self.is_clients(port) {
                        break;
                    }
                    if !self.poll() {
                        thread::yield_now();
                    }
                }
            }
            Step::Honest { which, mask } => {
                self.honest(which, mask);
                return true;
            }
        }
        false
    }

    fn call(&self, opcode: u32, mask: u64) -> Call<'_, Region, Polling> {
        let narrow = self.setting.generation.opcodes == Opcodes::Narrow;
        let opcode = match (narrow, opcode & !0xffff == opcode::LIBC_BASE) {
            // As LLVM 19 writes the opcode: the first half in memory.
            (true, true) => {
                let [a, b] = (opcode as u16).to_ne_bytes();
                u32::from_ne_bytes([a, b, 0, 0])
            }
            (true, false) => {
                let [a, b] = (0x8000 | opcode as u16).to_ne_bytes();
                u32::from_ne_bytes([a, b, 0, 0])
            }
            _ => opcode,
        };
        loop {
            if let Some(call) = self.client.try_open_at(HONEST, opcode, mask) {
                return call;
            }
            self.client.locks().relax();
        }
    }

    /// Makes a correct call and checks its answer.
    fn honest(&self, which: u8, mask: u64) {
        let mask = match mask & self.memory.layout().lane_mask() {
            0 => 1,
            some => some,
        };
        // Calls with messages require memory, which the hostile client may have used.
        let ample = self.setting.memory == Amount::Ample;
        let which = if ample { which % 8 } else { which % 4 };
        let ask = |opcode, word: u64, right: &dyn Fn(u64) -> bool| {
            let mut call = self.call(opcode, mask);
            send(&mut call, |_| word);
            check(&mut call, |_, answer| right(answer));
        };
        match which {
            0 => {
                let mut call = self.call(opcode::NOOP, mask);
                send(&mut call, |lane| u64::from(lane) + 7);
                check(&mut call, |lane, answer| answer == u64::from(lane) + 7);
            }
            // Null if the hostile client has used up all allocations.
            1 => ask(opcode::MALLOC, 16, &|answer| answer % 64 == 0),
            2 => send(&mut self.call(opcode::FREE, mask), |_| 0),
            3 => ask(opcode::FTELL, 4 << 40, &|answer| answer == u64::MAX),
            4 | 5 => {
                let size = |lane: u32| TEXT.len() - lane as usize % TEXT.len();
                let to = [opcode::WRITE_TO_STDERR, opcode::WRITE_TO_STDOUT_NEWLINE];
                let mut call = self.call(to[usize::from(which) - 4], mask);
                call.send_n(|lane| &TEXT[..size(lane)]);
                let feed = usize::from(which) - 4;
                check(&mut call, |lane, answer| {
                    answer == (size(lane) + feed) as u64
                });
            }
            6 => {
                let mut call = self.call(ECHO, mask);
                call.send_n(|lane| &TEXT[lane as usize..]);
                let mut got = vec![Vec::new(); 64];
                call.recv_n(|lane, _, bytes| got[lane as usize].extend_from_slice(bytes));
                for lane in call.lanes() {
                    assert_eq!(got[lane as usize], &TEXT[lane as usize..]);
                }
            }
            _ => {
                let mut call = self.call(opcode::PRINTF_TO_STDERR_PACKED, mask);
                call.send_n(|_| b"%d %s\0");
                check(&mut call, |_, size| size == 12);
                let address = 0x1000_u64.to_ne_bytes();
                let arguments = [&1234_i32.to_ne_bytes()[..], &address].concat();
                call.send_n(|_| &arguments);
                let asked = |packets: &Packets<'_, Region>| {
                    packets.lanes().all(|lane| packets.word(lane, 1) == 0x1000)
                };
                assert_eq!(call.recv(asked), Some(true));
                call.send_n(|_| b"text\0");
                check(&mut call, |_, result| result == 9);
            }
        }
    }

    /// Drops all parts, and checks that all memory is released.
    fn end(self, answered: usize) -> Survived {
        let polling = self.client.locks();
        let faults = polling.faults();
        let dropped = polling.device.borrow().dropped_calls();
        let mut ports: Vec<PortIndex> = faults.iter().map(|dropped| dropped.port).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), faults.len(), "reported once: {faults:?}");
        assert_eq!(ports.len(), dropped, "reported all: {faults:?}");
        let panicked = faults
            .iter()
            .find(|found| found.fault == Fault::HandlerFailed);
        assert!(panicked.is_none(), "{panicked:?}");
        let budget = self.budget.lock().ok().and_then(|mut budget| budget.take());
        drop(self.input);
        // The device with its calls, then the memory that threads still use.
        drop((self.client, self.memory));
        self.released.recv().expect("the memory is released");
        let budget = budget.expect("the first call stores the budget");
        while Arc::strong_count(&budget) > 1 {
            thread::yield_now();
        }
        assert_eq!(budget.used(), 0);
        assert!(budget.reserve(1).is_err(), "the device is gone");
        Survived {
            memory: self.limits.memory,
            dropped,
            answered,
        }
    }
}

fn send(call: &mut Call<'_, Region, Polling>, word: impl Fn(u32) -> u64) {
    call.send(|packets| {
        for lane in packets.lanes() {
            packets.set_word(lane, 0, word(lane));
        }
    });
}

fn check(call: &mut Call<'_, Region, Polling>, right: impl Fn(u32, u64) -> bool) {
    let wrong = call.recv(|packets| {
        let mut answers = packets.lanes().map(|lane| (lane, packets.word(lane, 0)));
        answers.find(|(lane, answer)| !right(*lane, *answer))
    });
    assert_eq!(wrong, Some(None), "a wrong answer of an honest call");
}
