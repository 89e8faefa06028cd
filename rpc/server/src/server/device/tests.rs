//! Masks of calls.

use std::sync::mpsc::{Sender, channel};

use super::*;
use crate::layout::Layout;
use crate::server::session::Session;

struct Masks(Sender<u64>);

impl Session for Masks {
    fn step(&mut self, call: &mut OpenCall<'_>) -> Result<Step, Fault> {
        let sent = self.0.send(call.mask());
        sent.map_or(Err(Fault::HandlerFailed), |()| Ok(Step::Done))
    }

    fn end(&mut self) {}
}

/// Masks in headers are arbitrary.
#[test]
fn calls_have_only_lanes_of_their_port() -> Result<(), Error> {
    for (lanes, mask, expected) in [
        (1, u64::MAX, 1),
        (32, u64::MAX, 0xffff_ffff),
        (32, 1 << 40 | 0b101, 0b101),
        (64, u64::MAX, u64::MAX),
        (64, 0b110, 0b110),
    ] {
        let (sender, masks) = channel();
        let mut handlers = Handlers::new();
        for (opcode, words) in [(0, 0), (1, 1), (2, 8)] {
            let sender = sender.clone();
            handlers.on_warp(opcode, words, move |warp| {
                let mask = warp.input().mask();
                sender.send(mask).expect("it is received below");
            })?;
        }
        handlers.on_call(3, move || Masks(sender.clone()))?;
        let memory = Region::zeroed(Layout::new(4, lanes)?)?;
        for (port, opcode) in memory.layout().port_indices().zip(0..) {
            memory.set_header(port, mask, opcode);
            memory.set_outbox(Side::Client, port, 1);
        }
        Device::new(memory, Arc::new(handlers), Limits::default()).poll();
        assert_eq!(masks.try_iter().collect::<Vec<_>>(), [expected; 4]);
    }
    Ok(())
}
