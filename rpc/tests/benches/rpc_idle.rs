//! Processor time of an idle server, and the first call after a pause, beside the thread of LLVM's offload runtime.
//!
//! `cargo bench -p gpurpc-tests --bench rpc_idle`.

use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use gpurpc::client::{Client, HostLocks};
use gpurpc::memory::Region;
use gpurpc::server::{Device, Doorbell, Handlers, IdlePolicy, Limits, Server, WaitHooks};
use gpurpc::{Generation, Layout, opcode};
use gpurpc_tests::Result;

const TIMES: usize = 30;

/// A number that threads wait for: the interrupt of a doorbell, or the number of running kernels.
#[derive(Clone, Default)]
struct Signal(Arc<(Mutex<i32>, Condvar)>);

impl Signal {
    fn get(&self) -> i32 {
        *self.0.0.lock().expect("no holder panics")
    }

    fn set(&self, value: i32) {
        *self.0.0.lock().expect("no holder panics") = value;
        self.0.1.notify_all();
    }

    /// Waits until the number is not 0. Returns whether it is.
    fn wait_for_nonzero(&self, timeout: Duration) -> bool {
        let value = self.0.0.lock().expect("no holder panics");
        let waited = self
            .0
            .1
            .wait_timeout_while(value, timeout, |value| *value == 0);
        !waited.expect("no holder panics").1.timed_out()
    }
}

impl WaitHooks for Signal {
    fn wait(&self, timeout: Duration) -> bool {
        let has_rung = self.wait_for_nonzero(timeout);
        self.set(0);
        has_rung
    }

    fn wake(&self) {
        self.set(1);
    }
}

/// A device of 64 ports whose calls add one, with a client.
fn device() -> Result<(Device, Client<Region, HostLocks>)> {
    let region = Region::zeroed(Layout::with_generation(Generation::LLVM_23, 64, 1)?)?;
    // Yields, because a real device does not occupy the processor of the server's thread.
    let client = Client::new(region.clone(), HostLocks::yielding());
    let mut handlers = Handlers::new();
    handlers.on_warp(opcode::TEST_INCREMENT, 1, |warp| {
        warp.set_word(0, 0, warp.input().get(0)[0] + 1);
    })?;
    let limits = Limits::default();
    Ok((Device::new(region, Arc::new(handlers), limits), client))
}

/// A server with one device.
struct Rig {
    client: Client<Region, HostLocks>,
    serve: Box<dyn FnOnce() + Send>,
    /// Announces that a kernel runs, or that none does.
    set_kernels: Box<dyn Fn(i32)>,
    /// Rings the doorbell, before a packet.
    ring: Box<dyn Fn()>,
    stop: Box<dyn Fn()>,
}

/// Our server, with or without a doorbell.
fn ours(has_doorbell: bool) -> Result<Rig> {
    let (device, client) = device()?;
    let mut device = device.with_announced_kernels();
    let mut server = Server::new(IdlePolicy::default());
    let mut ring: Box<dyn Fn()> = Box::new(|| {});
    if has_doorbell {
        let open_calls: &AtomicU64 = Box::leak(Box::default());
        let value = NonNull::new(open_calls.as_ptr()).ok_or("null")?;
        // SAFETY: the counter is never freed, and its accesses are atomic.
        device = device.with_doorbell(unsafe { Doorbell::new(value, value, 1) })?;
        let interrupt = Signal::default();
        server = server.with_wait_hooks(interrupt.clone());
        ring = Box::new(move || {
            if open_calls.fetch_add(1, Ordering::Relaxed) == 0 {
                interrupt.set(1);
            }
        });
    }
    let server = Arc::new(server);
    let id = server.add_device(device);
    let [serving, announcing, stopping] = [(); 3].map(|()| Arc::clone(&server));
    Ok(Rig {
        client,
        serve: Box::new(move || serving.serve()),
        set_kernels: Box::new(move |kernels| {
            let announced = match kernels {
                0 => announcing.end_kernel(id),
                _ => announcing.begin_kernel(id),
            };
            announced.expect("the device was added");
        }),
        ring,
        stop: Box::new(move || stopping.stop()),
    })
}

