//! Client side of the protocol, for host threads that act as warps in tests and benchmarks.
//!
//! On a device the client is `gpurpc_client.h`, or LLVM's libc.

mod doorbell;

use alloc::vec::Vec;
use core::hint;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;
use crate::generation::Generation;
use crate::handshake::Handshake;
use crate::lanes::Lanes;
use crate::layout::{PACKET_SIZE, PortIndex};
use crate::memory::{Memory, Side};
use crate::packets::{ChunkOffsets, FIRST_CHUNK, Packets};

pub use doorbell::HostDoorbell;

/// One lock bit for each port.
/// ```
/// use gpurpc::PortIndex;
/// use gpurpc::client::{HostLocks, Locks};
///
/// let (locks, port) = (HostLocks::new(), PortIndex::new(0));
/// assert!(locks.try_lock(port) && !locks.try_lock(port));
/// locks.unlock(port);
/// assert!(locks.try_lock(port));
/// ```
pub trait Locks {
    /// Locks a port and returns true, unless it is locked. Acquire ordering.
    fn try_lock(&self, port: PortIndex) -> bool;

    /// Unlocks a port. Release ordering.
    fn unlock(&self, port: PortIndex);

    /// Pauses between two polls of a waiting thread.
    fn relax(&self) {
        hint::spin_loop();
    }
}

/// Locks in memory of this process.
/// ```
/// use gpurpc::Layout;
/// use gpurpc::client::{Client, HostLocks};
/// use gpurpc::memory::Region;
///
/// let client = Client::new(Region::zeroed(Layout::new(8, 32)?)?, HostLocks::new());
/// # Ok::<(), gpurpc::Error>(())
/// ```
#[derive(Debug)]
pub struct HostLocks {
    ports: Vec<AtomicU32>,
    relax: fn(),
}

impl HostLocks {
    /// Locks for threads that spin while they wait.
    pub fn new() -> Self {
        Self {
            ports: (0..Generation::LLVM_23.lock_words)
                .map(|_| AtomicU32::new(0))
                .collect(),
            relax: hint::spin_loop,
        }
    }

    /// Locks for threads that yield while they wait, because there may be more of them than processors.
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
    fn try_lock(&self, port: PortIndex) -> bool {
        let bit = 1 << (port.get() % 32);
        self.ports[port.slot() / 32].fetch_or(bit, Ordering::Acquire) & bit == 0
    }

    fn unlock(&self, port: PortIndex) {
        let bit = 1 << (port.get() % 32);
        self.ports[port.slot() / 32].fetch_and(!bit, Ordering::Release);
    }

    fn relax(&self) {
        (self.relax)();
    }
}

/// A client. Any number of threads, one for each warp, use it at the same time.
/// ```
/// use std::sync::Arc;
///
/// use gpurpc::Layout;
/// use gpurpc::client::{Client, HostLocks};
/// use gpurpc::memory::Region;
/// use gpurpc::server::{Device, Handlers, Limits};
///
/// let memory = Region::zeroed(Layout::new(8, 32)?)?;
/// let client = Client::new(memory.clone(), HostLocks::new());
/// let mut handlers = Handlers::new();
/// handlers.on_warp(0x7800_0001, 1, |warp| warp.set_word(0, 0, warp.input().get(0)[0] ^ 1))?;
/// let mut device = Device::new(memory, Arc::new(handlers), Limits::default());
///
/// let mut call = client.open(0x7800_0001, 0b1);
/// call.send(|packets| packets.set_word(0, 0, 43));
/// device.poll();
/// assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(42));
/// # Ok::<(), gpurpc::Error>(())
/// ```
#[derive(Debug)]
pub struct Client<M, L> {
    memory: M,
    locks: L,
    doorbell: Option<HostDoorbell>,
}

impl<M: Memory, L: Locks> Client<M, L> {
    /// Uses memory that was zero before its first client.
    pub fn new(memory: M, locks: L) -> Self {
        Self {
            memory,
            locks,
            doorbell: None,
        }
    }

    /// Rings this doorbell when a call is opened. Without one the client rings none, even if its device has one.
    ///
    /// # Errors
    ///
    /// [`Error::NoDoorbell`] if the generation of the protocol has none.
    pub fn with_doorbell(mut self, doorbell: HostDoorbell) -> Result<Self, Error> {
        if !self.memory.layout().generation().has_doorbell() {
            return Err(Error::NoDoorbell);
        }
        self.doorbell = Some(doorbell);
        Ok(self)
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The locks of the ports.
    pub fn locks(&self) -> &L {
        &self.locks
    }

    /// Locks the first free port for the lanes of a mask and begins a call, which ends when it is dropped.
    pub fn try_open(&self, opcode: u32, mask: u64) -> Option<Call<'_, M, L>> {
        let mut ports = self.memory.layout().port_indices();
        ports.find_map(|port| self.try_open_at(port, opcode, mask))
    }

