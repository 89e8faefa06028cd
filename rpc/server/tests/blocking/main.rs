//! Handlers that wait in their operations.
#![cfg(feature = "blocking")]

mod rig;
mod threads;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use gpurpc::memory::Region;
use gpurpc::server::{Device, Fault, IdlePolicy, Limits, RefusedCall, Server};
use gpurpc::{Error, Generation, Layout, PortIndex};
use rig::{ECHO, OTHER, Rig, SUM, handlers};

/// Each call waits for several packets of its client, while those of others arrive.
#[test]
fn calls_that_wait_are_served_in_any_order() -> Result<(), Error> {
    for lanes in [1, 32, 64] {
        let rig = Rig::new(handlers()?, 70, lanes, Limits::default())?;
        let mut calls: Vec<_> = (0..70).map(|_| rig.client.open(SUM, u64::MAX)).collect();
        for round in 1..=3 {
            for (port, call) in (0..).zip(&mut calls) {
                call.send(|packets| {
                    for lane in packets.lanes() {
                        packets.set_word(lane, 0, round * (port + u64::from(lane) + 1));
                    }
                });
            }
        }
        assert_eq!(rig.server.open_calls(), 70);
        for (port, call) in (0..).zip(&mut calls) {
            // Ends the sum, in reverse order of the ports.
            call.send(|packets| {
                packets
                    .lanes()
                    .for_each(|lane| packets.set_word(lane, 0, 0))
            });
            call.recv(|packets| {
                for lane in packets.lanes() {
                    assert_eq!(packets.word(lane, 0), 6 * (port + u64::from(lane) + 1));
                }
            });
        }
        drop(calls);
        rig.server.poll();
        assert_eq!((rig.server.open_calls(), rig.faults()), (0, vec![]));
    }
    Ok(())
}

#[test]
fn messages_of_any_size_are_echoed() -> Result<(), Error> {
    let rig = Rig::new(handlers()?, 2, 32, Limits::default())?;
    for size in [0, 1, 56, 57, 120, 5000] {
        let text = |lane: u32| vec![lane as u8; size + lane as usize];
        let texts: Vec<_> = (0..32).map(text).collect();
        let mut call = rig.client.open(ECHO, 0x00f0_ff0f);
        call.send_n(|lane| &texts[lane as usize]);
        let mut received = vec![Vec::<u8>::new(); 32];
        call.recv_n(|lane, _, bytes| received[lane as usize].extend(bytes));
        for lane in call.lanes() {
            assert_eq!(received[lane as usize], texts[lane as usize]);
        }
    }
    Ok(())
}

/// 16,384 calls that never continue, of a device whose calls may have 64 stacks.
#[test]
fn waiting_calls_of_a_hostile_device_are_bounded() -> Result<(), Error> {
    let layout = Layout::with_generation(Generation::LLVM_23, 16384, 1)?;
    let live = Arc::new(AtomicUsize::new(0));
    let (most, count) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&live));
    let mut hostile = handlers()?;
    let largest = Arc::clone(&most);
    hostile.on_blocking(OTHER, move |call| {
        let live = count.fetch_add(1, Ordering::Relaxed) + 1;
        largest.fetch_max(live, Ordering::Relaxed);
        let second = call.recv(|_| {}).and_then(|()| call.recv(|_| {}));
        count.fetch_sub(1, Ordering::Relaxed);
        second
    })?;
    let limits = Limits {
        memory: 64 * (64 << 10),
        stack: 64 << 10,
        ..Limits::default()
    };
    let rig = Rig::with_layout(hostile, layout, limits)?;
    let honest = Region::zeroed(Layout::new(4, 32)?)?;
    let client = rig.client_of(honest.clone());
    let limits = Limits::default();
    let device = Device::new(honest, Arc::new(handlers()?), limits);
    rig.server.add_device(device);
    for round in 0..16384 {
        rig.open_at(round).send(|_| {});
        if round % 1024 == 0 {
            let mut call = client.open(SUM, 1);
            call.send(|packets| packets.set_word(0, 0, 5));
            call.send(|packets| packets.set_word(0, 0, 0));
            assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(5));
        }
    }
    rig.server.poll();
    assert_eq!(live.load(Ordering::Relaxed), 64);
    // The one that is refused has not waited.
    assert_eq!(most.load(Ordering::Relaxed), 65);
    let faults = rig.faults();
    assert_eq!(faults.len(), 16384 - 64);
    let is_refused = |fault: &Fault| matches!(fault, Fault::OutOfMemory { size: 65536, .. });
    assert!(faults.iter().all(is_refused), "{faults:?}");
    rig.remove()?;
    assert_eq!(live.load(Ordering::Relaxed), 0);
    Ok(())
}

#[test]
fn a_panic_drops_the_call() -> Result<(), Error> {
    let mut handlers = handlers()?;
    handlers.on_blocking(OTHER, |call| {
        call.recv(|_| {})?;
        call.recv(|_| {})?;
        panic!("as asked");
    })?;
    let rig = Rig::new(handlers, 1, 1, Limits::default())?;
    let mut call = rig.client.open(OTHER, 1);
    call.send(|_| {});
    call.send(|_| {});
    rig.server.poll();
    assert_eq!(rig.faults(), [Fault::HandlerFailed]);
    Ok(())
}

