//! Ports that are served again after the kernel that used them has ended.
#![cfg(feature = "std")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gpurpc::client::{Client, HostLocks};
use gpurpc::memory::Region;
use gpurpc::server::{Device, Handlers, IdlePolicy, Limits, Server};
use gpurpc::{Error, Generation, Layout, PortIndex};

const INCREMENT: u32 = 0x6700_0001;
/// Waits for a second packet.
const SESSION: u32 = 0x6700_0002;
const UNKNOWN: u32 = 0x6700_0003;

/// Counts the calls that were abandoned.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

struct Rig {
    device: Device,
    client: Client<Region, HostLocks>,
    abandoned: Arc<AtomicUsize>,
    faults: Arc<Mutex<Vec<u32>>>,
}

const PORTS: u32 = 70;

fn rig(generation: &'static Generation) -> Result<Rig, Error> {
    let mut handlers = Handlers::new();
    handlers.on_warp(INCREMENT, 1, |warp| {
        warp.set_word(0, 0, warp.input().get(0)[0] + 1);
    })?;
    let abandoned = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&abandoned);
    handlers.on_session(SESSION, move |mut port| {
        let counted = Counted(Arc::clone(&count));
        async move {
            port.recv(|_| {}).await;
            port.recv(|_| {}).await;
            drop(counted);
            Ok(port)
        }
    })?;
    let faults = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&faults);
    handlers.on_fault(move |call| found.lock().unwrap().push(call.port.get()));
    let layout = Layout::with_generation(generation, PORTS, 1)?;
    let memory = Region::zeroed(layout)?;
    let client = Client::new(memory.clone(), HostLocks::new());
    let handlers = Arc::new(handlers);
    let device = Device::new(memory, handlers, Limits::default());
    Ok(Rig {
        device,
        client,
        abandoned,
        faults,
    })
}

impl Rig {
    /// Sends the first packet of a call whose client then ends. Returns whether the port was the client's.
    fn die(&mut self, port: u32, opcode: u32) -> bool {
        let call = self.client.try_open_at(PortIndex::new(port), opcode, 1);
        let Some(mut call) = call else {
            return false;
        };
        call.send(|packets| packets.set_word(0, 0, 6));
        drop(call);
        self.device.poll();
        true
    }

    /// Whether a call on a port is answered.
    fn is_served(&mut self, port: u32) -> bool {
        let call = self.client.try_open_at(PortIndex::new(port), INCREMENT, 1);
        let Some(mut call) = call else {
            return false;
        };
        call.send(|packets| packets.set_word(0, 0, 6));
        while self.device.poll() {}
        call.recv(|packets| packets.word(0, 0)) == Some(7)
    }
}

/// Runs a test with clients without a doorbell and with one.
fn for_each_generation(test: impl Fn(Rig) -> Result<(), Error>) -> Result<(), Error> {
    [Generation::LLVM_20, Generation::LLVM_23]
        .into_iter()
        .try_for_each(|generation| test(rig(generation)?))
}

#[test]
fn dropped_ports_are_served_again() -> Result<(), Error> {
    for_each_generation(|mut rig| {
        let port = PortIndex::new(65);
        // With both values of the mailboxes, and more than once.
        for round in 1..=4 {
            assert!(rig.die(65, UNKNOWN));
            assert_eq!(rig.device.dropped_calls(), 1);
            assert!(!rig.is_served(65));
            assert!(rig.device.reset_port(port));
            assert_eq!(rig.device.dropped_calls(), 0);
            assert!(!rig.device.reset_port(port), "it is idle");
            // The call left no request.
            assert!(!rig.device.poll());
            for _ in 0..round {
                assert!(rig.is_served(65));
            }
            assert_eq!(*rig.faults.lock().unwrap(), vec![65; round]);
        }
        Ok(())
    })
}

#[test]
fn open_calls_are_abandoned() -> Result<(), Error> {
    for_each_generation(|mut rig| {
        for (round, port) in [3, 3, 69].into_iter().enumerate() {
            assert!(rig.die(port, SESSION));
            assert_eq!(rig.device.open_calls(), 1);
            assert!(rig.device.reset_port(PortIndex::new(port)));
            assert_eq!(rig.device.open_calls(), 0);
            assert_eq!(rig.abandoned.load(Ordering::Relaxed), round + 1);
            assert!(rig.is_served(port));
        }
        assert_eq!(*rig.faults.lock().unwrap(), []);
        Ok(())
    })
}

#[test]
fn all_ports_are_reset_but_idle_ones() -> Result<(), Error> {
    for_each_generation(|mut rig| {
        for port in 0..PORTS {
            let opcode = [UNKNOWN, SESSION, INCREMENT][port as usize % 3];
            assert!(rig.die(port, opcode));
        }
        // A call that the server has not seen yet is served as usual.
        let mut call = rig
            .client
            .try_open_at(PortIndex::new(2), INCREMENT, 1)
            .unwrap();
        call.send(|packets| packets.set_word(0, 0, 1));
        let idle = (0..PORTS).filter(|port| port % 3 == 2).count();
        assert_eq!(rig.device.reset_ports(), PORTS as usize - idle);
        assert_eq!(
            (rig.device.open_calls(), rig.device.dropped_calls()),
            (0, 0)
        );
        rig.device.poll();
        assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(2));
        drop(call);
        for port in 0..PORTS {
            assert!(rig.is_served(port), "{port}");
        }
        assert_eq!(rig.device.reset_ports(), 0);
        assert!(
            !rig.device.reset_port(PortIndex::new(PORTS)),
            "there is none"
        );
        Ok(())
    })
}

#[test]
fn servers_reset_their_devices() -> Result<(), Error> {
    for_each_generation(|Rig { device, client, .. }| {
        let server = Server::new(IdlePolicy::default());
        let id = server.add_device(device);
        let port = PortIndex::new(1);
        for reset in [
            &(|| server.reset_port(id, port).map(usize::from)) as &dyn Fn() -> Result<usize, Error>,
            &|| server.reset_ports(id),
        ] {
            let mut call = client.try_open_at(port, UNKNOWN, 1).expect("a reset port");
            call.send(|_| {});
            drop(call);
            server.poll();
            assert!(client.try_open_at(port, UNKNOWN, 1).is_none());
            assert_eq!(reset(), Ok(1));
            assert_eq!(reset(), Ok(0));
        }
        server.remove_device(id)?;
        assert_eq!(server.reset_port(id, port), Err(Error::NoDevice));
        assert_eq!(server.reset_ports(id), Err(Error::NoDevice));
        Ok(())
    })
}
