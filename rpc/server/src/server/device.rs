//! Ports of one device: finds those that the client has written to, and serves them.

mod slots;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};
use core::task::Waker;

use slots::{Block, Slot, State};

use super::budget::{Budget, Limits};
use super::catch_panic::catch_panic;
use super::device_state::DeviceState;
use super::doorbell::Doorbell;
use super::fault::Fault;
use super::handler::{DroppedCall, Handler, Handlers, Warp};
#[cfg(feature = "blocking")]
use super::parked::Parked;
use super::ready_set::ReadySet;
#[cfg(feature = "blocking")]
use super::runners::Runners;
#[cfg(feature = "blocking")]
use super::serving_thread::end_abandoned;
use super::session::{OpenCall, Step};
use crate::error::Error;
use crate::handshake::Handshake;
use crate::lanes::Lanes;
use crate::layout::PortIndex;
use crate::memory::{Memory, Region, Side};
use crate::opcode_encoding::Opcodes;
use crate::packets::{PacketCopies, Packets};

/// Number of blocks that are scanned before those of the last calls are scanned again.
const SCANS: usize = 8;

/// Ports of a device, polled by one thread at a time.
///
/// ```
/// use std::sync::Arc;
///
/// use gpurpc::Layout;
/// use gpurpc::memory::Region;
/// use gpurpc::server::{Device, Handlers, Limits};
///
/// let memory = Region::zeroed(Layout::new(8, 32)?)?;
/// let mut device = Device::new(memory, Arc::new(Handlers::new()), Limits::default());
/// // No client has called.
/// assert!(!device.poll());
/// assert_eq!((device.open_calls(), device.dropped_calls()), (0, 0));
/// # Ok::<(), gpurpc::Error>(())
/// ```
pub struct Device {
    state: Arc<DeviceState>,
    handlers: Arc<Handlers>,
    opcodes: Opcodes,
    /// From the program: the device can change the copy in the shared memory.
    doorbell: Option<Doorbell>,
    #[cfg(feature = "std")]
    announces_kernels: bool,
    slots: Vec<Slot>,
    open_calls: usize,
    /// Bits of the inboxes of each block that need no action.
    idle_inboxes: Vec<u64>,
    /// The last two blocks that needed action. They are scanned more often.
    recent: [Block; 2],
    ready: Arc<ReadySet>,
    /// Copies of the packets of the call that is being served.
    copies: Box<PacketCopies>,
    /// Opcode of the last call, and index of its handler.
    last: (u32, Option<usize>),
    #[cfg(feature = "blocking")]
    runners: Runners,
    #[cfg(feature = "blocking")]
    parked: Parked,
}

impl Device {
    /// Serves the client in this memory, whose generation of the protocol is that of the layout.
    pub fn new(memory: Region, handlers: Arc<Handlers>, limits: Limits) -> Self {
        let ports = memory.layout().ports();
        let opcodes = memory.layout().generation().opcodes;
        // An earlier server may have left a doorbell that no longer exists.
        memory.clear_doorbell();
        let mut slots = Vec::new();
        for port in memory.layout().port_indices() {
            // An earlier server may have left values in the outboxes.
            let outbox = memory.outbox(Side::Server, port);
            slots.push(Slot {
                state: State::Idle,
                handshake: Handshake::new(Side::Server, port, outbox, 0),
                opcode: 0,
                session: None,
                waker: None,
            });
        }
        let mut idle_inboxes = vec![0; ports.div_ceil(64) as usize];
        for (slot, port) in slots.iter().zip(0_u32..) {
            let bit = u64::from(slot.handshake.outbox()) << (port % 64);
            idle_inboxes[port as usize / 64] |= bit;
        }
        let budget = Budget::new(limits);
        let state = DeviceState::new(memory, handlers.refusals.clone(), budget, ports);
        Self {
            state: Arc::new(state),
            last: (0, handlers.index_of(0)),
            handlers,
            opcodes,
            doorbell: None,
            #[cfg(feature = "std")]
            announces_kernels: false,
            slots,
            open_calls: 0,
            idle_inboxes,
            recent: [Block(0); 2],
            ready: Arc::new(ReadySet::new(ports, Waker::noop().clone())),
            copies: Box::new(PacketCopies::new()),
            #[cfg(feature = "blocking")]
            runners: Runners::new(limits.stack),
            #[cfg(feature = "blocking")]
            parked: Parked::default(),
        }
    }

