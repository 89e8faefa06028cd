//! All ports of one device: finds those that the client has written to, and serves them.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::task::{Context, Poll, Waker};

use super::budget::{Budget, Limits};
use super::fault::Fault;
use super::guard;
use super::handler::{Dropped, Handler, Handlers, Serving};
use super::port::{Common, Port};
use super::woken::{Woken, waker};
use crate::memory::{Memory, Region, Side};
use crate::opcode;
use crate::packets::{Lanes, Packets};
use crate::turn::Turns;

/// How opcodes are written by the client.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Opcodes {
    /// In 32 bits: those of LLVM's libc have `'c'` in the upper byte. LLVM 20 and later.
    #[default]
    Wide,
    /// In 16 bits, as LLVM 19 has them: those of its libc are small numbers. They are handled as the wide
    /// ones with the same number; those from 0x8000 on, which are the program's, as they are.
    Narrow,
}

impl Opcodes {
    fn read(self, opcode: u32) -> u32 {
        match self {
            Self::Wide => opcode,
            Self::Narrow => {
                // The first half in memory, whatever the byte order; the rest is padding.
                let [a, b, ..] = opcode.to_ne_bytes();
                match u32::from(u16::from_ne_bytes([a, b])) {
                    own @ 0x8000.. => own,
                    libc => opcode::LIBC | libc,
                }
            }
        }
    }
}

/// A call on a port, or what is left of it.
enum Session {
    /// None; what is in the outbox.
    Idle(u32),
    Open {
        opcode: u32,
        serving: Serving,
    },
    /// Not served any more.
    Dropped,
}

/// The ports of a device, polled by one thread at a time.
pub struct Device {
    common: Arc<Common>,
    handlers: Arc<Handlers>,
    opcodes: Opcodes,
    sessions: Vec<Session>,
    open: usize,
    /// For each block of 64 ports what their inboxes have while there is nothing to do.
    quiet: Vec<[u32; 64]>,
    /// The blocks that had something to do last: they are looked at more often.
    recent: [usize; 2],
    woken: Arc<Woken>,
    wakers: Vec<Option<Waker>>,
}

impl Device {
    /// Serves the client in this memory.
    pub fn new(memory: Region, handlers: Arc<Handlers>, limits: Limits, opcodes: Opcodes) -> Self {
        let ports = memory.layout().ports();
        // What an earlier server has left there.
        let outboxes = (0..ports).map(|port| memory.outbox(Side::Server, port));
        let sessions: Vec<_> = outboxes.map(Session::Idle).collect();
        let mut quiet = vec![[0; 64]; ports.div_ceil(64) as usize];
        for (slot, session) in quiet.iter_mut().flatten().zip(&sessions) {
            if let Session::Idle(outbox) = session {
                *slot = *outbox;
            }
        }
        Self {
            common: Arc::new(Common::new(memory, Budget::new(limits), ports)),
            handlers,
            opcodes,
            sessions,
            open: 0,
            quiet,
            recent: [0; 2],
            woken: Arc::new(Woken::new(ports)),
            wakers: vec![None; ports as usize],
        }
    }

    /// The memory that is served.
    pub fn memory(&self) -> &Region {
        &self.common.memory
    }

    /// How many calls are under way: begun, and neither ended nor dropped.
    pub fn open(&self) -> usize {
        self.open
    }

    /// How many ports are not served any more, each because of a fault that was reported.
    pub fn dropped(&self) -> usize {
        let dropped = |session: &&Session| matches!(session, Session::Dropped);
        self.sessions.iter().filter(dropped).count()
    }

    /// Serves what there is, once around all ports. Gives whether there was anything.
    ///
    /// Each port is looked at once, and those near the ones that had something to do last more often, so
    /// that a client that is alone is served at once, and no port keeps another one waiting for longer
    /// than a look around.
    pub fn poll(&mut self) -> bool {
        let mut any = false;
        for port in self.woken.take() {
            any = true;
            self.go_on(port);
        }
        for block in 0..self.quiet.len() {
            any |= self.look(block);
            let [last, before] = self.recent;
            if last != block {
                any |= self.look(last);
            }
            if before != block && before != last {
                any |= self.look(before);
            }
        }
        any
    }

    /// Serves the ports of a block.
    fn look(&mut self, block: usize) -> bool {
        let first = block as u32 * 64;
        let changed = self.common.memory.changed(first, &self.quiet[block]);
        if changed == 0 {
            return false;
        }
        if !self.recent.contains(&block) {
            self.recent = [block, self.recent[0]];
        }
        for bit in Lanes::of(changed) {
            self.inbox_changed(first + bit);
        }
        true
    }

