//! Round trips of calls between host threads, with our client and server and with LLVM's.
//!
//! `cargo bench -p gpurpc-tests --bench rpc`, with the component `llvm-libc-22` (`./tests/run
//! --all --components-only`).

use std::ffi::c_void;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use gpurpc::client::{Client, HostLocks};
use gpurpc::memory::Region;
use gpurpc::server::{Device, Handlers, Limits};
use gpurpc::{Layout, PortIndex, opcode};
use gpurpc_tests::command::succeed;
use gpurpc_tests::components::component;
use gpurpc_tests::{Result, scratch, workspace};
use libloading::Library;

const ROUNDS: usize = 41;
const CALLS: usize = 8_000;

/// Server of a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serving {
    Llvm,
    Ours,
}

type Serve = extern "C" fn(u32, u32, *mut c_void);

/// Sorted times of many calls in nanoseconds, with the same client for all servers.
fn round_trips(llvm: Serve, serving: Serving, layout: Layout, port: PortIndex) -> Result<Vec<f64>> {
    let region = Region::zeroed(layout)?;
    let client = Client::new(region.clone(), HostLocks::new());
    let mut handlers = Handlers::new();
    handlers.on_warp(opcode::TEST_INCREMENT, 8, |warp| {
        for lane in warp.lanes() {
            warp.set_word(lane, 0, warp.input().get(lane)[0] + 1);
        }
    })?;
    let mut device = Device::new(region.clone(), Arc::new(handlers), Limits::default());
    let start = region.start().as_ptr() as usize;
    let ended = AtomicBool::new(false);
    let mask = layout.lane_mask();
    thread::scope(|scope| {
        scope.spawn(|| match serving {
            Serving::Llvm => llvm(layout.ports(), layout.lanes(), start as *mut c_void),
            Serving::Ours => {
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

fn main() -> Result<()> {
    let dir = scratch()?;
    let library = dir.path().join("libllvm-rpc.so");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O2", "-fPIC", "-shared", "-I"]);
    compiler.arg(component("llvm-libc-22/libc/shared")?);
    compiler.arg(workspace().join("tests/programs/llvm-rpc.cpp"));
    succeed(compiler.arg("-o").arg(&library))?;
    // SAFETY: loading runs no code of ours; the functions have these types in the library's source.
    let library = unsafe { Library::new(&library) }?;
    // SAFETY: as above; the library stays loaded to the end.
    let llvm: Serve = unsafe { *library.get(b"llvm_serve")? };
    println!(
        "us of a call, {CALLS} in each of {ROUNDS} rounds in turn: medians of the rounds' p50, and of their ratios"
    );
    println!("| ports | lanes | LLVM 22 | warp | ratio |");
    println!("|---|---|---|---|---|");
    for (ports, port) in [(1, 0), (64, 0), (64, 63), (4096, 0), (4096, 4095)] {
        for lanes in [1, 32, 64] {
            let layout = Layout::new(ports, lanes)?;
            // Times of both servers, and their ratios.
            let mut all = [const { Vec::new() }; 3];
            for _ in 0..ROUNDS {
                let servers = [Serving::Llvm, Serving::Ours];
                let mut times = [0.0; 2];
                for (serving, p50) in servers.into_iter().zip(&mut times) {
                    let times = round_trips(llvm, serving, layout, PortIndex::new(port))?;
                    *p50 = times[times.len() / 2] / 1000.0;
                }
                // Ratios within one round: the placement of threads changes all times between rounds.
                let [llvm, warp] = times;
                for (value, values) in [llvm, warp, warp / llvm].into_iter().zip(&mut all) {
                    values.push(value);
                }
            }
            let [llvm, warp, ratio] = all.map(|mut values| {
                values.sort_by(f64::total_cmp);
                values[ROUNDS / 2]
            });
            println!("| {ports}, port {port} | {lanes} | {llvm:.2} | {warp:.2} | {ratio:.2} |");
        }
    }
    Ok(())
}