    /// Gives the device a doorbell, before its first client.
    ///
    /// # Errors
    ///
    /// [`Error::NoDoorbell`] if the generation of the protocol has none.
    pub fn with_doorbell(mut self, doorbell: Doorbell) -> Result<Self, Error> {
        self.state.memory.set_doorbell(&doorbell)?;
        self.doorbell = Some(doorbell);
        Ok(self)
    }

    /// States that the program announces all kernels of the device, with
    /// [`Server::begin_kernel`](super::Server::begin_kernel) and its counterpart. While none runs, the server does not
    /// poll the device.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn with_announced_kernels(mut self) -> Self {
        self.announces_kernels = true;
        self
    }

    /// Wakes the server when a call that waits for something other than its client can continue.
    #[cfg(feature = "std")]
    pub(super) fn set_waker(&mut self, waker: Waker) {
        self.ready = Arc::new(ReadySet::new(self.slots.len() as u32, waker));
        for (slot, port) in self.slots.iter_mut().zip(0_u32..) {
            slot.waker = None;
            if matches!(slot.state, State::Open) {
                self.ready.insert(PortIndex::new(port));
            }
        }
    }

    #[cfg(feature = "std")]
    pub(super) fn announces_kernels(&self) -> bool {
        self.announces_kernels
    }

    #[cfg(feature = "std")]
    pub(super) fn has_doorbell(&self) -> bool {
        self.doorbell.is_some()
    }

    /// The memory that is served.
    pub fn memory(&self) -> &Region {
        &self.state.memory
    }

    /// Number of calls that have begun and have neither ended nor been dropped.
    pub fn open_calls(&self) -> usize {
        self.open_calls
    }

    /// Number of open calls that wait for a thread of the host, not for the client.
    pub fn working_calls(&self) -> usize {
        if self.open_calls == 0 {
            return 0;
        }
        self.slots
            .iter()
            .filter(|slot| matches!(slot.state, State::Open) && slot.handshake.owns())
            .count()
    }

    /// Number of ports that are no longer served, each because of a reported fault.
    pub fn dropped_calls(&self) -> usize {
        self.slots
            .iter()
            .filter(|slot| matches!(slot.state, State::Dropped))
            .count()
    }

    /// Serves a port again whose call was dropped. An open call on it is abandoned: its handler is dropped, no fault is
    /// reported. Returns whether there was such a call; idle ports, and ports that do not exist, are left alone.
    ///
    /// No code of the device may be in a call on this port: its kernels have ended. The client must be unlocked, which
    /// a copy of [`Layout::client`](crate::Layout::client) is. A call whose client still waits ends without an answer,
    /// with the packets as they are.
    pub fn reset_port(&mut self, port: PortIndex) -> bool {
        let Some(slot) = self.slots.get_mut(port.slot()) else {
            return false;
        };
        match slot.state {
            State::Idle => return false,
            State::Open => {
                self.open_calls -= 1;
                if let Some(doorbell) = &self.doorbell {
                    doorbell.count_ended_call();
                }
            }
            State::Dropped => {}
        }
        let memory = &self.state.memory;
        // Equal mailboxes: the client owns the port.
        let inbox = memory.inbox(Side::Server, port);
        memory.set_outbox(Side::Server, port, inbox);
        slot.state = State::Idle;
        slot.session = None;
        slot.handshake = Handshake::new(Side::Server, port, inbox, 0);
        self.set_idle_inbox(port, inbox);
        true
    }

    /// Calls [`Self::reset_port`] for all ports, for the next kernel of a device. Returns the number of ports that were
    /// reset. Calls that have not begun are served as usual.
    pub fn reset_ports(&mut self) -> usize {
        let ports = self.state.memory.layout().port_indices();
        ports.filter(|port| self.reset_port(*port)).count()
    }

    /// Polls all ports once and serves those that need it. Returns whether any did.
    ///
    /// Each port is polled once, and ports near the most recently active ones more often: a single client
    /// is served at once, and no port delays another for longer than one scan.
    pub fn poll(&mut self) -> bool {
        #[cfg(feature = "blocking")]
        end_abandoned();
        self.poll_ports()
    }

    /// As [`Self::poll`], without the abandoned handlers of this thread.
    pub(super) fn poll_ports(&mut self) -> bool {
        let mut any = false;
        if self.ready.has_any() {
            for port in self.ready.drain() {
                any = true;
                self.step(port);
            }
        }
        #[cfg(feature = "blocking")]
        while let Some(port) = self.parked.next() {
            any = true;
            self.step(port);
        }
        let blocks = self.idle_inboxes.len();
        let mut first = 0;
        while first < blocks {
            let next = blocks.min(first + SCANS);
            for block in first..next {
                any |= self.scan(Block(block));
            }
            if blocks > SCANS {
                // Blocks that were just scanned are skipped.
                for recent in self.recent {
                    if !(first..next).contains(&recent.0) {
                        any |= self.scan(recent);
                    }
                }
            }
            first = next;
        }
        any
    }

    /// Serves the ports of a block. Returns whether any inbox has changed.
    #[inline]
    fn scan(&mut self, block: Block) -> bool {
        let inboxes = self.state.memory.nonzero_inboxes(block.port(0));
        let changed = inboxes ^ self.idle_inboxes[block.0];
        if changed == 0 {
            return false;
        }
        if !self.recent.contains(&block) {
            self.recent = [block, self.recent[0]];
        }
        // Makes visible what clients wrote before.
        fence(Ordering::Acquire);
        for bit in Lanes::from_mask(changed) {
            self.inbox_changed(block.port(bit), (inboxes >> bit & 1) as u32);
        }
        true
    }

    #[inline]
    fn inbox_changed(&mut self, port: PortIndex, inbox: u32) {
        let slot = &self.slots[port.slot()];
        match slot.state {
            State::Idle if Side::Server.owns(inbox, slot.handshake.outbox()) => self.begin(port),
            State::Open if !slot.handshake.owns() => self.step(port),
            // The client wrote out of turn, or to a dropped port: ignored until the next change.
            _ => self.set_idle_inbox(port, inbox),
        }
    }

    /// Begins a call whose first packets have arrived.
    fn begin(&mut self, port: PortIndex) {
        let memory = &self.state.memory;
        // Each is read once, because the client may change it.
        let (mask, encoded) = (memory.mask(port), memory.opcode(port));
        let packets = Packets::predicted(&**memory, port, mask);
        let opcode = self.opcodes.decode(encoded);
        if self.last.0 != opcode {
            self.last = (opcode, self.handlers.index_of(opcode));
        }
        let slot = &mut self.slots[port.slot()];
        slot.opcode = opcode;
        slot.handshake =
            Handshake::new(Side::Server, port, slot.handshake.outbox(), packets.mask());
        let indexed_handler = match self.last.1 {
            Some(index) => self.handlers.get(index).map(|handler| (index, handler)),
            None => None,
        };
        let Some((index, handler)) = indexed_handler else {
            return self.drop_call(port, Fault::UnknownOpcode);
        };
        let copies = &mut *self.copies;
        let answered = match handler {
            Handler::Warp(words, work) => {
                packets.read_all(*words, copies);
                let mut warp = Warp {
                    input: copies,
                    output: packets,
                };
                catch_panic(|| work(&mut warp))
            }
            Handler::Session(new) => {
                if !matches!(slot.session, Some((known, _)) if known == index) {
                    match catch_panic(new) {
                        Ok(session) => slot.session = Some((index, session)),
                        Err(fault) => return self.drop_call(port, fault),
                    }
                }
                slot.state = State::Open;
                self.open_calls += 1;
                return self.step_open(port);
            }
        };
        match answered {
            Ok(()) => {
                slot.handshake.finish_send(&**memory);
                self.call_ended(port);
            }
            Err(fault) => self.drop_call(port, fault),
        }
    }

    /// Continues the open call of a port, if there is one.
    fn step(&mut self, port: PortIndex) {
        if matches!(self.slots[port.slot()].state, State::Open) {
            self.step_open(port);
        }
    }

    /// Continues the open call of a port.
    #[inline(always)]
    fn step_open(&mut self, port: PortIndex) {
        let slot = &mut self.slots[port.slot()];
        let Some((_, session)) = &mut slot.session else {
            return;
        };
        #[cfg(feature = "blocking")]
        let mut left_to = None;
        let mut call = OpenCall {
            device: &self.state,
            handshake: &mut slot.handshake,
            opcode: slot.opcode,
            copies: &mut self.copies,
            ready: &self.ready,
            waker: &mut slot.waker,
            #[cfg(feature = "blocking")]
            runners: &mut self.runners,
            #[cfg(feature = "blocking")]
            left_to: &mut left_to,
        };
        // Set in place, as results of functions are copied.
        let mut step = Err(Fault::HandlerFailed);
        let caught = catch_panic(|| {
            let stepped = session.step(&mut call);
            if matches!(stepped, Ok(Step::Done)) {
                session.end();
            }
            step = stepped;
        });
        match caught.and(step) {
            #[cfg(feature = "blocking")]
            Ok(Step::Pending) if left_to.is_some() => {
                let inbox = self.state.memory.inbox(Side::Server, port);
                self.set_idle_inbox(port, inbox);
                if let Some(thread) = left_to {
                    self.parked.add(port, thread);
                }
            }
            Ok(Step::Pending) => {
                let inbox = if slot.handshake.owns() {
                    // The session waits for something other than the client.
                    self.state.memory.inbox(Side::Server, port)
                } else {
                    slot.handshake.outbox()
                };
                self.set_idle_inbox(port, inbox);
            }
            Ok(Step::Done) => {
                self.open_calls -= 1;
                self.close(port);
            }
            Err(fault) => {
                self.open_calls -= 1;
                self.drop_call(port, fault);
            }
        }
    }

    /// Returns the packets of a call that has ended to the client.
    #[inline]
    fn close(&mut self, port: PortIndex) {
        let slot = &mut self.slots[port.slot()];
        slot.state = State::Idle;
        slot.handshake.close(&*self.state.memory);
        self.call_ended(port);
    }

    /// Waits for the next call of a port.
    #[inline]
    fn call_ended(&mut self, port: PortIndex) {
        let outbox = self.slots[port.slot()].handshake.outbox();
        self.set_idle_inbox(port, outbox);
        self.count_ended_call();
    }

    /// Subtracts an ended or dropped call from the doorbell. Otherwise it never returns to 0, and no later
    /// call rings.
    fn count_ended_call(&self) {
        if let Some(doorbell) = &self.doorbell {
            doorbell.count_ended_call();
        }
    }

    fn drop_call(&mut self, port: PortIndex, fault: Fault) {
        let slot = &mut self.slots[port.slot()];
        slot.state = State::Dropped;
        slot.session = None;
        let opcode = slot.opcode;
        let inbox = self.state.memory.inbox(Side::Server, port);
        self.set_idle_inbox(port, inbox);
        self.count_ended_call();
        self.handlers.report(&DroppedCall {
            port,
            opcode,
            fault,
        });
    }

    #[inline]
    fn set_idle_inbox(&mut self, port: PortIndex, inbox: u32) {
        let bits = &mut self.idle_inboxes[Block::containing(port).0];
        let bit = 1 << (port.slot() % 64);
        *bits = if inbox == 0 {
            *bits & !bit
        } else {
            *bits | bit
        };
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.state.budget.close();
        #[cfg(feature = "blocking")]
        {
            // Abandons handlers, whose threads may sleep.
            self.slots.clear();
            self.ready.wake_server();
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests;
