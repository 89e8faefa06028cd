//! Round trips of calls between host threads, with our client and server and with LLVM's; the load
//! of an idle server, and the first call after a second.
//!
//! `cargo bench -p gpustub-tests --bench rpc`, with the component `llvm-libc-22` (`./tests/run
//! --all --components-only`).

use std::ffi::c_void;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gpurpc::client::{Client, HostLocks};
use gpurpc::memory::Region;
use gpurpc::server::{Device, Handlers, IdlePolicy, Limits, Server};
use gpurpc::{Layout, PortIndex, opcode};
use gpustub_tests::command::succeed;
use gpustub_tests::components::component;
use gpustub_tests::{Result, repository, scratch};
use libloading::Library;

const ROUNDS: usize = 15;
const CALLS: usize = 20_000;

/// Server of a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serving {
    Llvm,
    /// Ours, with a handler for the copies of all lanes.
    Reply,
    /// Ours, with a handler for a warp.
    Warp,
}

type Serve = extern "C" fn(u32, u32, *mut c_void);

/// Sorted times of many calls in nanoseconds, with the same client for all servers.
fn round_trips(llvm: Serve, serving: Serving, layout: Layout, port: PortIndex) -> Result<Vec<f64>> {
    let region = Region::zeroed(layout)?;
    let client = Client::new(region.clone(), HostLocks::new());
    let mut handlers = Handlers::new();
    if serving == Serving::Warp {
        handlers.on_warp(opcode::TEST_INCREMENT, 8, |warp| {
            for lane in warp.lanes() {
                warp.set_word(lane, 0, warp.input().get(lane)[0] + 1);
            }
        })?;
    } else {
        handlers.on_reply(opcode::TEST_INCREMENT, |packets| {
            for lane in packets.lanes() {
                packets.get_mut(lane)[0] += 1;
            }
        })?;
    }
    let mut device = Device::new(region.clone(), Arc::new(handlers), Limits::default());
    let start = region.start().as_ptr() as usize;
    let ended = AtomicBool::new(false);
    let mask = layout.lane_mask();
    thread::scope(|scope| {
        scope.spawn(|| match serving {
            Serving::Llvm => llvm(layout.ports(), layout.lanes(), start as *mut c_void),
            Serving::Reply | Serving::Warp => {
                while !ended.load(Ordering::Relaxed) {
                    if !device.poll() {
                        std::hint::spin_loop();
                    }
                }
            }
        });
        let times = calls(|value| {
            let mut call = loop {
                if let Some(call) = client.try_open_at(port, opcode::TEST_INCREMENT, mask) {
                    break call;
                }
            };
            call.send(|packets| {
                for lane in packets.lanes() {
                    packets.set_word(lane, 0, value);
                }
            });
            call.recv(|packets| packets.word(0, 0)).unwrap_or(0)
        });
        ended.store(true, Ordering::Relaxed);
        if serving == Serving::Llvm {
            // An unknown opcode ends the server.
            client.open(opcode::NOOP, 1).send(|_| {});
        }
        Ok(times)
    })
}

fn calls(mut call: impl FnMut(u64) -> u64) -> Vec<f64> {
    let mut times = Vec::with_capacity(CALLS);
    for value in 0..CALLS as u64 {
        let before = Instant::now();
        let answer = call(value);
        times.push(before.elapsed().as_nanos() as f64);
        assert_eq!(answer, value + 1);
    }
    times.sort_by(f64::total_cmp);
    times
}

/// Behaviour of a serving thread that finds no request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Ours,
    /// As the thread of LLVM's offload runtime (`RPC.cpp`): polls for another 25 µs, then sleeps
    /// for 250 µs between two polls.
    Offload,
}

/// A device whose calls add one, with a client.
fn device(layout: Layout) -> Result<(Device, Client<Region, HostLocks>)> {
    let region = Region::zeroed(layout)?;
    let client = Client::new(region.clone(), HostLocks::new());
    let mut handlers = Handlers::new();
    handlers.on_request(opcode::TEST_INCREMENT, |packets| {
        for lane in packets.lanes() {
            packets.set_word(lane, 0, packets.word(lane, 0) + 1);
        }
    })?;
    let limits = Limits::default();
    let device = Device::new(region, Arc::new(handlers), limits);
    Ok((device, client))
}

