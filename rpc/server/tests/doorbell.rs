//! Counter of the calls that clients on the host have opened: each call that has ended, was dropped or reset is
//! subtracted, so that the first call after them rings again.
#![cfg(feature = "std")]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use gpurpc::client::{Client, HostDoorbell, HostLocks};
use gpurpc::memory::Region;
use gpurpc::server::{Device, Handlers, Limits};
use gpurpc::{Error, Generation, Layout, PortIndex};

const INCREMENT: u32 = 0x6700_0001;
/// Receives two packets.
const SESSION: u32 = 0x6700_0002;
/// Faults at its first packet.
const FAULTY: u32 = 0x6700_0003;
const UNKNOWN: u32 = 0x6700_0004;
const EVENT: u32 = 0x8000_0007;

struct Rig {
    device: Device,
    client: Client<Region, HostLocks>,
    doorbell: HostDoorbell,
}

fn rig(ports: u32) -> Result<Rig, Error> {
    let doorbell = HostDoorbell::new(EVENT);
    let mut handlers = Handlers::new();
    // A device counts each call that it serves, until the call has ended.
    let open = doorbell.clone();
    handlers.on_warp(INCREMENT, 1, move |warp| {
        assert!(open.open_calls() > 0);
        warp.set_word(0, 0, warp.input().get(0)[0] + 1);
    })?;
    let open = doorbell.clone();
    handlers.on_session(SESSION, move |mut port| {
        let open = open.clone();
        async move {
            for _ in 0..2 {
                port.recv(|_| ()).await;
                assert!(open.open_calls() > 0);
            }
            Ok(port)
        }
    })?;
    handlers.on_session(FAULTY, |mut port| async move {
        // The message is larger than the limit.
        port.recv_n().await?;
        Ok(port)
    })?;
    let layout = Layout::with_generation(Generation::LLVM_23, ports, 1)?;
    let memory = Region::zeroed(layout)?;
    let client = Client::new(memory.clone(), HostLocks::yielding());
    let client = client.with_doorbell(doorbell.clone())?;
    let device = Device::new(memory, Arc::new(handlers), Limits::default());
    let device = device.with_doorbell(doorbell.clone().into())?;
    Ok(Rig {
        device,
        client,
        doorbell,
    })
}

impl Rig {
    /// Sends the first packet of a call, whose client then ends. Returns its port.
    fn send(&mut self, opcode: u32) -> PortIndex {
        let mut call = self.client.open(opcode, 1);
        call.send(|packets| packets.set_word(0, 0, u64::MAX));
        let port = call.port();
        drop(call);
        while self.device.poll() {}
        port
    }

    /// Number of open calls, and the event in the mailbox.
    fn words(&self) -> (u64, u64) {
        (self.doorbell.open_calls(), self.doorbell.take_event())
    }
}

#[test]
fn first_open_call_rings() -> Result<(), Error> {
    let Rig {
        mut device,
        client,
        doorbell,
    } = rig(70)?;
    let words = || (doorbell.open_calls(), doorbell.take_event());
    for _ in 0..3 {
        assert_eq!(words(), (0, 0));
        let mut session = client.open(SESSION, 1);
        // Before its first packet.
        assert_eq!(words(), (1, EVENT.into()));
        session.send(|_| ());
        while device.poll() {}
        for _ in 0..3 {
            let mut call = client.open(INCREMENT, 1);
            assert_eq!(words(), (2, 0));
            call.send(|packets| packets.set_word(0, 0, 1));
            while device.poll() {}
            assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(2));
            // The call has ended before its client.
            assert_eq!(words(), (1, 0));
        }
        session.send(|_| ());
        while device.poll() {}
    }
    Ok(())
}

#[test]
fn unsent_calls_are_not_counted() -> Result<(), Error> {
    let mut rig = rig(2)?;
    for opened in [INCREMENT, UNKNOWN] {
        let mut call = rig.client.open(opened, 1);
        assert_eq!(rig.words(), (1, EVENT.into()));
        // An idle port belongs to the client.
        assert!(call.recv(|_| ()).is_some());
        drop(call);
        assert_eq!(rig.words(), (0, 0));
        assert!(!rig.device.poll());
    }
    Ok(())
}

