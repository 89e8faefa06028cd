//! A handler belongs to the thread that has started it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, ThreadId};

use gpurpc::Error;
use gpurpc::server::{Fault, Limits, Server};

use crate::rig::{OTHER, Rig, handlers};

/// Events of handlers, with the threads on which they happened.
type Events = Arc<Mutex<Vec<(&'static str, ThreadId)>>>;

/// A device whose handler waits for a second packet.
fn rig() -> Result<(Rig, Events), Error> {
    let events = Events::default();
    let seen = Arc::clone(&events);
    let mut handlers = handlers()?;
    handlers.on_blocking(OTHER, move |call| {
        let event = |what| seen.lock().unwrap().push((what, thread::current().id()));
        call.recv(|_| event("began"))?;
        let second = call.recv(|_| event("continued"));
        event(match second {
            Ok(()) => "ended",
            Err(Fault::Abandoned) => "abandoned",
            Err(_) => "failed",
        });
        second
    })?;
    let rig = Rig::new(handlers, 2, 1, Limits::default())?;
    Ok((rig, events))
}

fn events(events: &Events) -> Vec<(&'static str, ThreadId)> {
    std::mem::take(&mut *events.lock().unwrap())
}

/// A thread that polls a server on request.
struct Poller {
    polls: Sender<()>,
    polled: Receiver<bool>,
    thread: JoinHandle<()>,
}

impl Poller {
    fn new(server: &Arc<Server>) -> Self {
        let (polls, requests) = channel();
        let (results, polled) = channel();
        let server = Arc::clone(server);
        let thread = thread::spawn(move || {
            for () in requests {
                results.send(server.poll()).expect("the test waits");
            }
        });
        Self {
            polls,
            polled,
            thread,
        }
    }

    fn poll(&self) -> bool {
        self.polls.send(()).expect("the thread waits");
        self.polled.recv().expect("the thread answers")
    }

    fn id(&self) -> ThreadId {
        self.thread.thread().id()
    }

    /// Ends the thread.
    fn end(self) {
        drop(self.polls);
        self.thread.join().expect("the thread does not panic");
    }
}

#[test]
fn only_the_thread_of_a_handler_continues_it() -> Result<(), Error> {
    let (rig, seen) = rig()?;
    let poller = Poller::new(&rig.server);
    let mut call = rig.client.open(OTHER, 1);
    call.send(|_| {});
    assert!(poller.poll());
    assert_eq!(events(&seen), [("began", poller.id())]);
    call.send(|_| {});
    // This thread finds the packet once, and then nothing to do.
    assert_eq!((rig.server.poll(), rig.server.poll()), (true, false));
    assert_eq!(events(&seen), []);
    assert_eq!(rig.server.open_calls(), 1);
    assert!(poller.poll());
    let id = poller.id();
    assert_eq!(events(&seen), [("continued", id), ("ended", id)]);
    assert_eq!((rig.server.open_calls(), rig.faults()), (0, vec![]));
    poller.end();
    Ok(())
}

/// The thread ends while the handler waits. The next packet finds a dead handler.
#[test]
fn a_thread_that_ends_takes_its_handlers_along() -> Result<(), Error> {
    for is_parked in [false, true] {
        let (rig, seen) = rig()?;
        let poller = Poller::new(&rig.server);
        let id = poller.id();
        let mut call = rig.client.open(OTHER, 1);
        call.send(|_| {});
        poller.poll();
        if is_parked {
            call.send(|_| {});
            rig.server.poll();
        }
        poller.end();
        assert_eq!(events(&seen), [("began", id), ("abandoned", id)]);
        if !is_parked {
            call.send(|_| {});
        }
        assert!(rig.server.poll());
        assert_eq!(rig.faults(), [Fault::Abandoned]);
        assert_eq!((rig.server.open_calls(), rig.server.poll()), (0, false));
        // The port is dropped; the other one is served.
        let mut other = rig.client.open(OTHER, 1);
        other.send(|_| {});
        other.send(|_| {});
        assert!(rig.server.poll());
        assert_eq!(events(&seen).last().map(|event| event.0), Some("ended"));
    }
    Ok(())
}

/// The handler of a removed device runs to its end: at once if its own thread removes the device, else in the next
/// poll of its thread.
#[test]
fn handlers_of_a_removed_device_end() -> Result<(), Error> {
    let (rig, seen) = rig()?;
    let own = thread::current().id();
    rig.client.open(OTHER, 1).send(|_| {});
    rig.server.poll();
    rig.remove()?;
    assert_eq!(events(&seen), [("began", own), ("abandoned", own)]);

    let (rig, seen) = self::rig()?;
    let poller = Poller::new(&rig.server);
    rig.client.open(OTHER, 1).send(|_| {});
    poller.poll();
    rig.remove()?;
    assert_eq!(events(&seen), [("began", poller.id())]);
    poller.poll();
    assert_eq!(events(&seen), [("abandoned", poller.id())]);
    poller.end();
    assert_eq!((events(&seen), rig.faults()), (vec![], vec![]));
    Ok(())
}

/// A thread that has no device left sleeps without a limit, and wakes up for handlers that other threads have abandoned.
#[test]
fn a_thread_that_sleeps_ends_its_handlers() -> Result<(), Error> {
    let (rig, seen) = rig()?;
    let count = |events: &Events| events.lock().unwrap().len();
    thread::scope(|scope| {
        let serving = scope.spawn(|| rig.server.serve());
        rig.open_at(0).send(|_| {});
        while count(&seen) < 1 {
            thread::yield_now();
        }
        let removed = rig.remove();
        while count(&seen) < 2 {
            thread::yield_now();
        }
        rig.server.drain();
        let id = serving.thread().id();
        assert_eq!(events(&seen), [("began", id), ("abandoned", id)]);
        removed
    })
}

/// A port is reset while its handler waits, and serves the next call at once.
#[test]
fn handlers_of_a_reset_port_end() -> Result<(), Error> {
    let (rig, seen) = rig()?;
    let poller = Poller::new(&rig.server);
    rig.client.open(OTHER, 1).send(|_| {});
    poller.poll();
    assert_eq!(rig.reset()?, 1);
    let mut call = rig.client.open(OTHER, 1);
    call.send(|_| {});
    call.send(|_| {});
    rig.server.poll();
    let own = thread::current().id();
    let expected = [
        ("began", poller.id()),
        ("began", own),
        ("continued", own),
        ("ended", own),
    ];
    assert_eq!(events(&seen), expected);
    poller.poll();
    assert_eq!(events(&seen), [("abandoned", poller.id())]);
    poller.end();
    Ok(())
}

/// Several threads poll, and clients on others call.
#[test]
fn handlers_stay_on_their_threads() -> Result<(), Error> {
    let mut handlers = handlers()?;
    handlers.on_blocking(OTHER, |call| {
        let began = thread::current().id();
        for number in 0..20 {
            let sent = call.recv(|packets| packets.word(0, 0))?;
            assert_eq!((sent, thread::current().id()), (number, began));
            call.send(|packets| packets.set_word(0, 0, number + 1))?;
        }
        Ok(())
    })?;
    let rig = Rig::new(handlers, 8, 1, Limits::default())?;
    let memory = rig.client.memory().clone();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| rig.server.serve());
        }
        let clients: Vec<_> = (0..2_u32)
            .map(|thread| {
                let memory = memory.clone();
                scope.spawn(move || {
                    let locks = gpurpc::client::HostLocks::yielding();
                    let client = gpurpc::client::Client::new(memory, locks);
                    for round in 0..40 {
                        let port = gpurpc::PortIndex::new(thread * 4 + round % 4);
                        let call = client.try_open_at(port, OTHER, 1);
                        let mut call = call.expect("no other client has the port");
                        for number in 0..20 {
                            call.send(|packets| packets.set_word(0, 0, number));
                            assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(number + 1));
                        }
                    }
                })
            })
            .collect();
        let results: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        rig.server.drain();
        assert!(results.iter().all(Result::is_ok));
    });
    assert_eq!(rig.faults(), []);
    Ok(())
}