    /// Locks this port, if it is free, and begins a call.
    pub fn try_open_at(&self, port: PortIndex, opcode: u32, mask: u64) -> Option<Call<'_, M, L>> {
        if !self.locks.try_lock(port) {
            return None;
        }
        let outbox = self.memory.outbox(Side::Client, port);
        // An earlier call may have ended without waiting for its answer.
        if !Side::Client.owns(self.memory.inbox(Side::Client, port), outbox) {
            self.locks.unlock(port);
            return None;
        }
        self.memory.set_header(port, mask, opcode);
        if let Some(doorbell) = &self.doorbell {
            doorbell.ring();
        }
        Some(Call {
            client: self,
            handshake: Some(Handshake::new(Side::Client, port, outbox, mask)),
            is_sent: false,
        })
    }

    /// Waits for a free port and begins a call.
    pub fn open(&self, opcode: u32, mask: u64) -> Call<'_, M, L> {
        loop {
            if let Some(call) = self.try_open(opcode, mask) {
                return call;
            }
            self.locks.relax();
        }
    }
}

/// An open call. It begins with a packet to the server.
/// The example of [`Client`] sends and receives packets. A call occupies its port until it is dropped:
///
/// ```
/// use gpurpc::Layout;
/// use gpurpc::client::{Client, HostLocks};
/// use gpurpc::memory::Region;
///
/// let client = Client::new(Region::zeroed(Layout::new(1, 32)?)?, HostLocks::new());
/// let call = client.open(0x7800_0001, 0b101);
/// assert!(call.lanes().eq([0, 2]));
/// assert!(client.try_open(0x7800_0001, 0b1).is_none());
/// drop(call);
/// assert!(client.try_open(0x7800_0001, 0b1).is_some());
/// # Ok::<(), gpurpc::Error>(())
/// ```
#[derive(Debug)]
pub struct Call<'c, M: Memory, L: Locks> {
    client: &'c Client<M, L>,
    /// `None` after the call was dropped.
    handshake: Option<Handshake>,
    /// Whether the server has received a packet.
    is_sent: bool,
}

impl<M: Memory, L: Locks> Call<'_, M, L> {
    /// The port.
    pub fn port(&self) -> PortIndex {
        let handshake = self.handshake.as_ref();
        handshake.map_or(PortIndex::new(0), Handshake::port)
    }

    /// Waits for ownership of the packets, fills and sends them.
    pub fn send(&mut self, fill: impl FnOnce(&mut Packets<'_, M>)) {
        let memory = &self.client.memory;
        let Some(handshake) = &mut self.handshake else {
            return;
        };
        loop {
            if let Some(mut packets) = handshake.poll_send(memory) {
                fill(&mut packets);
                self.is_sent = true;
                return handshake.finish_send(memory);
            }
            self.client.locks.relax();
        }
    }

    /// Waits for packets of the server and reads them.
    pub fn recv<T>(&mut self, read: impl FnOnce(&Packets<'_, M>) -> T) -> Option<T> {
        let memory = &self.client.memory;
        let handshake = self.handshake.as_mut()?;
        let outbox = handshake.outbox();
        loop {
            let polled = handshake.poll_recv(memory);
            // The packets of an earlier call of this function are returned.
            self.is_sent |= handshake.outbox() != outbox;
            if let Some(packets) = polled {
                return Some(read(&packets));
            }
            self.client.locks.relax();
        }
    }

    /// Sends a message of each participating lane.
    pub fn send_n<'a>(&mut self, message: impl Fn(u32) -> &'a [u8]) {
        let largest = self.lanes().map(|lane| message(lane).len()).max();
        self.send(|packets| packets.write_first_chunks(&message));
        for offset in ChunkOffsets::after_first(largest.unwrap_or(0) as u64) {
            self.send(|packets| packets.write_chunks(offset as usize, &message));
        }
    }

    /// Receives a message for each lane: `on_chunk` is called with a lane, the size of its message, and the
    /// next bytes of it.
    pub fn recv_n(&mut self, mut on_chunk: impl FnMut(u32, u64, &[u8])) {
        let mut sizes = [0; 64];
        self.recv(|packets| {
            for lane in packets.lanes() {
                let mut bytes = [0; FIRST_CHUNK as usize];
                packets.read(lane, 1, &mut bytes);
                let size = packets.word(lane, 0);
                sizes[lane as usize] = size;
                on_chunk(lane, size, &bytes[..size.min(FIRST_CHUNK) as usize]);
            }
        });
        let largest = sizes.iter().copied().max().unwrap_or(0);
        for offset in ChunkOffsets::after_first(largest) {
            self.recv(|packets| {
                for lane in packets.lanes() {
                    let size = sizes[lane as usize];
                    let mut bytes = [0; PACKET_SIZE];
                    packets.read(lane, 0, &mut bytes);
                    let length = size.saturating_sub(offset).min(PACKET_SIZE as u64);
                    if length > 0 {
                        on_chunk(lane, size, &bytes[..length as usize]);
                    }
                }
            });
        }
    }

    /// The participating lanes.
    pub fn lanes(&self) -> Lanes {
        Lanes::from_mask(self.handshake.as_ref().map_or(0, Handshake::mask))
    }
}

impl<M: Memory, L: Locks> Drop for Call<'_, M, L> {
    fn drop(&mut self) {
        if let Some(mut handshake) = self.handshake.take() {
            let port = handshake.port();
            handshake.close(&self.client.memory);
            match &self.client.doorbell {
                // The server cannot end a call that it has not seen.
                Some(doorbell) if !self.is_sent => doorbell.cancel(),
                _ => {}
            }
            self.client.locks.unlock(port);
        }
    }
}
