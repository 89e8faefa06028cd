//! Tests of serving threads, and of the states in which they sleep.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use super::*;
use crate::Generation;
use crate::client::{Client, HostLocks};
use crate::layout::Layout;
use crate::memory::{Memory, Region, Side};
use crate::server::{Doorbell, Handlers, Limits};

/// Without a serving thread, `poll_idle` itself answers the calls.
#[test]
fn requested_calls_are_answered_or_open() -> Result<(), Error> {
    let mut handlers = Handlers::new();
    handlers.on_warp(1, 0, |_| {})?;
    handlers.on_session(2, |mut port| async move {
        port.recv(|_| {}).await;
        port.recv(|_| {}).await;
        Ok(port)
    })?;
    let handlers = Arc::new(handlers);
    let server = Server::new(IdlePolicy::default());
    assert!(server.poll_idle());
    let mut clients = Vec::new();
    for _ in 0..2 {
        let memory = Region::zeroed(Layout::new(2, 1)?)?;
        clients.push(Client::new(memory.clone(), HostLocks::new()));
        let device = Device::new(memory, Arc::clone(&handlers), Limits::default());
        server.add_device(device);
    }
    assert!(server.poll_idle());
    for client in &clients {
        let mut call = client.open(1, 1);
        call.send(|_| {});
        // The first poll serves a port; the second finds none.
        assert_eq!((server.poll_idle(), server.poll_idle()), (false, true));
        assert!(call.recv(|_| {}).is_some());
    }
    let mut calls: Vec<_> = clients.iter().map(|client| client.open(2, 1)).collect();
    for (before, call) in calls.iter_mut().enumerate() {
        call.send(|_| {});
        assert_eq!((server.open_calls(), server.poll_idle()), (before, false));
    }
    assert_eq!((server.open_calls(), server.poll_idle()), (2, false));
    for call in &mut calls {
        call.send(|_| {});
    }
    assert_eq!(
        (server.poll_idle(), server.poll_idle(), server.open_calls()),
        (false, true, 0)
    );
    Ok(())
}

/// The second of two calls returns the port of the first one.
#[test]
fn a_handler_returns_its_own_port() -> Result<(), Error> {
    let mut handlers = Handlers::new();
    let first = Mutex::new(None);
    handlers.on_session(1, move |port| {
        let earlier = first.lock().expect("no holder panics").replace(port);
        async move {
            match earlier {
                Some(port) => Ok(port),
                None => std::future::pending().await,
            }
        }
    })?;
    let memory = Region::zeroed(Layout::new(2, 1)?)?;
    let client = Client::new(memory.clone(), HostLocks::new());
    let mut device = Device::new(memory, Arc::new(handlers), Limits::default());
    let mut calls = [client.open(1, 1), client.open(1, 1)];
    for call in &mut calls {
        call.send(|_| {});
    }
    device.poll();
    // The first call is still in progress, and was not answered.
    assert_eq!((device.open_calls(), device.dropped_calls()), (1, 1));
    for port in [0, 1].map(PortIndex::new) {
        assert_eq!(client.memory().inbox(Side::Client, port), 0);
    }
    Ok(())
}

fn add(server: &Server, prepare: impl FnOnce(Device) -> Device) -> Result<Added, Error> {
    let layout = Layout::with_generation(Generation::LLVM_23, 2, 1)?;
    let memory = Region::zeroed(layout)?;
    let client = Client::new(memory.clone(), HostLocks::new());
    let mut handlers = Handlers::new();
    handlers.on_session(1, |mut port| async move {
        port.recv(|_| {}).await;
        port.recv(|_| {}).await;
        Ok(port)
    })?;
    let device = Device::new(memory, Arc::new(handlers), Limits::default());
    Ok((server.add_device(prepare(device)), client))
}

type Added = (DeviceId, Client<Region, HostLocks>);