    fn inbox_changed(&mut self, port: u32) {
        let inbox = self.common.memory.inbox(Side::Server, port);
        match self.sessions[port as usize] {
            Session::Idle(outbox) if Side::Server.owns(inbox, outbox) => self.begin(port, outbox),
            Session::Open { .. } if !self.common.state(port).owns => self.go_on(port),
            // Out of turn, or on a port that is not served: not looked at until it changes again.
            _ => self.set_quiet(port, inbox),
        }
    }

    /// A new call, of which the first packets are there.
    fn begin(&mut self, port: u32, outbox: u32) {
        let memory = &self.common.memory;
        // Each is read once: it may change.
        let (mask, written) = (memory.mask(port), memory.opcode(port));
        let mask = mask & memory.layout().lane_mask();
        let opcode = self.opcodes.read(written);
        let turns = Turns::new(Side::Server, port, outbox, mask);
        match self.handlers.of(opcode) {
            Some(Handler::Reply(work)) => {
                let mut packets = Packets::new(&**memory, port, mask);
                match guard::catch(|| work(&mut packets)) {
                    Ok(()) => {
                        let outbox = turns.close(&**memory);
                        self.ended(port, outbox);
                    }
                    Err(fault) => self.drop_port(port, opcode, fault),
                }
            }
            Some(Handler::Talk(serve)) => {
                let handle = Port::new(turns, opcode, Arc::clone(&self.common));
                match guard::catch(|| serve(handle)) {
                    Ok(serving) => {
                        self.sessions[port as usize] = Session::Open { opcode, serving };
                        self.open += 1;
                        self.go_on(port);
                    }
                    Err(fault) => self.drop_port(port, opcode, fault),
                }
            }
            None => self.drop_port(port, opcode, Fault::UnknownOpcode),
        }
    }

    /// Lets a handler go on.
    fn go_on(&mut self, port: u32) {
        let Session::Open { opcode, serving } = &mut self.sessions[port as usize] else {
            return;
        };
        let waker = self.wakers[port as usize].get_or_insert_with(|| waker(&self.woken, port));
        let polled = guard::catch(|| serving.as_mut().poll(&mut Context::from_waker(waker)));
        let opcode = *opcode;
        match polled {
            Ok(Poll::Pending) => {
                let state = self.common.state(port);
                let quiet = if state.owns {
                    // It waits for something else; the client has nothing to say.
                    self.common.memory.inbox(Side::Server, port)
                } else {
                    state.outbox
                };
                self.set_quiet(port, quiet);
            }
            // A handler can have exchanged its port for that of another one.
            Ok(Poll::Ready(Ok(handle))) if handle.is(&self.common, port) => {
                self.open -= 1;
                let outbox = handle.close();
                self.ended(port, outbox);
            }
            Ok(Poll::Ready(Ok(_))) => {
                self.open -= 1;
                self.drop_port(port, opcode, Fault::Handler);
            }
            Ok(Poll::Ready(Err(fault))) | Err(fault) => {
                self.open -= 1;
                self.drop_port(port, opcode, fault);
            }
        }
    }

    fn ended(&mut self, port: u32, outbox: u32) {
        self.sessions[port as usize] = Session::Idle(outbox);
        self.set_quiet(port, outbox);
    }

    fn drop_port(&mut self, port: u32, opcode: u32, fault: Fault) {
        self.sessions[port as usize] = Session::Dropped;
        let inbox = self.common.memory.inbox(Side::Server, port);
        self.set_quiet(port, inbox);
        self.handlers.report(&Dropped {
            port,
            opcode,
            fault,
        });
    }

    fn set_quiet(&mut self, port: u32, inbox: u32) {
        self.quiet[port as usize / 64][port as usize % 64] = inbox;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As clients of either kind store them; a narrow one leaves the upper bytes as they were.
    #[test]
    fn opcodes_are_read_as_they_were_written() {
        let narrow = |opcode: u16| {
            let [a, b] = opcode.to_ne_bytes();
            Opcodes::Narrow.read(u32::from_ne_bytes([a, b, 0x5a, 0xa5]))
        };
        assert_eq!(narrow(6), opcode::READ_FROM_STREAM);
        assert_eq!(narrow(0x8001), 0x8001);
        let wide = opcode::READ_FROM_STREAM;
        assert_eq!(Opcodes::Wide.read(wide), wide);
    }
}