#[test]
fn dropped_calls_are_subtracted() -> Result<(), Error> {
    let mut rig = rig(2)?;
    for opcode in [UNKNOWN, FAULTY, UNKNOWN, FAULTY] {
        let port = rig.send(opcode);
        assert_eq!(rig.words(), (0, EVENT.into()));
        assert_eq!(rig.device.dropped_calls(), 1);
        // Once.
        assert!(rig.device.reset_port(port));
        assert_eq!(rig.words(), (0, 0));
    }
    Ok(())
}

#[test]
fn reset_calls_are_subtracted() -> Result<(), Error> {
    let Rig {
        mut device,
        client,
        doorbell,
    } = rig(2)?;
    for _ in 0..3 {
        let mut calls = [SESSION; 2].map(|opcode| client.open(opcode, 1));
        for call in &mut calls {
            call.send(|_| ());
        }
        while device.poll() {}
        assert_eq!(doorbell.open_calls(), 2);
        assert!(device.reset_port(calls[1].port()));
        assert_eq!(doorbell.open_calls(), 1);
        assert_eq!(device.reset_ports(), 1);
        assert_eq!(doorbell.open_calls(), 0);
        drop(calls);
        assert_eq!(doorbell.open_calls(), 0);
        assert_eq!(doorbell.take_event(), EVENT.into());
    }
    Ok(())
}

#[test]
fn earlier_generations_have_no_doorbell() -> Result<(), Error> {
    for generation in [Generation::LLVM_19, Generation::LLVM_20] {
        let memory = Region::zeroed(Layout::with_generation(generation, 2, 1)?)?;
        let client = Client::new(memory, HostLocks::new());
        let refused = client.with_doorbell(HostDoorbell::new(EVENT));
        assert_eq!(refused.err(), Some(Error::NoDoorbell));
    }
    Ok(())
}

/// Fewer ports than threads, and calls of all kinds.
#[test]
fn counter_of_many_threads_returns_to_0() -> Result<(), Error> {
    for ports in [1, 3, 65] {
        let Rig {
            mut device,
            client,
            doorbell,
        } = rig(ports)?;
        let ended = AtomicBool::new(false);
        let warp = || {
            for n in 0..300 {
                let opcode = [INCREMENT, SESSION][n % 2];
                let mut call = client.open(opcode, 1);
                if n % 7 == 0 {
                    continue;
                }
                call.send(|packets| packets.set_word(0, 0, 1));
                if opcode == SESSION {
                    call.send(|_| ());
                } else if n % 5 != 0 {
                    assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(2));
                }
            }
        };
        thread::scope(|scope| {
            let server = scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    if !device.poll() {
                        thread::yield_now();
                    }
                }
                while device.poll() {}
            });
            let warps: Vec<_> = (0..8).map(|_| scope.spawn(warp)).collect();
            let results: Vec<_> = warps.into_iter().map(|warp| warp.join()).collect();
            // Also after a panic.
            ended.store(true, Ordering::Release);
            server.join().expect("the server does not panic");
            assert!(results.iter().all(Result::is_ok));
        });
        assert_eq!((doorbell.open_calls(), device.open_calls()), (0, 0));
        assert_eq!(doorbell.take_event(), EVENT.into());
    }
    Ok(())
}

/// Words of the program, for example of a signal.
#[test]
fn words_of_the_program_are_rung() -> Result<(), Error> {
    let words = [const { AtomicU64::new(0) }; 2];
    let [value, mailbox] = words.each_ref().map(|word| NonNull::from(word).cast());
    // SAFETY: the words outlive the client, and are only accessed atomically.
    let doorbell = unsafe { HostDoorbell::from_addresses(value, mailbox, EVENT) };
    let memory = Region::zeroed(Layout::with_generation(Generation::LLVM_23, 2, 1)?)?;
    let client = Client::new(memory, HostLocks::new()).with_doorbell(doorbell)?;
    let read = || words.each_ref().map(|word| word.load(Ordering::Relaxed));
    let call = client.open(INCREMENT, 1);
    assert_eq!(read(), [1, EVENT.into()]);
    drop(call);
    assert_eq!(read(), [0, EVENT.into()]);
    Ok(())
}
