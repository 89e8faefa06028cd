//! Threads that serve and wait: none misses a call, whichever way it sleeps. All sleeps here are so long that a missed
//! call hangs the test.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use gpurpc::client::{Client, HostLocks};
use gpurpc::memory::Region;
use gpurpc::server::{Device, DeviceId, Doorbell, Handlers, IdlePolicy, Limits, Server, WaitHooks};
use gpurpc::{Error, Generation, Layout};

const INCREMENT: u32 = 1;
const BLOCKING: u32 = 2;
const ROUNDS: u64 = 2000;
const HOUR: Duration = Duration::from_secs(3600);

/// Sleeps at once, and for long.
const IDLE: IdlePolicy = IdlePolicy {
    spin_count: 0,
    yield_count: 0,
    max_sleep: Duration::from_micros(50),
    max_wait: HOUR,
};

/// Jobs of blocking calls: each reports that it has started, and waits for permission to end.
struct Jobs {
    started: Receiver<()>,
    end: Sender<()>,
}

type HostClient = Client<Region, HostLocks>;

/// A device with two services: increment, and a job on a worker thread.
fn device(layout: Layout) -> Result<(Device, HostClient, Jobs), Error> {
    let memory = Region::zeroed(layout)?;
    // Yields, because a device does not occupy a processor of the server.
    let client = Client::new(memory.clone(), HostLocks::yielding());
    let mut handlers = Handlers::new();
    handlers.on_warp(INCREMENT, 1, |warp| {
        for lane in warp.lanes() {
            warp.set_word(lane, 0, warp.input().get(lane)[0] + 1);
        }
    })?;
    let (start, started) = channel();
    let (end, ends) = channel();
    let ends = Arc::new(Mutex::new(ends));
    handlers.on_blocking(BLOCKING, move |call| {
        let (start, ends) = (start.clone(), Arc::clone(&ends));
        call.recv(|_| {})?;
        call.run(move || {
            start.send(()).expect("the test receives");
            let ends = ends.lock().expect("no job panics");
            ends.recv().expect("the test sends");
        })?;
        call.send(|packets| packets.set_word(0, 0, 7))
    })?;
    let device = Device::new(memory, Arc::new(handlers), Limits::default());
    Ok((device, client, Jobs { started, end }))
}

fn increment(client: &HostClient, value: u64) {
    let mut call = client.open(INCREMENT, 1);
    call.send(|packets| packets.set_word(0, 0, value));
    assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(value + 1));
}

/// Serves with some threads while `work` runs.
fn serve<T>(server: &Server, threads: usize, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| server.serve());
        }
        let result = work();
        server.drain();
        result
    })
}

