//! Ports of one device: finds those that the client has written to, and serves them.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::task::{Context, Poll, Waker};

use super::budget::{Budget, Limits};
use super::catch_panic::catch_panic;
use super::doorbell::Doorbell;
use super::fault::Fault;
use super::handler::{DroppedCall, Handler, HandlerFuture, Handlers};
use super::port::{DeviceState, Port};
use super::ready_set::{ReadySet, port_waker};
use crate::error::Error;
use crate::generation::Opcodes;
use crate::handshake::Handshake;
use crate::layout::PortIndex;
use crate::memory::{Memory, Region, Side};
use crate::packets::{Lanes, Packets};

/// State of a port.
enum Session {
    /// No call is open. Holds the value of the outbox.
    Idle(u32),
    Open {
        opcode: u32,
        future: HandlerFuture,
    },
    /// The port is no longer served.
    Dropped,
}

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
    sessions: Vec<Session>,
    open_calls: usize,
    /// Values of the inboxes of each block that need no action.
    idle_inboxes: Vec<[u32; 64]>,
    /// The last two blocks that needed action. They are scanned more often.
    recent: [Block; 2],
    ready: Arc<ReadySet>,
    wakers: Vec<Option<Waker>>,
}

impl Device {
    /// Serves the client in this memory.
    pub fn new(memory: Region, handlers: Arc<Handlers>, limits: Limits, opcodes: Opcodes) -> Self {
        let ports = memory.layout().ports();
        // An earlier server may have left a doorbell that no longer exists.
        memory.clear_doorbell();
        // An earlier server may have left values in the outboxes.
        let outboxes = memory.layout().port_indices();
        let outboxes = outboxes.map(|port| memory.outbox(Side::Server, port));
        let sessions: Vec<_> = outboxes.map(Session::Idle).collect();
        let mut idle_inboxes = vec![[0; 64]; ports.div_ceil(64) as usize];
        for (inbox, session) in idle_inboxes.iter_mut().flatten().zip(&sessions) {
            if let Session::Idle(outbox) = session {
                *inbox = *outbox;
            }
        }
        Self {
            state: Arc::new(DeviceState::new(memory, Budget::new(limits), ports)),
            handlers,
            opcodes,
            doorbell: None,
            sessions,
            open_calls: 0,
            idle_inboxes,
            recent: [Block(0); 2],
            ready: Arc::new(ReadySet::new(ports)),
            wakers: vec![None; ports as usize],
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
        let dropped = |session: &&Session| matches!(session, Session::Dropped);
        self.sessions.iter().filter(dropped).count()
    }

    /// Polls all ports once and serves those that need it. Returns whether any did.
    ///
    /// Each port is polled once, and ports near the most recently active ones more often: a single client
    /// is served at once, and no port delays another for longer than one scan.
    pub fn poll(&mut self) -> bool {
        let mut any = false;
        for port in self.ready.drain() {
            any = true;
            self.resume(port);
        }
        for block in (0..self.idle_inboxes.len()).map(Block) {
            any |= self.scan(block);
            let [last, before] = self.recent;
            if last != block {
                any |= self.scan(last);
            }
            if before != block && before != last {
                any |= self.scan(before);
            }
        }
        any
    }

    /// Serves the ports of a block. Returns whether any inbox has changed.
    fn scan(&mut self, block: Block) -> bool {
        let expected = &self.idle_inboxes[block.0];
        let changed = self.state.memory.changed_inboxes(block.port(0), expected);
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

    fn inbox_changed(&mut self, port: PortIndex) {
        let inbox = self.state.memory.inbox(Side::Server, port);
        match self.sessions[port.slot()] {
            Session::Idle(outbox) if Side::Server.owns(inbox, outbox) => self.begin(port, outbox),
            Session::Open { .. } if !self.state.port(port).owns => self.resume(port),
            // The client wrote out of turn, or to a dropped port: ignored until the next change.
            _ => self.set_idle_inbox(port, inbox),
        }
    }

    /// Begins a call whose first packets have arrived.
    fn begin(&mut self, port: PortIndex, outbox: u32) {
        let memory = &self.state.memory;
        // Each is read once, because the client may change it.
        let (mask, encoded) = (memory.mask(port), memory.opcode(port));
        let mask = mask & memory.layout().lane_mask();
        let opcode = self.opcodes.decode(encoded);
        let handshake = Handshake::new(Side::Server, port, outbox, mask);
        match self.handlers.get(opcode) {
            Some(Handler::Request(handler)) => {
                let mut packets = Packets::new(&**memory, port, mask);
                match catch_panic(|| handler(&mut packets)) {
                    Ok(()) => {
                        let outbox = handshake.close(&**memory);
                        self.set_idle(port, outbox);
                    }
                    Err(fault) => self.drop_call(port, opcode, fault),
                }
            }
            Some(Handler::Session(handler)) => {
                let handle = Port::new(handshake, opcode, Arc::clone(&self.state));
                match catch_panic(|| handler(handle)) {
                    Ok(future) => {
                        self.sessions[port.slot()] = Session::Open { opcode, future };
                        self.open_calls += 1;
                        self.resume(port);
                    }
                    Err(fault) => self.drop_call(port, opcode, fault),
                }
            }
            None => self.drop_call(port, opcode, Fault::UnknownOpcode),
        }
    }

    /// Polls the handler future of a port.
    fn resume(&mut self, port: PortIndex) {
        let Session::Open { opcode, future } = &mut self.sessions[port.slot()] else {
            return;
        };
        let waker = self.wakers[port.slot()].get_or_insert_with(|| port_waker(&self.ready, port));
        let polled = catch_panic(|| future.as_mut().poll(&mut Context::from_waker(waker)));
        let opcode = *opcode;
        match polled {
            Ok(Poll::Pending) => {
                let state = self.state.port(port);
                let inbox = if state.owns {
                    // The handler waits for something other than the client.
                    self.state.memory.inbox(Side::Server, port)
                } else {
                    state.outbox
                };
                self.set_idle_inbox(port, inbox);
            }
            // A handler may have swapped its port for that of another call.
            Ok(Poll::Ready(Ok(handle))) if handle.is_port_of(&self.state, port) => {
                self.open_calls -= 1;
                let outbox = handle.close();
                self.set_idle(port, outbox);
            }
            Ok(Poll::Ready(Ok(_))) => {
                self.open_calls -= 1;
                self.drop_call(port, opcode, Fault::HandlerFailed);
            }
            Ok(Poll::Ready(Err(fault))) | Err(fault) => {
                self.open_calls -= 1;
                self.drop_call(port, opcode, fault);
            }
        }
    }

    /// Ends a call.
    fn set_idle(&mut self, port: PortIndex, outbox: u32) {
        self.sessions[port.slot()] = Session::Idle(outbox);
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

    fn drop_call(&mut self, port: PortIndex, opcode: u32, fault: Fault) {
        self.sessions[port.slot()] = Session::Dropped;
        let inbox = self.state.memory.inbox(Side::Server, port);
        self.set_idle_inbox(port, inbox);
        self.count_ended_call();
        self.handlers.report(&DroppedCall {
            port,
            opcode,
            fault,
        });
    }

    fn set_idle_inbox(&mut self, port: PortIndex, inbox: u32) {
        self.idle_inboxes[Block::containing(port).0][port.slot() % 64] = inbox;
    }
}
