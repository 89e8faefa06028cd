//! A call, as its handler sees it.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Poll;

use super::Fault;
use super::budget::{Budget, Reservation};
use crate::layout::PACKET_SIZE;
use crate::memory::{Region, Shared};
use crate::packets::{FIRST, Lanes, Packets, Parts};
use crate::turn::Turns;

/// What all ports of a device have in common.
#[derive(Debug)]
pub(crate) struct Common {
    pub memory: Region,
    pub budget: Arc<Budget>,
    /// Of each port: see [`State`].
    states: Vec<AtomicU32>,
}

impl Common {
    pub fn new(memory: Region, budget: Budget, ports: u32) -> Self {
        let states = (0..ports).map(|_| AtomicU32::new(0)).collect();
        Self {
            memory,
            budget: Arc::new(budget),
            states,
        }
    }

    /// What a port's call has come to.
    pub fn state(&self, port: u32) -> State {
        let bits = self.states[port as usize].load(Ordering::Relaxed);
        State {
            outbox: bits & 1,
            owns: bits & 2 != 0,
        }
    }
}

/// Where a call stands, for the device that polls it.
pub(crate) struct State {
    /// What the server has written last.
    pub outbox: u32,
    /// Whether the packets are the server's.
    pub owns: bool,
}

/// A call of a client, as its handler has it: a row of packets that are received and sent, in the order
/// that client and handler agreed on. A call begins with a packet of the client's.
///
/// A handler waits in these functions only: while it does, other calls are served.
#[derive(Debug)]
pub struct Port {
    turns: Turns,
    opcode: u32,
    common: Arc<Common>,
}

impl Port {
    pub(crate) fn new(turns: Turns, opcode: u32, common: Arc<Common>) -> Self {
        let port = Self {
            turns,
            opcode,
            common,
        };
        port.tell();
        port
    }

    /// What the client asks for.
    pub fn opcode(&self) -> u32 {
        self.opcode
    }

    /// The number of the port.
    pub fn index(&self) -> u32 {
        self.turns.port()
    }

    /// The lanes that take part.
    pub fn lanes(&self) -> Lanes {
        Lanes::of(self.turns.mask())
    }