#[test]
fn kernels_are_served_whenever_they_are_announced() -> Result<(), Error> {
    for threads in [1, 3] {
        let server = Server::new(IDLE);
        let (device, client, _jobs) = device(Layout::new(2, 1)?)?;
        let id = server.add_device(device.with_announced_kernels());
        serve(&server, threads, || {
            for round in 0..ROUNDS {
                server.begin_kernel(id)?;
                increment(&client, round);
                server.end_kernel(id)?;
            }
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}

#[test]
fn calls_of_ended_kernels_are_served() -> Result<(), Error> {
    let server = Server::new(IDLE);
    let (device, client, _jobs) = device(Layout::new(2, 1)?)?;
    let id = server.add_device(device.with_announced_kernels());
    serve(&server, 2, || {
        for round in 0..ROUNDS {
            server.begin_kernel(id)?;
            let mut call = client.open(INCREMENT, 1);
            call.send(|packets| packets.set_word(0, 0, round));
            server.end_kernel(id)?;
            // Reads the memory, as no device is left that could.
            assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(round + 1));
        }
        Ok(())
    })
}

#[test]
fn jobs_that_end_wake_a_thread_without_kernels() -> Result<(), Error> {
    let server = Server::new(IDLE);
    let (device, client, jobs) = device(Layout::new(2, 1)?)?;
    let id = server.add_device(device.with_announced_kernels());
    serve(&server, 1, || {
        for round in 0..ROUNDS {
            server.begin_kernel(id)?;
            let mut call = client.open(BLOCKING, 1);
            call.send(|_| {});
            jobs.started.recv().expect("the job starts");
            server.end_kernel(id)?;
            if round % 2 == 0 {
                thread::yield_now();
            }
            jobs.end.send(()).expect("the job waits");
            assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(7));
        }
        Ok(())
    })
}

#[test]
fn every_change_of_a_server_wakes_its_threads() -> Result<(), Error> {
    type Change = fn(&Server, DeviceId);
    let changes: [Change; 3] = [
        |server, _| server.drain(),
        |server, _| server.stop(),
        |server, id| {
            server.remove_device(id).expect("the device was added");
            let (device, client, _jobs) = Layout::new(1, 1).and_then(device).expect("valid");
            server.add_device(device);
            increment(&client, 1);
            server.drain();
        },
    ];
    for change in changes {
        for _ in 0..100 {
            let server = Server::new(IDLE);
            let (device, ..) = device(Layout::new(1, 1)?)?;
            let id = server.add_device(device.with_announced_kernels());
            thread::scope(|scope| {
                let threads = [(); 2].map(|()| scope.spawn(|| server.serve()));
                thread::yield_now();
                change(&server, id);
                for thread in threads {
                    thread.join().expect("serving does not panic");
                }
            });
        }
    }
    Ok(())
}

/// The counter of a doorbell, whose interrupts are notifications.
#[derive(Clone)]
struct Interrupts(Arc<Shared>);

struct Shared {
    open_calls: &'static AtomicU64,
    woken: Mutex<bool>,
    changed: Condvar,
    waits: AtomicU64,
}

impl Interrupts {
    fn new() -> Self {
        Self(Arc::new(Shared {
            open_calls: Box::leak(Box::default()),
            woken: Mutex::default(),
            changed: Condvar::new(),
            waits: AtomicU64::new(0),
        }))
    }

    fn doorbell(&self) -> Doorbell {
        let value = NonNull::new(self.0.open_calls.as_ptr()).expect("not null");
        // SAFETY: the counter is never freed, and its accesses are atomic.
        unsafe { Doorbell::new(value, value, 1) }
    }

    /// As a client does before its packet is in the memory.
    fn ring(&self) {
        if self.0.open_calls.fetch_add(1, Ordering::Relaxed) == 0 {
            drop(self.0.woken.lock());
            self.0.changed.notify_all();
        }
    }
}

impl WaitHooks for Interrupts {
    fn wait(&self, timeout: Duration) -> bool {
        self.0.waits.fetch_add(1, Ordering::Relaxed);
        assert_eq!(timeout, HOUR, "the doorbell of every device is waited for");
        let mut woken = self.0.woken.lock().expect("no holder panics");
        while !*woken && self.0.open_calls.load(Ordering::Relaxed) == 0 {
            woken = self.0.changed.wait(woken).expect("no holder panics");
        }
        *woken = false;
        true
    }

    fn wake(&self) {
        *self.0.woken.lock().expect("no holder panics") = true;
        self.0.changed.notify_all();
    }
}

#[test]
fn doorbells_end_a_wait() -> Result<(), Error> {
    for threads in [1, 3] {
        let interrupts = Interrupts::new();
        let server = Server::new(IDLE).with_wait_hooks(interrupts.clone());
        let layout = Layout::with_generation(Generation::LLVM_23, 2, 1)?;
        let (device, client, _jobs) = device(layout)?;
        server.add_device(device.with_doorbell(interrupts.doorbell())?);
        serve(&server, threads, || {
            // An idle server waits.
            while interrupts.0.waits.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            for round in 0..ROUNDS {
                interrupts.ring();
                if round % 16 == 0 {
                    thread::yield_now();
                }
                increment(&client, round);
            }
        });
        assert_eq!(interrupts.0.open_calls.load(Ordering::Relaxed), 0);
    }
    Ok(())
}

/// The interrupt of each call is lost; another thread of the host wakes the server.
#[test]
fn wake_ends_a_wait() -> Result<(), Error> {
    let interrupts = Interrupts::new();
    let server = Server::new(IDLE).with_wait_hooks(interrupts.clone());
    let layout = Layout::with_generation(Generation::LLVM_23, 2, 1)?;
    let (device, client, _jobs) = device(layout)?;
    server.add_device(device.with_doorbell(interrupts.doorbell())?);
    serve(&server, 2, || {
        for round in 0..ROUNDS {
            let mut call = client.open(INCREMENT, 1);
            interrupts.0.open_calls.fetch_add(1, Ordering::Relaxed);
            call.send(|packets| packets.set_word(0, 0, round));
            server.wake();
            assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(round + 1));
        }
    });
    Ok(())
}

/// A kernel that has died leaves its calls counted: the server polls as without a doorbell.
#[test]
fn stuck_counter_delays_no_other_call() -> Result<(), Error> {
    let interrupts = Interrupts::new();
    interrupts.ring();
    let server = Server::new(IDLE).with_wait_hooks(interrupts.clone());
    let layout = Layout::with_generation(Generation::LLVM_23, 2, 1)?;
    let (device, client, _jobs) = device(layout)?;
    server.add_device(device.with_doorbell(interrupts.doorbell())?);
    serve(&server, 1, || {
        for round in 0..100 {
            interrupts.ring();
            increment(&client, round);
        }
    });
    assert_eq!(interrupts.0.open_calls.load(Ordering::Relaxed), 1);
    Ok(())
}
