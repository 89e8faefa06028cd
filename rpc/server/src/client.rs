//! The end that asks, for threads of the host that stand for warps: in tests, and to measure.
//!
//! On a device the client is `gpurpc_client.h`, or LLVM's libc.

use alloc::vec::Vec;
use core::hint;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::layout::{MAX_PORTS, PACKET_SIZE};
use crate::memory::{Memory, Side};
use crate::packets::{FIRST, Lanes, Packets, Parts};
use crate::turn::Turns;

/// A bit for each port that a warp has taken.
pub trait Locks {
    /// Takes a port, unless it is taken; acquiring.
    fn try_lock(&self, port: u32) -> bool;

    /// Gives a port back; releasing.
    fn unlock(&self, port: u32);

    /// What a thread does between two looks at what it waits for.
    fn relax(&self) {
        hint::spin_loop();
    }
}

/// Locks in memory of the process.
#[derive(Debug)]
pub struct HostLocks {
    ports: Vec<AtomicU32>,
    relax: fn(),
}

impl HostLocks {
    /// For threads that keep their processor while they wait.
    pub fn new() -> Self {
        Self {
            // As many as the most ports that there can be.
            ports: (0..MAX_PORTS / 32).map(|_| AtomicU32::new(0)).collect(),
            relax: hint::spin_loop,
        }
    }

    /// For threads that let others run while they wait, as there may be more of them than processors.
    #[cfg(feature = "std")]
    pub fn yielding() -> Self {
        Self {
            relax: std::thread::yield_now,
            ..Self::new()
        }
    }
}

impl Default for HostLocks {
    fn default() -> Self {
        Self::new()
    }
}

impl Locks for HostLocks {
    fn try_lock(&self, port: u32) -> bool {
        let bit = 1 << (port % 32);
        self.ports[port as usize / 32].fetch_or(bit, Ordering::Acquire) & bit == 0
    }

    fn unlock(&self, port: u32) {
        self.ports[port as usize / 32].fetch_and(!(1 << (port % 32)), Ordering::Release);
    }

    fn relax(&self) {
        (self.relax)();
    }
}

/// A client. Any number of threads use it at once, each for a warp.
#[derive(Debug)]
pub struct Client<M, L> {
    memory: M,
    locks: L,
}

impl<M: Memory, L: Locks> Client<M, L> {
    /// A client in memory that was zero when the first one began.
    pub fn new(memory: M, locks: L) -> Self {
        Self { memory, locks }
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The locks of the ports.
    pub fn locks(&self) -> &L {
        &self.locks
    }

    /// Takes a port for the lanes of a mask, and begins a call; the first port that is free. The call
    /// ends when the port is dropped.
    pub fn try_open(&self, opcode: u32, mask: u64) -> Option<Call<'_, M, L>> {
        (0..self.memory.layout().ports()).find_map(|port| self.try_open_at(port, opcode, mask))
    }

    /// Takes this port, if it is free.
    pub fn try_open_at(&self, port: u32, opcode: u32, mask: u64) -> Option<Call<'_, M, L>> {
        if !self.locks.try_lock(port) {
            return None;
        }
        let outbox = self.memory.outbox(Side::Client, port);
        // A call before may have ended without its answer.
        if !Side::Client.owns(self.memory.inbox(Side::Client, port), outbox) {
            self.locks.unlock(port);
            return None;
        }
        self.memory.set_header(port, mask, opcode);
        Some(Call {
            client: self,
            turns: Some(Turns::new(Side::Client, port, outbox, mask)),
        })
    }

    /// Waits for a port.
    pub fn open(&self, opcode: u32, mask: u64) -> Call<'_, M, L> {
        loop {
            if let Some(call) = self.try_open(opcode, mask) {
                return call;
            }
            self.locks.relax();
        }
    }
}

/// A call. It begins with a packet to the server.
#[derive(Debug)]
pub struct Call<'c, M: Memory, L: Locks> {
    client: &'c Client<M, L>,
    // Until it is dropped.
    turns: Option<Turns>,
}

impl<M: Memory, L: Locks> Call<'_, M, L> {
    /// The port.
    pub fn port(&self) -> u32 {
        self.turns.as_ref().map_or(0, Turns::port)
    }

    /// Waits for the packets, fills and sends them.
    pub fn send(&mut self, fill: impl FnOnce(&mut Packets<'_, M>)) {
        let memory = &self.client.memory;
        let Some(turns) = &mut self.turns else { return };
        loop {
            if let Some(mut packets) = turns.sendable(memory) {
                fill(&mut packets);
                return turns.sent(memory);
            }
            self.client.locks.relax();
        }
    }

    /// Waits for packets of the server, and reads them.
    pub fn recv<T>(&mut self, read: impl FnOnce(&Packets<'_, M>) -> T) -> Option<T> {
        let memory = &self.client.memory;
        let turns = self.turns.as_mut()?;
        loop {
            if let Some(packets) = turns.received(memory) {
                return Some(read(&packets));
            }
            self.client.locks.relax();
        }
    }

    /// Sends a message of each lane; `message` has those of lanes that do not take part too.
    pub fn send_n<'a>(&mut self, message: impl Fn(u32) -> &'a [u8]) {
        let mut largest = 0;
        self.send(|packets| {
            for lane in packets.lanes() {
                let bytes = message(lane);
                largest = largest.max(bytes.len());
                packets.set_word(lane, 0, bytes.len() as u64);
                packets.write(lane, 1, bytes);
            }
        });
        for at in Parts::after_first(largest as u64) {
            self.send(|packets| {
                for lane in packets.lanes() {
                    packets.write(
                        lane,
                        0,
                        message(lane).get(at as usize..).unwrap_or_default(),
                    );
                }
            });
        }
    }

    /// Receives a message for each lane: `take` is called with a lane, the size of its message, and the
    /// next bytes of it.
    pub fn recv_n(&mut self, mut take: impl FnMut(u32, u64, &[u8])) {
        let mut sizes = [0; 64];
        self.recv(|packets| {
            for lane in packets.lanes() {
                let mut bytes = [0; FIRST as usize];
                packets.read(lane, 1, &mut bytes);
                let size = packets.word(lane, 0);
                sizes[lane as usize] = size;
                take(lane, size, &bytes[..size.min(FIRST) as usize]);
            }
        });
        let largest = sizes.iter().copied().max().unwrap_or(0);
        for at in Parts::after_first(largest) {
            self.recv(|packets| {
                for lane in packets.lanes() {
                    let size = sizes[lane as usize];
                    let mut bytes = [0; PACKET_SIZE];
                    packets.read(lane, 0, &mut bytes);
                    let left = size.saturating_sub(at).min(PACKET_SIZE as u64);
                    if left > 0 {
                        take(lane, size, &bytes[..left as usize]);
                    }
                }
            });
        }
    }

    /// The lanes that take part.
    pub fn lanes(&self) -> Lanes {
        Lanes::of(self.turns.as_ref().map_or(0, Turns::mask))
    }
}

impl<M: Memory, L: Locks> Drop for Call<'_, M, L> {
    fn drop(&mut self) {
        if let Some(turns) = self.turns.take() {
            let port = turns.port();
            turns.close(&self.client.memory);
            self.client.locks.unlock(port);
        }
    }
}
