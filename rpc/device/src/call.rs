//! Calls of the host.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{Ordering, fence};

use gpurpc::PACKET_WORDS;

use crate::arch;
use crate::client::{CLIENT, FENCED, Packet};

/// An open call of the host. It ends when it is dropped.
///
/// All lanes of the warp that open a call together take part in it, each with a packet of its own, until they drop it:
/// they execute the same sequence of `send`, `recv`, `send_n` and `recv_n`, the one that the host's handler
/// expects. The first packet of a call goes to the host. If the lanes of a call diverge, the call hangs, or transfers
/// wrong data.
///
/// A call holds one of the host's ports. A call that is opened during another one needs a second port.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::Call;
///
/// const ADD: u32 = (b'e' as u32) << 24 | 1;
///
/// fn add(a: u64, b: u64) -> u64 {
///     let mut call = Call::open(ADD);
///     call.send([a, b]);
///     let [sum] = call.recv();
///     sum
/// }
/// # example::serve(ADD, |words| words[0] += words[1], || assert_eq!(add(40, 2), 42));
/// ```
pub struct Call {
    packet: &'static Packet,
    /// The participating lanes.
    mask: u64,
    port: u32,
    /// Value of the outbox.
    outbox: u32,
    /// Whether the packets are those of the host.
    received: bool,
    /// Whether the client owns the packets.
    owned: bool,
    /// A call belongs to its lane.
    lane: PhantomData<*const ()>,
}

