//! Messages of any size, in several packets.

use alloc::sync::Arc;
use core::ops::Range;

use super::budget::Budget;
use super::buffer::Buffer;
use super::fault::Fault;
use super::session::OpenCall;
use crate::layout::PACKET_SIZE;
use crate::memory::SharedMemory;
use crate::packets::{ChunkOffsets, FIRST_CHUNK, Packets};

/// Receive of a message of each lane, in several steps, which `BlockingCall::wait_for` polls.
///
/// ```
/// use gpurpc::server::{Fault, OpenCall, RecvN};
///
/// /// Bytes of the messages of all lanes.
/// fn poll_size(receive: &mut RecvN, call: &mut OpenCall<'_>) -> Result<Option<usize>, Fault> {
///     let Some(messages) = receive.poll(call)? else {
///         return Ok(None);
///     };
///     Ok(Some(call.lanes().filter_map(|lane| messages.get(lane)).map(<[u8]>::len).sum()))
/// }
/// ```
#[derive(Debug, Default)]
pub struct RecvN(Option<(Messages, ChunkOffsets)>);

impl RecvN {
    /// Continues the receive. Returns the messages if the last packets have arrived.
    ///
    /// # Errors
    ///
    /// [`Fault::MessageTooLarge`] or [`Fault::OutOfMemory`] if the messages exceed the
    /// [`Limits`](super::Limits). The call cannot continue then.
    pub fn poll(&mut self, call: &mut OpenCall<'_>) -> Result<Option<Messages>, Fault> {
        if self.0.is_none() {
            let budget = Arc::clone(call.budget());
            let read =
                |packets: &mut Packets<'_, _>| Messages::from_first_packets(packets, &budget);
            let Some(messages) = call.poll_recv(read) else {
                return Ok(None);
            };
            let messages = messages?;
            let offsets = ChunkOffsets::after_first(messages.largest());
            self.0 = Some((messages, offsets));
        }
        while let Some((messages, offsets)) = &mut self.0 {
            let Some(offset) = offsets.peek() else { break };
            let read =
                |packets: &mut Packets<'_, _>| messages.read_chunks(packets, offset as usize);
            if call.poll_recv(read).is_none() {
                return Ok(None);
            }
            offsets.next();
        }
        Ok(self.0.take().map(|(messages, _)| messages))
    }
}

/// Send of a message to each lane, in several steps, which `BlockingCall::wait_for` polls.
///
/// ```
/// use gpurpc::server::{OpenCall, SendN};
///
/// /// Sends a text to each lane. Returns whether all packets are sent.
/// fn poll_greeting(send: &mut SendN, call: &mut OpenCall<'_>) -> bool {
///     send.poll(call, |_| b"hello")
/// }
/// ```
#[derive(Debug, Default)]
pub struct SendN(Option<ChunkOffsets>);

impl SendN {
    /// Continues the send of these messages, which are the same in each step. Returns whether all packets are sent.
    pub fn poll<'a>(&mut self, call: &mut OpenCall<'_>, message: impl Fn(u32) -> &'a [u8]) -> bool {
        let offsets = match &mut self.0 {
            Some(offsets) => offsets,
            None => {
                let largest = call.lanes().map(|lane| message(lane).len()).max();
                let sent = call.poll_send(|packets| packets.write_first_chunks(&message));
                if sent.is_none() {
                    return false;
                }
                let largest = largest.unwrap_or(0) as u64;
                self.0.insert(ChunkOffsets::after_first(largest))
            }
        };
        while let Some(offset) = offsets.peek() {
            let sent = call.poll_send(|packets| packets.write_chunks(offset as usize, &message));
            if sent.is_none() {
                return false;
            }
            offsets.next();
        }
        self.0 = None;
        true
    }
}

/// Messages of all participating lanes.
///
/// ```
/// use gpurpc::Lanes;
/// use gpurpc::server::Messages;
///
/// fn make_uppercase(texts: &mut Messages, lanes: Lanes) {
///     for lane in lanes {
///         texts.get_mut(lane).unwrap_or_default().make_ascii_uppercase();
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Messages {
    bytes: Buffer,
    /// Range of the message of each of 64 lanes; `None` for a lane that does not participate.
    ranges: [Option<Range<usize>>; 64],
}

impl Messages {
    /// The message of a lane, if it participates.
    pub fn get(&self, lane: u32) -> Option<&[u8]> {
        self.bytes.get(self.range(lane)?)
    }

    /// The message of a lane, for changes in place.
    pub fn get_mut(&mut self, lane: u32) -> Option<&mut [u8]> {
        let range = self.range(lane)?;
        self.bytes.get_mut(range)
    }

    fn range(&self, lane: u32) -> Option<Range<usize>> {
        self.ranges.get(lane as usize)?.clone()
    }

    pub(super) fn largest(&self) -> u64 {
        self.ranges
            .iter()
            .flatten()
            .map(Range::len)
            .max()
            .unwrap_or(0) as u64
    }

    /// Allocates memory for all messages and reads the beginning of each.
    pub(super) fn from_first_packets(
        packets: &Packets<'_, SharedMemory>,
        budget: &Arc<Budget>,
    ) -> Result<Self, Fault> {
        let limit = budget.limits.message;
        let (mut ranges, mut sum) = ([const { None }; 64], 0_usize);
        for lane in packets.lanes() {
            // Read once, because the client may change it.
            let size = packets.word(lane, 0);
            let bytes = usize::try_from(size).ok().filter(|bytes| *bytes <= limit);
            let end = bytes.and_then(|bytes| sum.checked_add(bytes));
            let end = end.ok_or(Fault::MessageTooLarge { size, limit })?;
            ranges[lane as usize] = Some(sum..end);
            sum = end;
        }
        let mut messages = Self {
            bytes: budget.allocate(sum)?,
            ranges,
        };
        for lane in packets.lanes() {
            if let Some(message) = messages.get_mut(lane) {
                let first = message.len().min(FIRST_CHUNK as usize);
                packets.read(lane, 1, &mut message[..first]);
            }
        }
        Ok(messages)
    }

    /// Reads the chunk of each message that begins at `offset`.
    pub(super) fn read_chunks(&mut self, packets: &Packets<'_, SharedMemory>, offset: usize) {
        for lane in packets.lanes() {
            let message = self.get_mut(lane);
            if let Some(rest) = message.and_then(|message| message.get_mut(offset..)) {
                let size = rest.len().min(PACKET_SIZE);
                packets.read(lane, 0, &mut rest[..size]);
            }
        }
    }
}