    /// Waits for packets, and reads them. They are given back when the next are waited for, or the call
    /// ends, with what was written into them.
    pub async fn recv<T>(&mut self, read: impl FnOnce(&mut Packets<'_, Shared>) -> T) -> T {
        let mut read = Some(read);
        poll_fn(|_| {
            let packets = self.turns.received(&*self.common.memory);
            let read = packets.and_then(|packets| Some((packets, read.take()?)));
            let result = match read {
                Some((mut packets, read)) => Poll::Ready(read(&mut packets)),
                None => Poll::Pending,
            };
            self.tell();
            result
        })
        .await
    }

    /// Waits until the packets can be filled, and sends them. Those that were just received hold what
    /// they held.
    pub async fn send<T>(&mut self, fill: impl FnOnce(&mut Packets<'_, Shared>) -> T) -> T {
        let mut fill = Some(fill);
        poll_fn(|_| {
            let packets = self.turns.sendable(&*self.common.memory);
            let fill = packets.and_then(|packets| Some((packets, fill.take()?)));
            let result = match fill {
                Some((mut packets, fill)) => {
                    let value = fill(&mut packets);
                    self.turns.sent(&*self.common.memory);
                    Poll::Ready(value)
                }
                None => Poll::Pending,
            };
            self.tell();
            result
        })
        .await
    }

    /// Waits for packets, and sends them back as the answer.
    pub async fn recv_and_send<T>(
        &mut self,
        work: impl FnOnce(&mut Packets<'_, Shared>) -> T,
    ) -> T {
        let value = self.recv(work).await;
        self.send(|_| {}).await;
        value
    }

    /// Waits for a message of each lane.
    ///
    /// # Errors
    ///
    /// If one is larger than [`Limits`](super::Limits) allow, or all calls together hold too much. The
    /// call cannot go on then.
    pub async fn recv_n(&mut self) -> Result<Messages, Fault> {
        let budget = Arc::clone(&self.common.budget);
        let mut messages = self
            .recv(|packets| Messages::of_first(packets, &budget))
            .await?;
        for at in Parts::after_first(messages.largest()) {
            self.recv(|packets| messages.take(packets, at as usize))
                .await;
        }
        Ok(messages)
    }

    /// Sends a message to each lane.
    pub async fn send_n<'a>(&mut self, message: impl Fn(u32) -> &'a [u8]) {
        let largest = self.lanes().map(|lane| message(lane).len()).max();
        self.send(|packets| {
            for lane in packets.lanes() {
                let bytes = message(lane);
                packets.set_word(lane, 0, bytes.len() as u64);
                packets.write(lane, 1, bytes);
            }
        })
        .await;
        for at in Parts::after_first(largest.unwrap_or(0) as u64) {
            self.send(|packets| {
                for lane in packets.lanes() {
                    let left = message(lane).get(at as usize..).unwrap_or_default();
                    packets.write(lane, 0, left);
                }
            })
            .await;
        }
    }

    /// What the calls of the device may hold: for memory that a handler allocates because a client says
    /// so.
    pub fn budget(&self) -> Arc<Budget> {
        Arc::clone(&self.common.budget)
    }

    /// Ends the call: the client gets its packets back. Gives what is in the outbox then.
    pub(crate) fn close(self) -> u32 {
        self.turns.close(&*self.common.memory)
    }

    /// Whether it is this one of the ports that have this in common.
    pub(crate) fn is(&self, common: &Arc<Common>, port: u32) -> bool {
        Arc::ptr_eq(&self.common, common) && self.index() == port
    }

    fn tell(&self) {
        let bits = self.turns.outbox() & 1 | u32::from(self.turns.owns()) << 1;
        let state = &self.common.states[self.index() as usize];
        state.store(bits, Ordering::Relaxed);
    }
}

/// A message of each lane that takes part.
#[derive(Debug)]
pub struct Messages {
    bytes: Vec<u8>,
    /// Of each of 64 lanes, where its message begins and ends; nothing of one that takes no part.
    ranges: [Option<(usize, usize)>; 64],
    _reserved: Reservation,
}

impl Messages {
    /// The message of a lane, if it takes part.
    pub fn get(&self, lane: u32) -> Option<&[u8]> {
        let (start, end) = (*self.ranges.get(lane as usize)?)?;
        self.bytes.get(start..end)
    }

    /// The message of a lane, to be changed in place.
    pub fn get_mut(&mut self, lane: u32) -> Option<&mut [u8]> {
        let (start, end) = (*self.ranges.get(lane as usize)?)?;
        self.bytes.get_mut(start..end)
    }

    fn largest(&self) -> u64 {
        let sizes = self.ranges.iter().flatten();
        sizes.map(|(start, end)| end - start).max().unwrap_or(0) as u64
    }

    /// Room for all messages, and the beginning of each.
    fn of_first(packets: &Packets<'_, Shared>, budget: &Arc<Budget>) -> Result<Self, Fault> {
        let limit = budget.limits.message;
        let (mut ranges, mut sum) = ([None; 64], 0_usize);
        for lane in packets.lanes() {
            // Read once: it may change.
            let size = packets.word(lane, 0);
            let bytes = usize::try_from(size).ok().filter(|bytes| *bytes <= limit);
            let end = bytes.and_then(|bytes| sum.checked_add(bytes));
            let end = end.ok_or(Fault::MessageSize { size, limit })?;
            ranges[lane as usize] = Some((sum, end));
            sum = end;
        }
        let mut messages = Self {
            _reserved: budget.reserve(sum)?,
            bytes: vec![0; sum],
            ranges,
        };
        for lane in packets.lanes() {
            if let Some(message) = messages.get_mut(lane) {
                let first = message.len().min(FIRST as usize);
                packets.read(lane, 1, &mut message[..first]);
            }
        }
        Ok(messages)
    }

    /// The next bytes of each.
    fn take(&mut self, packets: &Packets<'_, Shared>, at: usize) {
        for lane in packets.lanes() {
            let left = self.get_mut(lane).and_then(|message| message.get_mut(at..));
            if let Some(left) = left {
                let part = left.len().min(PACKET_SIZE);
                packets.read(lane, 0, &mut left[..part]);
            }
        }
    }
}