impl Call {
    /// Waits for a free port and begins a call of the active lanes with this opcode.
    ///
    /// A kernel traps here if the host has not initialized its client.
    #[cfg_attr(
        not(any(target_arch = "nvptx64", target_arch = "amdgpu")),
        track_caller
    )]
    // The active lanes are those of one place in the program.
    #[inline(always)]
    pub fn open(opcode: u32) -> Self {
        Self::open_for(arch::active_mask(opcode), opcode)
    }

    /// Begins a call of lanes that execute this together.
    #[inline(never)]
    pub(crate) fn open_for(mask: u64, opcode: u32) -> Self {
        let client = &CLIENT;
        let is_first = is_first(mask);
        let ports = client.port_count();
        if ports == 0 {
            arch::trap();
        }
        let mut port = 0;
        let outbox = loop {
            // One lane locks the port for all of them.
            let has_locked = is_first && client.try_lock(port);
            if arch::ballot(mask, has_locked) != 0 {
                arch::fence_device();
                let outbox = client.outbox(port).load(FENCED);
                let inbox = client.inbox(port).load(FENCED);
                fence(Ordering::AcqRel);
                // An earlier call may have ended without waiting for its answer, which may arrive now: lanes must
                // agree.
                if arch::ballot(mask, inbox == outbox) == mask {
                    break outbox;
                }
                unlock(port, mask);
            }
            port += 1;
            if port == ports {
                port = 0;
                arch::pause();
            }
        };
        if is_first {
            let header = client.header(port);
            header.mask.store(mask, Ordering::Relaxed);
            header.opcode.store(opcode, Ordering::Relaxed);
        }
        arch::sync(mask);
        #[cfg(feature = "llvm-23")]
        {
            if let Some(event) = is_first.then(|| client.ring()).flatten() {
                arch::interrupt(event);
            }
            arch::sync(mask);
        }
        Self {
            packet: client.packet(port, arch::warp_size(), arch::lane_id()),
            mask,
            port,
            outbox,
            received: false,
            owned: true,
            lane: PhantomData,
        }
    }

    /// Sends a packet with up to 8 words. The other words keep their last values.
    pub fn send<const N: usize>(&mut self, words: [u64; N]) {
        const { assert!(N <= PACKET_WORDS, "a packet has 8 words") };
        self.wait();
        for (to, word) in self.packet.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.pass();
    }

    /// Waits for a packet of the host and returns its first words, up to 8.
    ///
    /// Waits indefinitely if the host has dropped the call.
    pub fn recv<const N: usize>(&mut self) -> [u64; N] {
        const { assert!(N <= PACKET_WORDS, "a packet has 8 words") };
        self.next_packet();
        core::array::from_fn(|word| self.word(word))
    }

    /// Sends a message of any size, which may differ between lanes.
    pub fn send_n(&mut self, message: &[u8]) {
        self.send_parts(message, &[]);
    }

    /// Sends a message in two parts.
    #[inline(never)]
    pub(crate) fn send_parts(&mut self, first: &[u8], second: &[u8]) {
        let size = first.len() + second.len();
        self.wait();
        self.packet[0].store(size as u64, Ordering::Relaxed);
        // The size takes the first word of the first packet.
        let (mut position, mut words) = (0, 1..PACKET_WORDS);
        loop {
            for word in words {
                if position < size {
                    let bytes = next_bytes(first, second, position);
                    self.packet[word].store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
                    position += bytes.len();
                }
            }
            self.pass();
            if arch::ballot(self.mask, position < size) == 0 {
                return;
            }
            self.wait();
            words = 0..PACKET_WORDS;
        }
    }

    /// Receives a message, whose size may differ between lanes, and returns its size in bytes. Bytes for which `message`
    /// has no room are discarded.
    pub fn recv_n(&mut self, message: &mut [u8]) -> usize {
        self.next_packet();
        let size = self.word(0) as usize;
        let (mut position, mut words) = (0, 1..PACKET_WORDS);
        loop {
            for word in words {
                if position < size {
                    let bytes = self.word(word).to_ne_bytes();
                    let rest = message.get_mut(position..).unwrap_or_default();
                    let count = bytes.len().min(size - position);
                    for (to, byte) in rest.iter_mut().zip(&bytes[..count]) {
                        *to = *byte;
                    }
                    position += count;
                }
            }
            if arch::ballot(self.mask, position < size) == 0 {
                return size;
            }
            self.next_packet();
            words = 0..PACKET_WORDS;
        }
    }

    /// Waits for packets of the host, after it has received the previous ones back.
    fn next_packet(&mut self) {
        if self.received {
            self.pass();
        }
        self.wait();
        self.received = true;
    }

    fn word(&self, index: usize) -> u64 {
        self.packet[index].load(Ordering::Relaxed)
    }

    /// Waits until the client owns the packets. A GPU reads the mailboxes over its bus, and a fence waits for that: no
    /// more of either than necessary.
    fn wait(&mut self) {
        if self.owned {
            return;
        }
        while CLIENT.inbox(self.port).load(FENCED) != self.outbox {
            arch::pause();
        }
        fence(Ordering::AcqRel);
        arch::sync(self.mask);
        self.owned = true;
    }

    /// Passes the packets to the host.
    fn pass(&mut self) {
        self.outbox ^= 1;
        self.received = false;
        self.owned = false;
        // Together they order the accesses of all lanes before the store.
        arch::sync(self.mask);
        fence(Ordering::AcqRel);
        if is_first(self.mask) {
            let outbox = CLIENT.outbox(self.port);
            outbox.store(self.outbox, FENCED);
        }
        arch::sync(self.mask);
    }
}

/// Packets that the host has not received yet are received later.
impl Drop for Call {
    fn drop(&mut self) {
        if !arch::is_lost(self.mask) {
            unlock(self.port, self.mask);
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("port", &self.port)
            .field("mask", &self.mask)
            .finish_non_exhaustive()
    }
}

/// Unlocks a port for all lanes.
fn unlock(port: u32, mask: u64) {
    arch::sync(mask);
    arch::fence_device();
    if is_first(mask) {
        CLIENT.unlock(port);
    }
    arch::sync(mask);
}

/// Whether this lane is the first one of a mask.
fn is_first(mask: u64) -> bool {
    mask & ((1 << arch::lane_id()) - 1) == 0
}

/// Up to 8 bytes of a message in two parts; the rest is zero.
fn next_bytes(first: &[u8], second: &[u8], position: usize) -> [u8; 8] {
    if let Some(bytes) = first.get(position..).and_then(<[u8]>::first_chunk) {
        return *bytes;
    }
    core::array::from_fn(|offset| {
        let index = position + offset;
        let byte = first.get(index);
        byte.or_else(|| second.get(index - first.len()))
            .copied()
            .unwrap_or(0)
    })
}
