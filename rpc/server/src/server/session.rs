//! Calls as state machines: what blocking handlers and the services of libc are built on.

use alloc::sync::Arc;
use core::task::Waker;

use super::budget::Budget;
use super::device_state::DeviceState;
use super::fault::Fault;
use super::ready_set::{ReadySet, port_waker};
#[cfg(feature = "blocking")]
use super::runners::Runners;
#[cfg(feature = "blocking")]
use super::serving_thread::ServingThread;
use crate::handshake::Handshake;
use crate::lanes::Lanes;
use crate::layout::{PACKET_WORDS, PortIndex};
use crate::memory::SharedMemory;
use crate::packets::{PacketCopies, Packets};

/// Whether a call has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The call waits: for the client, or for a wake by [`OpenCall::waker`].
    Pending,
    /// The call has ended; packets that the server owns return to the client.
    Done,
}

/// Serves the calls of one opcode on one port, one after another. It is created for the first of them and kept for the
/// others, so that a call allocates nothing.
pub(crate) trait Session: Send {
    /// Continues the call as far as possible without waiting. It is called first when the first packets of the call
    /// have arrived, then each time the client has answered or the waker was used.
    ///
    /// # Errors
    ///
    /// The reason why the call cannot continue. It is dropped, with this value: its port is not served again.
    fn step(&mut self, call: &mut OpenCall<'_>) -> Result<Step, Fault>;

    /// Releases what belongs to the call, which has ended. The next step begins another one.
    fn end(&mut self);
}

/// An open call, in the function that `BlockingCall::wait_for` polls.
///
/// ```
/// use gpurpc::server::OpenCall;
///
/// /// Copies each word once: the device may change it.
/// fn first_words(call: &mut OpenCall<'_>) -> Option<Vec<u64>> {
///     let mask = call.mask();
///     call.poll_recv_copies(|packets| {
///         assert_eq!(packets.mask(), mask);
///         packets.lanes().map(|lane| packets.get(lane)[0]).collect()
///     })
/// }
/// ```
pub struct OpenCall<'d> {
    pub(super) device: &'d Arc<DeviceState>,
    pub(super) handshake: &'d mut Handshake,
    pub(super) opcode: u32,
    pub(super) copies: &'d mut PacketCopies,
    pub(super) ready: &'d Arc<ReadySet>,
    pub(super) waker: &'d mut Option<Waker>,
    #[cfg(feature = "blocking")]
    pub(super) runners: &'d mut Runners,
    /// The only thread that may continue the call, if it is not the calling one.
    #[cfg(feature = "blocking")]
    pub(super) left_to: &'d mut Option<Arc<ServingThread>>,
}

impl OpenCall<'_> {
    /// Opcode of the call.
    #[inline]
    pub fn opcode(&self) -> u32 {
        self.opcode
    }

    /// Index of the port.
    #[inline]
    pub fn index(&self) -> PortIndex {
        self.handshake.port()
    }

    /// Bit mask of the participating lanes.
    #[inline]
    pub fn mask(&self) -> u64 {
        self.handshake.mask()
    }

    /// The participating lanes.
    #[inline]
    pub fn lanes(&self) -> Lanes {
        Lanes::from_mask(self.mask())
    }

    /// Memory budget of the device, for memory whose size is chosen by the client.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.device.budget
    }

    /// Reads packets of the client if they have arrived. Buffer ownership returns to the client, with everything
    /// written into the packets, on the next receive or at the end of the call.
    #[inline]
    pub fn poll_recv<T>(
        &mut self,
        read: impl FnOnce(&mut Packets<'_, SharedMemory>) -> T,
    ) -> Option<T> {
        let mut packets = self.handshake.poll_recv(&*self.device.memory)?;
        Some(read(&mut packets))
    }

    /// Fills packets and sends them if the server owns them. Packets that were just received keep their contents.
    #[inline]
    pub fn poll_send<T>(
        &mut self,
        fill: impl FnOnce(&mut Packets<'_, SharedMemory>) -> T,
    ) -> Option<T> {
        let mut packets = self.handshake.poll_send(&*self.device.memory)?;
        let value = fill(&mut packets);
        self.handshake.finish_send(&*self.device.memory);
        Some(value)
    }

    /// Like [`Self::poll_recv`], with private copies of the packets, which are written back.
    #[inline]
    pub fn poll_recv_copies<T>(&mut self, work: impl FnOnce(&mut PacketCopies) -> T) -> Option<T> {
        let mut packets = self.handshake.poll_recv(&*self.device.memory)?;
        packets.read_all(PACKET_WORDS, self.copies);
        let value = work(self.copies);
        packets.write_all(self.copies);
        Some(value)
    }

    /// Like [`Self::poll_send`], with private copies of the packets.
    #[inline]
    pub fn poll_send_copies<T>(&mut self, fill: impl FnOnce(&mut PacketCopies) -> T) -> Option<T> {
        let mut packets = self.handshake.poll_send(&*self.device.memory)?;
        packets.read_all(PACKET_WORDS, self.copies);
        let value = fill(self.copies);
        packets.write_all(self.copies);
        self.handshake.finish_send(&*self.device.memory);
        Some(value)
    }

    /// Makes the server continue this call, from any thread.
    pub fn waker(&mut self) -> &Waker {
        let (ready, port) = (self.ready, self.handshake.port());
        self.waker.get_or_insert_with(|| port_waker(ready, port))
    }
}