#[test]
fn a_refused_request_is_reported_and_answered() -> Result<(), Error> {
    let mut handlers = handlers()?;
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&reports);
    handlers.on_refusal(move |call| seen.lock().unwrap().push(call.clone()));
    handlers.on_blocking(OTHER, |call| {
        call.recv(|_| {})?;
        call.refuse(Fault::Other("too much"));
        call.send(|packets| packets.set_word(0, 0, u64::MAX))
    })?;
    let rig = Rig::new(handlers, 2, 1, Limits::default())?;
    let mut call = rig.open_at(1);
    call.send(|_| {});
    assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(u64::MAX));
    let report = RefusedCall {
        port: PortIndex::new(1),
        opcode: OTHER,
        reason: Fault::Other("too much"),
    };
    assert_eq!(*reports.lock().unwrap(), [report]);
    assert_eq!(rig.faults(), []);
    Ok(())
}

/// A handler that ignores a fault gets it again, and the call is dropped.
#[test]
fn a_fault_stays() -> Result<(), Error> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (found, too_large) = (
        Arc::clone(&seen),
        Fault::MessageTooLarge { size: 9, limit: 8 },
    );
    let mut handlers = handlers()?;
    handlers.on_blocking(OTHER, move |call| {
        let mut found = found.lock().unwrap();
        found.push(call.recv_n().err());
        found.push(call.recv(|_| {}).err());
        found.push(call.run(|| ()).err());
        call.fail(Fault::UnknownOpcode);
        found.push(call.send(|_| {}).err());
        Ok(())
    })?;
    let limits = Limits {
        message: 8,
        ..Limits::default()
    };
    let rig = Rig::new(handlers, 1, 1, limits)?;
    rig.client
        .open(OTHER, 1)
        .send(|packets| packets.set_word(0, 0, 9));
    rig.server.poll();
    assert_eq!(*seen.lock().unwrap(), vec![Some(too_large.clone()); 4]);
    assert_eq!(rig.faults(), [too_large]);
    Ok(())
}

/// A worker thread runs what blocks, and the device serves other calls.
#[test]
fn a_function_that_blocks_delays_no_other_call() -> Result<(), Error> {
    let (go, gone) = channel();
    let gone = Arc::new(Mutex::new(gone));
    let mut handlers = handlers()?;
    handlers.on_blocking(OTHER, move |call| {
        let gone = Arc::clone(&gone);
        call.recv(|_| {})?;
        let number = call.run(move || gone.lock().unwrap().recv().unwrap_or(0))?;
        call.send(|packets| packets.set_word(0, 0, number))
    })?;
    let rig = Rig::new(handlers, 2, 1, Limits::default())?;
    rig.wait_for_threads();
    for number in 1..=3 {
        let mut slow = rig.client.open(OTHER, 1);
        slow.send(|_| {});
        let mut call = rig.client.open(SUM, 1);
        call.send(|packets| packets.set_word(0, 0, 0));
        assert!(call.recv(|_| {}).is_some());
        drop(call);
        go.send(number).expect("the handler waits");
        assert_eq!(slow.recv(|packets| packets.word(0, 0)), Some(number));
    }
    Ok(())
}

/// The poll of a handler starts handlers on further stacks, one of which waits when the first one ends.
#[test]
fn a_handler_serves_other_devices() -> Result<(), Error> {
    let inner = Arc::new(Server::new(IdlePolicy::default()));
    let memory = Region::zeroed(Layout::new(2, 1)?)?;
    let limits = Limits::default();
    inner.add_device(Device::new(memory.clone(), Arc::new(handlers()?), limits));
    let mut outer = handlers()?;
    let nested = Arc::clone(&inner);
    outer.on_blocking(OTHER, move |call| {
        call.recv(|_| {})?;
        nested.poll();
        call.recv(|_| {})?;
        nested.poll();
        Ok(())
    })?;
    let rig = Rig::new(outer, 1, 1, Limits::default())?;
    let client = rig.client_of(memory);
    let mut call = client.open(SUM, 1);
    let mut first = rig.client.open(OTHER, 1);
    call.send(|packets| packets.set_word(0, 0, 4));
    first.send(|_| {});
    rig.server.poll();
    assert_eq!((inner.open_calls(), rig.server.open_calls()), (1, 1));
    call.send(|packets| packets.set_word(0, 0, 0));
    first.send(|_| {});
    rig.server.poll();
    assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(4));
    Ok(())
}

/// A handler that cannot report a fault leaves its stack behind, which the device keeps.
#[test]
fn a_discarded_handler_drops_its_call() -> Result<(), Error> {
    let mut handlers = handlers()?;
    handlers.on_blocking(OTHER, |call| {
        while call.recv(|_| {}).is_ok() {}
        // SAFETY: nothing on this stack is used later.
        unsafe { call.discard() }
    })?;
    let limits = Limits {
        memory: 0,
        ..Limits::default()
    };
    let rig = Rig::new(handlers, 3, 1, limits)?;
    for port in 0..3 {
        rig.open_at(port).send(|_| {});
        rig.server.poll();
        assert_eq!(rig.faults().len() as u32, port + 1);
    }
    rig.remove()
}