/// A doorbell with a counter and a mailbox of its own.
fn doorbell() -> Doorbell {
    let words = Box::leak(Box::new([0_u64; 2]));
    let [value, mailbox] = words.each_mut().map(NonNull::from);
    // SAFETY: both stay valid to the end of the process, and no other code accesses them.
    unsafe { Doorbell::new(value, mailbox, 1) }
}

/// A thread sleeps without a limit only if no device can call.
#[test]
fn idleness_is_that_of_the_busiest_device() -> Result<(), Error> {
    let server = Server::new(IdlePolicy::default());
    assert_eq!(server.idleness(), Idleness::NoKernel, "without devices");

    let (announced, client) = add(&server, Device::with_announced_kernels)?;
    assert_eq!(server.idleness(), Idleness::NoKernel);
    server.begin_kernel(announced)?;
    server.begin_kernel(announced)?;
    assert_eq!(server.idleness(), Idleness::NoCall);
    let mut call = client.open(1, 1);
    call.send(|_| {});
    assert_eq!(
        (server.poll(), server.idleness()),
        (true, Idleness::OpenCalls)
    );
    server.end_kernel(announced)?;
    assert_eq!(
        server.idleness(),
        Idleness::OpenCalls,
        "one of two has ended"
    );
    server.end_kernel(announced)?;
    assert_eq!(server.idleness(), Idleness::NoKernel, "its warp is gone");
    assert_eq!(server.end_kernel(announced), Err(Error::NoKernel));

    let (rings, _) = add(&server, |device| {
        device
            .with_doorbell(doorbell())
            .expect("LLVM 23 has doorbells")
    })?;
    assert_eq!(server.idleness(), Idleness::Doorbells);
    let (polled, _) = add(&server, |device| device)?;
    assert_eq!(server.idleness(), Idleness::NoCall);
    // Kernels of devices that are always polled are not counted.
    assert_eq!(server.end_kernel(polled), Ok(()));
    for device in [polled, rings] {
        server.remove_device(device)?;
    }
    assert_eq!(server.idleness(), Idleness::NoKernel);
    assert_eq!(server.begin_kernel(polled), Err(Error::NoDevice));
    assert_eq!(server.end_kernel(polled), Err(Error::NoDevice));
    Ok(())
}

/// A thread that has not polled a device itself does not sleep without a limit.
#[test]
fn idleness_of_a_device_in_use_is_open_calls() -> Result<(), Error> {
    let server = Server::new(IdlePolicy::default());
    add(&server, Device::with_announced_kernels)?;
    let devices = server.devices();
    let guard = devices[0].lock();
    assert_eq!(server.poll_devices(), (false, true));
    assert_eq!(server.idleness(), Idleness::OpenCalls);
    drop(guard);
    assert_eq!(server.poll_devices(), (false, false));
    assert_eq!(server.idleness(), Idleness::NoKernel);
    Ok(())
}

/// A thread that sleeps without a limit polls again after each change.
#[test]
fn every_change_is_a_wake_up() -> Result<(), Error> {
    let server = Server::new(IdlePolicy::default());
    let mut last = server.sleepers.epoch();
    let mut changed = |change: &str| {
        let before = std::mem::replace(&mut last, server.sleepers.epoch());
        assert_ne!(before, last, "{change}");
    };
    let (device, _client) = add(&server, Device::with_announced_kernels)?;
    changed("add_device");
    server.begin_kernel(device)?;
    changed("begin_kernel");
    server.end_kernel(device)?;
    changed("end_kernel");
    server.reset_port(device, PortIndex::new(0))?;
    changed("reset_port");
    server.reset_ports(device)?;
    changed("reset_ports");
    server.remove_device(device)?;
    changed("remove_device");
    server.drain();
    changed("drain");
    // Returns at once, and wakes the threads that wait for its calls.
    server.serve();
    changed("the end of a thread that drains");
    server.stop();
    changed("stop");
    Ok(())
}
