//! An open call, for its handler.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::Poll;

use super::budget::Budget;
use super::device_state::DeviceState;
use super::fault::Fault;
use super::messages::Messages;
use super::refusal::RefusedCall;
use crate::handshake::Handshake;
use crate::lanes::Lanes;
use crate::layout::PortIndex;
use crate::memory::SharedMemory;
use crate::packets::{ChunkOffsets, Packets};

/// An open call of a client: packets that are received and sent in the order that client and handler agreed
/// on. The first packet is the client's.
///
/// A handler waits only in these functions; meanwhile other calls are served.
#[derive(Debug)]
pub struct Port {
    handshake: Handshake,
    opcode: u32,
    device: Arc<DeviceState>,
}

impl Port {
    pub(crate) fn new(handshake: Handshake, opcode: u32, device: Arc<DeviceState>) -> Self {
        let port = Self {
            handshake,
            opcode,
            device,
        };
        port.publish_state();
        port
    }

    /// Opcode of the call.
    pub fn opcode(&self) -> u32 {
        self.opcode
    }

    /// Index of the port.
    pub fn index(&self) -> PortIndex {
        self.handshake.port()
    }

    /// The participating lanes.
    pub fn lanes(&self) -> Lanes {
        Lanes::from_mask(self.handshake.mask())
    }

    /// Waits for packets and reads them. Buffer ownership returns to the client, with everything written
    /// into the packets, on the next receive or at the end of the call.
    pub async fn recv<T>(&mut self, read: impl FnOnce(&mut Packets<'_, SharedMemory>) -> T) -> T {
        let mut read = Some(read);
        poll_fn(|_| {
            let packets = self.handshake.poll_recv(&*self.device.memory);
            let read = packets.and_then(|packets| Some((packets, read.take()?)));
            let result = match read {
                Some((mut packets, read)) => Poll::Ready(read(&mut packets)),
                None => Poll::Pending,
            };
            self.publish_state();
            result
        })
        .await
    }

    /// Waits for ownership of the packets, fills and sends them. Packets that were just received keep their
    /// contents.
    pub async fn send<T>(&mut self, fill: impl FnOnce(&mut Packets<'_, SharedMemory>) -> T) -> T {
        let mut fill = Some(fill);
        poll_fn(|_| {
            let packets = self.handshake.poll_send(&*self.device.memory);
            let fill = packets.and_then(|packets| Some((packets, fill.take()?)));
            let result = match fill {
                Some((mut packets, fill)) => {
                    let value = fill(&mut packets);
                    self.handshake.finish_send(&*self.device.memory);
                    Poll::Ready(value)
                }
                None => Poll::Pending,
            };
            self.publish_state();
            result
        })
        .await
    }

    /// Waits for packets, changes them by `work`, and sends them back as the answer.
    pub async fn recv_and_send<T>(
        &mut self,
        work: impl FnOnce(&mut Packets<'_, SharedMemory>) -> T,
    ) -> T {
        let value = self.recv(work).await;
        self.send(|_| {}).await;
        value
    }

    /// Waits for a message of each lane.
    ///
    /// # Errors
    ///
    /// [`Fault::MessageTooLarge`] or [`Fault::OutOfMemory`] if the messages exceed the
    /// [`Limits`](super::Limits). The call cannot continue then.
    pub async fn recv_n(&mut self) -> Result<Messages, Fault> {
        let budget = Arc::clone(&self.device.budget);
        let mut messages = self
            .recv(|packets| Messages::from_first_packets(packets, &budget))
            .await?;
        for offset in ChunkOffsets::after_first(messages.largest()) {
            self.recv(|packets| messages.read_chunks(packets, offset as usize))
                .await;
        }
        Ok(messages)
    }

    /// Sends a message to each lane.
    pub async fn send_n<'a>(&mut self, message: impl Fn(u32) -> &'a [u8]) {
        let largest = self.lanes().map(|lane| message(lane).len()).max();
        self.send(|packets| packets.write_first_chunks(&message))
            .await;
        for offset in ChunkOffsets::after_first(largest.unwrap_or(0) as u64) {
            self.send(|packets| packets.write_chunks(offset as usize, &message))
                .await;
        }
    }

    /// Memory budget of the device, for memory whose size is chosen by the client.
    pub fn budget(&self) -> Arc<Budget> {
        Arc::clone(&self.device.budget)
    }

    /// Reports to [`Handlers::on_refusal`](super::Handlers::on_refusal) that the host refuses the request. The handler then answers with an
    /// error, so that the client continues; a handler that cannot returns the fault instead, and the call is dropped.
    pub fn refuse(&self, reason: Fault) {
        self.device.refusals.report(&RefusedCall {
            port: self.index(),
            opcode: self.opcode,
            reason,
        });
    }

    /// Returns the state of the call to the device.
    pub(crate) fn into_handshake(self) -> Handshake {
        self.handshake
    }

    /// Whether this is the given port of the given device.
    pub(crate) fn is_port_of(&self, device: &Arc<DeviceState>, port: PortIndex) -> bool {
        Arc::ptr_eq(&self.device, device) && self.index() == port
    }

    fn publish_state(&self) {
        self.device.set_port(&self.handshake);
    }
}
