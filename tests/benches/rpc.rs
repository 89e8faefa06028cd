//! Round trips of calls between threads of the host: our client and server, and LLVM's.
//!
//! `cargo bench -p gpustub-tests --bench rpc`, with the component `llvm-libc-22` (`./tests/run --all
//! --components-only`).

use std::ffi::c_void;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use gpustub_rpc::client::{Client, HostLocks};
use gpustub_rpc::memory::{Region, Shared};
use gpustub_rpc::server::{Device, Handlers, Limits, Opcodes};
use gpustub_rpc::{Layout, opcode};
use gpustub_tests::command::succeed;
use gpustub_tests::components::component;
use gpustub_tests::{Result, repository, scratch};
use libloading::Library;

const ROUNDS: usize = 15;
const CALLS: usize = 20_000;

/// Who asks and answers, and where.
#[derive(Clone, Copy)]
enum Case {
    Ours { ports: u32, port: u32, lanes: u32 },
    Llvm { ports: u32 },
}

type Serve = extern "C" fn(u32, u32, *mut c_void);
type Increment = extern "C" fn(*mut c_void, u64) -> u64;
type NewClient = extern "C" fn(u32, *mut c_void) -> *mut c_void;
type FreeClient = extern "C" fn(*mut c_void);

struct Llvm {
    serve: Serve,
    increment: Increment,
    client: NewClient,
    client_free: FreeClient,
}

/// Nanoseconds of each of many calls, sorted.
fn ours(ports: u32, port: u32, lanes: u32) -> Result<Vec<f64>> {
    let layout = Layout::new(ports, lanes)?;
    let region = Region::zeroed(layout)?;
    let client: Client<Shared, _> = Client::new(*region, HostLocks::new());
    let mut handlers = Handlers::new();
    handlers.reply(opcode::TEST_INCREMENT, |packets| {
        for lane in packets.lanes() {
            packets.set_word(lane, 0, packets.word(lane, 0) + 1);
        }
    })?;
    let mut device = Device::new(region, Arc::new(handlers), Limits::default(), Opcodes::Wide);
    let ended = AtomicBool::new(false);
    let mask = layout.lane_mask();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                if !device.poll() {
                    std::hint::spin_loop();
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
        Ok(times)
    })
}

fn llvms(llvm: &Llvm, ports: u32) -> Result<Vec<f64>> {
    let region = Region::zeroed(Layout::new(ports, 1)?)?;
    let start = region.start().as_ptr() as usize;
    let serve = llvm.serve;
    let client = (llvm.client)(ports, start as *mut c_void);
    let times = thread::scope(|scope| {
        scope.spawn(move || serve(ports, 1, start as *mut c_void));
        let times = calls(|value| (llvm.increment)(client, value));
        // Ends the server: a call that it does not know.
        let ours: Client<Shared, _> = Client::new(*region, HostLocks::new());
        ours.open(opcode::NOOP, 1).send(|_| {});
        times
    });
    (llvm.client_free)(client);
    Ok(times)
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
    compiler.arg(repository().join("tests/programs/llvm-rpc.cpp"));
    succeed(compiler.arg("-o").arg(&library))?;
    // SAFETY: the library begins with no code of ours; the functions have these types in its source.
    let library = unsafe { Library::new(&library) }?;
    // SAFETY: as above; the library stays to the end.
    let llvm = unsafe {
        Llvm {
            serve: *library.get(b"llvm_serve")?,
            increment: *library.get(b"llvm_increment")?,
            client: *library.get(b"llvm_client")?,
            client_free: *library.get(b"llvm_client_free")?,
        }
    };
    let at = |ports, port, lanes| Case::Ours { ports, port, lanes };
    let cases = [
        ("1 port, LLVM", Case::Llvm { ports: 1 }),
        ("1 port", at(1, 0, 1)),
        ("1 port, 32 lanes", at(1, 0, 32)),
        ("1 port, 64 lanes", at(1, 0, 64)),
        ("64 ports, LLVM", Case::Llvm { ports: 64 }),
        ("64 ports, the first", at(64, 0, 1)),
        ("64 ports, the last", at(64, 63, 1)),
        ("4096 ports, the first, LLVM", Case::Llvm { ports: 4096 }),
        ("4096 ports, the first", at(4096, 0, 1)),
        ("4096 ports, the last", at(4096, 4095, 1)),
    ];
    let mut all = vec![[Vec::new(), Vec::new(), Vec::new()]; cases.len()];
    for _ in 0..ROUNDS {
        for ((_, case), all) in cases.iter().zip(&mut all) {
            let times = match *case {
                Case::Ours { ports, port, lanes } => ours(ports, port, lanes)?,
                Case::Llvm { ports } => llvms(&llvm, ports)?,
            };
            for (percentiles, percent) in all.iter_mut().zip([1, 50, 99]) {
                percentiles.push(times[times.len() * percent / 100]);
            }
        }
    }
    println!(
        "ns of a call, {CALLS} in each of {ROUNDS} rounds in turn: medians of p1, p50, p99; least and greatest p50"
    );
    for ((name, _), mut percentiles) in cases.into_iter().zip(all) {
        percentiles
            .iter_mut()
            .for_each(|all| all.sort_by(f64::total_cmp));
        let [p1, p50, p99] = &percentiles;
        println!(
            "{name:30} {:6.0} {:6.0} {:7.0}   {:6.0} .. {:.0}",
            p1[ROUNDS / 2],
            p50[ROUNDS / 2],
            p99[ROUNDS / 2],
            p50[0],
            p50[ROUNDS - 1]
        );
    }
    Ok(())
}