/// Our ports, in a thread that waits as that of LLVM's offload runtime (`RPC.cpp`): it polls for 25 µs after a call, then
/// sleeps for 250 µs between two polls; while no kernel runs it waits for a condition variable.
fn offload() -> Result<Rig> {
    let (mut device, client) = device()?;
    let kernels = Signal::default();
    let [running, stopped] = [(); 2].map(|()| kernels.clone());
    let serve = move || {
        let mut last = Instant::now();
        while running.wait_for_nonzero(Duration::MAX) && running.get() > 0 {
            if device.poll() {
                last = Instant::now();
            } else if last.elapsed() >= Duration::from_micros(25) {
                thread::sleep(Duration::from_micros(250));
            }
        }
    };
    Ok(Rig {
        client,
        serve: Box::new(serve),
        set_kernels: Box::new(move |running| kernels.set(running)),
        ring: Box::new(|| {}),
        stop: Box::new(move || stopped.set(-1)),
    })
}

/// Lets a server idle for a while, in a kernel or between two. Returns the processor time of its thread in microseconds
/// and the time of the first call in nanoseconds, from the announcement of its kernel on.
fn idle_for(pause: Duration, in_kernel: bool, rig: Rig) -> Result<(f64, f64)> {
    let call = |value| {
        (rig.ring)();
        let mut call = rig.client.open(opcode::TEST_INCREMENT, 1);
        call.send(|packets| packets.set_word(0, 0, value));
        let answer = call.recv(|packets| packets.word(0, 0));
        assert_eq!(answer, Some(value + 1));
    };
    let (sender, receiver) = mpsc::channel();
    let serve = rig.serve;
    thread::scope(|scope| {
        scope.spawn(move || {
            // Sending fails only after the benchmark has failed.
            let _ = sender.send(std::fs::read_link("/proc/thread-self"));
            serve();
        });
        let thread = Path::new("/proc").join(receiver.recv()??);
        // First number: nanoseconds on a processor.
        let used = || -> Result<f64> {
            let text = std::fs::read_to_string(thread.join("schedstat"))?;
            Ok(text.split(' ').next().unwrap_or_default().parse()?)
        };
        (rig.set_kernels)(1);
        call(1);
        if !in_kernel {
            (rig.set_kernels)(0);
        }
        let before = used()?;
        // The measured period, without calls.
        thread::sleep(pause);
        let idle = used()? - before;
        let start = Instant::now();
        if !in_kernel {
            (rig.set_kernels)(1);
        }
        call(2);
        let first = start.elapsed().as_nanos() as f64;
        (rig.stop)();
        Ok((idle / 1000.0, first / 1000.0))
    })
}

fn main() -> Result<()> {
    type NewRig = fn() -> Result<Rig>;
    let servers: [(&str, NewRig); 3] = [
        ("ours", || ours(false)),
        ("ours, doorbell", || ours(true)),
        ("LLVM offload's", offload),
    ];
    println!("{TIMES} times in turn: us on a processor, then us of the first call: p1 p50 p90 p99");
    for (millis, in_kernel) in [(1, true), (10, true), (1000, true), (1000, false)] {
        let pause = Duration::from_millis(millis);
        let mut all = [const { (Vec::new(), Vec::new()) }; 3];
        for _ in 0..TIMES {
            for ((_, rig), (used, first)) in servers.iter().zip(&mut all) {
                let (processor, call) = idle_for(pause, in_kernel, rig()?)?;
                used.push(processor);
                first.push(call);
            }
        }
        let place = if in_kernel {
            "in a kernel"
        } else {
            "without one"
        };
        for ((name, _), (used, first)) in servers.iter().zip(&mut all) {
            print!("{:36}", format!("{pause:?} {place}, {name}"));
            for values in [used, first] {
                values.sort_by(f64::total_cmp);
                for percent in [1, 50, 90, 99] {
                    print!(" {:8.0}", values[values.len() * percent / 100]);
                }
                print!("  ");
            }
            println!();
        }
    }
    Ok(())
}