/// Lets a server of 64 ports idle for a while. Returns the processor time of its thread in
/// microseconds and the time of the first call in nanoseconds.
fn idle_for(pause: Duration, policy: Policy) -> Result<(f64, f64)> {
    let (mut device, client) = device(Layout::new(64, 1)?)?;
    // Yields, because a real device does not occupy the processor of the server's thread.
    let client = Client::new(client.memory().clone(), HostLocks::yielding());
    let call = |value| {
        let mut call = client.open(opcode::TEST_INCREMENT, 1);
        call.send(|packets| packets.set_word(0, 0, value));
        let answer = call.recv(|packets| packets.word(0, 0));
        assert_eq!(answer, Some(value + 1));
    };
    let (server, ended) = (Server::new(IdlePolicy::default()), AtomicBool::new(false));
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let (server, ended) = (&server, &ended);
        scope.spawn(move || {
            // Sending fails only after the benchmark has failed.
            let _ = sender.send(std::fs::read_link("/proc/thread-self"));
            if policy == Policy::Ours {
                server.add_device(device);
                return server.serve();
            }
            let mut last = Instant::now();
            while !ended.load(Ordering::Relaxed) {
                if device.poll() {
                    last = Instant::now();
                } else if last.elapsed() >= Duration::from_micros(25) {
                    thread::sleep(Duration::from_micros(250));
                }
            }
        });
        let thread = std::path::Path::new("/proc").join(receiver.recv()??);
        // First number: nanoseconds on a processor.
        let used = || -> Result<f64> {
            let text = std::fs::read_to_string(thread.join("schedstat"))?;
            Ok(text.split(' ').next().unwrap_or_default().parse()?)
        };
        call(1);
        let before = used()?;
        // The measured period, without calls.
        thread::sleep(pause);
        let idle = used()? - before;
        let start = Instant::now();
        call(2);
        let first = start.elapsed().as_nanos() as f64;
        server.drain();
        ended.store(true, Ordering::Relaxed);
        Ok((idle / 1000.0, first))
    })
}

/// Prints the load of idle servers and the duration of the first call after a pause.
fn idle() -> Result<()> {
    const TIMES: usize = 30;
    let policies = [("ours", Policy::Ours), ("LLVM offload's", Policy::Offload)];
    println!(
        "\na pause, {TIMES} times in turn: us on a processor, then ns of the first call: p1 p50 p90 p99"
    );
    for pause in [1, 10, 1000].map(Duration::from_millis) {
        let mut all = [const { (Vec::new(), Vec::new()) }; 2];
        for _ in 0..TIMES {
            for ((_, policy), (used, first)) in policies.iter().zip(&mut all) {
                let (us, ns) = idle_for(pause, *policy)?;
                used.push(us);
                first.push(ns);
            }
        }
        for ((name, _), (used, first)) in policies.iter().zip(&mut all) {
            print!("{:30}", format!("{pause:?}, {name}"));
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

fn main() -> Result<()> {
    // Only one part, if requested: `idle` or `calls`.
    let only = std::env::args()
        .nth(1)
        .filter(|word| !word.starts_with('-'));
    if only.as_deref() != Some("calls") {
        idle()?;
    }
    if only.as_deref() == Some("idle") {
        return Ok(());
    }
    let dir = scratch()?;
    let library = dir.path().join("libllvm-rpc.so");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O2", "-fPIC", "-shared", "-I"]);
    compiler.arg(component("llvm-libc-22/libc/shared")?);
    compiler.arg(repository().join("tests/programs/llvm-rpc.cpp"));
    succeed(compiler.arg("-o").arg(&library))?;
    // SAFETY: loading runs no code of ours; the functions have these types in the library's source.
    let library = unsafe { Library::new(&library) }?;
    // SAFETY: as above; the library stays loaded to the end.
    let llvm: Serve = unsafe { *library.get(b"llvm_serve")? };
    println!(
        "us of a call, {CALLS} in each of {ROUNDS} rounds in turn: medians of the rounds' p50"
    );
    println!("| ports | lanes | LLVM 22 | request | warp | ratio of request | of warp |");
    println!("|---|---|---|---|---|---|---|");
    for (ports, port) in [(1, 0), (64, 0), (64, 63), (4096, 0), (4096, 4095)] {
        for lanes in [1, 32, 64] {
            let layout = Layout::new(ports, lanes)?;
            let mut medians = [const { Vec::new() }; 3];
            for _ in 0..ROUNDS {
                let servers = [Serving::Llvm, Serving::Reply, Serving::Warp];
                for (serving, medians) in servers.into_iter().zip(&mut medians) {
                    let times = round_trips(llvm, serving, layout, PortIndex::new(port))?;
                    medians.push(times[times.len() / 2] / 1000.0);
                }
            }
            let [llvm, reply, warp] = medians.map(|mut medians| {
                medians.sort_by(f64::total_cmp);
                medians[ROUNDS / 2]
            });
            println!(
                "| {ports}, port {port} | {lanes} | {llvm:.2} | {reply:.2} | {warp:.2} | {:.2} | {:.2} |",
                reply / llvm,
                warp / llvm
            );
        }
    }
    Ok(())
}
