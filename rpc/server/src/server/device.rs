//! Ports of one device: finds those that the client has written to, and serves them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::task::Waker;

use super::budget::{Budget, Limits};
use super::catch_panic::catch_panic;
use super::device_state::DeviceState;
use super::doorbell::Doorbell;
use super::fault::Fault;
use super::handler::{DroppedCall, Handler, Handlers, Warp};
use super::ready_set::ReadySet;
use super::session::{OpenCall, Session, Step};
use crate::error::Error;
use crate::handshake::Handshake;
use crate::lanes::Lanes;
use crate::layout::{PACKET_WORDS, PortIndex};
use crate::memory::{Memory, Region, Side};
use crate::opcode_encoding::Opcodes;
use crate::packets::{PacketCopies, Packets};

/// State of the calls of a port.
enum State {
    /// No call is open.
    Idle,
    Open,
    /// The port is no longer served.
    Dropped,
}

/// A port.
struct Slot {
    state: State,
    /// State of the open call, or of the last one.
    handshake: Handshake,
    /// Opcode of the open call.
    opcode: u32,
    /// Session of the last call that had one, with the index of its handler.
    session: Option<(usize, Box<dyn Session>)>,
    waker: Option<Waker>,
}

/// Number of blocks that are scanned before those of the last calls are scanned again.
const SCANS: usize = 8;

/// A block of 64 ports, scanned together.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Block(usize);

impl Block {
    fn containing(port: PortIndex) -> Self {
        Self(port.slot() / 64)
    }

    fn port(self, bit: u32) -> PortIndex {
        PortIndex::new(self.0 as u32 * 64 + bit)
    }
}

/// Ports of a device, polled by one thread at a time.
///
/// ```
/// use std::sync::Arc;
///
/// use gpurpc::Layout;
/// use gpurpc::memory::Region;
/// use gpurpc::server::{Device, Handlers, Limits, Opcodes};
///
/// let memory = Region::zeroed(Layout::new(8, 32)?)?;
/// let mut device = Device::new(memory, Arc::new(Handlers::new()), Limits::default(), Opcodes::Wide);
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
}

impl Device {
    /// Serves the client in this memory.
    pub fn new(memory: Region, handlers: Arc<Handlers>, limits: Limits, opcodes: Opcodes) -> Self {
        let ports = memory.layout().ports();
        // An earlier server may have left a doorbell that no longer exists.
        memory.clear_doorbell();
        // An earlier server may have left values in the outboxes.
        let slots = memory.layout().port_indices().map(|port| {
            let outbox = memory.outbox(Side::Server, port);
            Slot {
                state: State::Idle,
                handshake: Handshake::new(Side::Server, port, outbox, 0),
                opcode: 0,
                session: None,
                waker: None,
            }
        });
        let slots: Vec<_> = slots.collect();
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
            slots,
            open_calls: 0,
            idle_inboxes,
            recent: [Block(0); 2],
            ready: Arc::new(ReadySet::new(ports)),
            copies: Box::new(PacketCopies::new()),
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

    /// The memory that is served.
    pub fn memory(&self) -> &Region {
        &self.state.memory
    }

    /// Number of calls that have begun and have neither ended nor been dropped.
    pub fn open_calls(&self) -> usize {
        self.open_calls
    }

    /// Number of ports that are no longer served, each because of a reported fault.
    pub fn dropped_calls(&self) -> usize {
        let dropped = |slot: &&Slot| matches!(slot.state, State::Dropped);
        self.slots.iter().filter(dropped).count()
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
        let mut any = false;
        for port in self.ready.drain() {
            any = true;
            self.step(port);
        }
        let blocks = self.idle_inboxes.len();
        for first in (0..blocks).step_by(SCANS) {
            let scanned = first..blocks.min(first + SCANS);
            for block in scanned.clone() {
                any |= self.scan(Block(block));
            }
            if blocks > SCANS {
                // Blocks that were just scanned are skipped.
                for recent in self.recent {
                    if !scanned.contains(&recent.0) {
                        any |= self.scan(recent);
                    }
                }
            }
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
        for bit in Lanes::from_mask(changed) {
            self.inbox_changed(block.port(bit));
        }
        true
    }

    #[inline]
    fn inbox_changed(&mut self, port: PortIndex) {
        let inbox = self.state.memory.inbox(Side::Server, port);
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
        let mut packets = Packets::new(&**memory, port, mask);
        let opcode = self.opcodes.decode(encoded);
        if self.last.0 != opcode {
            self.last = (opcode, self.handlers.index_of(opcode));
        }
        let slot = &mut self.slots[port.slot()];
        slot.opcode = opcode;
        slot.handshake =
            Handshake::new(Side::Server, port, slot.handshake.outbox(), packets.mask());
        let Some(handler) = self.last.1 else {
            return self.drop_call(port, Fault::UnknownOpcode);
        };
        let copies = &mut *self.copies;
        let answered = match self.handlers.get(handler) {
            Handler::Request(work) => catch_panic(|| work(&mut packets)),
            Handler::Reply(work) => {
                packets.read_all(PACKET_WORDS, copies);
                catch_panic(|| work(copies)).inspect(|()| packets.write_all(copies))
            }
            Handler::Warp(words, work) => {
                packets.read_all(*words, copies);
                let mut warp = Warp {
                    input: copies,
                    output: packets,
                };
                catch_panic(|| work(&mut warp))
            }
            Handler::Session(new) => {
                if !matches!(slot.session, Some((of, _)) if of == handler) {
                    match catch_panic(new) {
                        Ok(session) => slot.session = Some((handler, session)),
                        Err(fault) => return self.drop_call(port, fault),
                    }
                }
                slot.state = State::Open;
                self.open_calls += 1;
                return self.step(port);
            }
        };
        match answered {
            Ok(()) => self.close(port),
            Err(fault) => self.drop_call(port, fault),
        }
    }

    /// Continues the open call of a port, if there is one.
    fn step(&mut self, port: PortIndex) {
        let slot = &mut self.slots[port.slot()];
        let (State::Open, Some((_, session))) = (&slot.state, &mut slot.session) else {
            return;
        };
        let mut call = OpenCall {
            device: &self.state,
            handshake: &mut slot.handshake,
            opcode: slot.opcode,
            copies: &mut self.copies,
            ready: &self.ready,
            waker: &mut slot.waker,
        };
        let step = catch_panic(|| {
            let step = session.step(&mut call)?;
            if step == Step::Done {
                session.end();
            }
            Ok(step)
        });
        match step.and_then(|step| step) {
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
        let outbox = slot.handshake.outbox();
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
    }
}
