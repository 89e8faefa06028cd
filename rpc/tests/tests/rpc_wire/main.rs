//! Our server with LLVM's client, and our client with LLVM's server, in one process with one lane.
//! `our_server` and `our_client` test all services, with warps of 1, 32 and 64 lanes.

mod layouts;
mod our_client;
mod our_server;
mod programs;

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use gpurpc::client::{Client, HostLocks};
use gpurpc::libc::Services;
use gpurpc::memory::Region;
use gpurpc::server::{Device, Handlers, IdlePolicy, Limits, Server};
use gpurpc::{Layout, opcode};
use gpurpc_tests::command::succeed;
use gpurpc_tests::components::component;
use gpurpc_tests::{Result, scratch, workspace};
use libloading::Library;

/// Functions of `tests/programs/llvm-rpc.cpp`.
#[derive(Clone, Copy)]
struct Llvm {
    allocation_size: extern "C" fn(u32, u32) -> u64,
    client: extern "C" fn(u32, *mut c_void) -> *mut c_void,
    client_free: extern "C" fn(*mut c_void),
    increment: extern "C" fn(*mut c_void, u64) -> u64,
    stream: extern "C" fn(*mut c_void, *const c_void, u64) -> c_int,
    malloc: extern "C" fn(*mut c_void, u64) -> u64,
    free: extern "C" fn(*mut c_void, u64),
    puts: extern "C" fn(*mut c_void, *const c_char) -> u64,
    file: extern "C" fn(*mut c_void, *const c_char, *const c_void, u64) -> c_int,
    exit: extern "C" fn(*mut c_void, c_int),
    serve: extern "C" fn(u32, u32, *mut c_void),
}

impl Llvm {
    fn load(directory: &Path) -> Result<Self> {
        let library = directory.join("libllvm-rpc.so");
        let mut compiler = Command::new("c++");
        compiler.args(["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror"]);
        compiler.args(["-fPIC", "-shared", "-I"]);
        compiler.arg(component("llvm-libc-22/libc/shared")?);
        compiler.arg(workspace().join("tests/programs/llvm-rpc.cpp"));
        succeed(compiler.arg("-o").arg(&library))?;
        // SAFETY: the library runs no code of ours when it is loaded.
        let library = unsafe { Library::new(&library) }?;
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the function has the field's type in its source; the library stays.
                unsafe { *library.get($name)? }
            };
        }
        let llvm = Self {
            allocation_size: function!(b"llvm_allocation_size"),
            client: function!(b"llvm_client"),
            client_free: function!(b"llvm_client_free"),
            increment: function!(b"llvm_increment"),
            stream: function!(b"llvm_stream"),
            malloc: function!(b"llvm_malloc"),
            free: function!(b"llvm_free"),
            puts: function!(b"llvm_puts"),
            file: function!(b"llvm_file"),
            exit: function!(b"llvm_exit"),
            serve: function!(b"llvm_serve"),
        };
        std::mem::forget(library);
        Ok(llvm)
    }
}

/// LLVM's client, which threads share.
#[derive(Clone, Copy)]
struct Theirs(*mut c_void);

// SAFETY: the client supports many concurrent warps; all its memory accesses are atomic.
unsafe impl Send for Theirs {}
// SAFETY: as above.
unsafe impl Sync for Theirs {}

impl Theirs {
    fn get(self) -> *mut c_void {
        self.0
    }
}

/// Output stream whose contents the test can read.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic in a sink").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn layouts() -> impl Iterator<Item = (u32, u32)> {
    let ports = [1, 2, 3, 63, 64, 65, 1000, 4096];
    ports
        .into_iter()
        .flat_map(|ports| [1, 32, 64].map(|lanes| (ports, lanes)))
}

#[test]
#[ignore = "needs the sources of LLVM 22: ./tests/run --all"]
fn heavy_llvms_client_is_served() -> Result<()> {
    let dir = scratch()?;
    let llvm = Llvm::load(dir.path())?;
    for (ports, lanes) in layouts() {
        let size = Layout::new(ports, lanes)?.size() as u64;
        assert_eq!(
            size,
            (llvm.allocation_size)(ports, lanes),
            "{ports} ports, {lanes} lanes"
        );
    }

    for ports in [1, 64, 4096] {
        let mut handlers = Handlers::new();
        handlers.on_warp(opcode::TEST_INCREMENT, 1, |warp| {
            for lane in warp.lanes() {
                warp.set_word(lane, 0, warp.input().get(lane)[0] + 1);
            }
        })?;
        handlers.on_blocking(opcode::TEST_STREAM, |call| {
            let messages = call.recv_n()?;
            call.send_n(|lane| messages.get(lane).unwrap_or_default())
        })?;
        let (out, statuses) = (Sink::default(), Arc::new(Mutex::new(Vec::new())));
        let (freed, seen) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&statuses));
        let frees = Arc::clone(&freed);
        Services::new()
            .stdout(out.clone())
            .files(dir.path())?
            .memory(
                |size| size * 16,
                move |address| frees.lock().expect("no panic").push(address),
            )
            .on_exit(move |status| seen.lock().expect("no panic").push(status))
            .register(&mut handlers)?;
        let region = Region::zeroed(Layout::new(ports, 1)?)?;
        let client = Theirs((llvm.client)(ports, region.start().as_ptr().cast()));
        let server = Server::new(IdlePolicy::default());
        server.add_device(Device::new(region, Arc::new(handlers), Limits::default()));
        thread::scope(|scope| {
            scope.spawn(|| server.serve());
            let threads: Vec<_> = (0..8_u64)
                .map(|thread| scope.spawn(move || warp(llvm, client, thread)))
                .collect();
            let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            (llvm.puts)(client.get(), c"the end".as_ptr());
            (llvm.exit)(client.get(), 42);
            server.drain();
            assert!(results.iter().all(Result::is_ok));
        });
        (llvm.client_free)(client.get());
        assert_eq!(out.0.lock().expect("no panic").as_slice(), b"the end\n");
        assert_eq!(*statuses.lock().expect("no panic"), [42]);
        let mut freed = freed.lock().expect("no panic").clone();
        freed.sort_unstable();
        assert_eq!(
            freed,
            (0..8)
                .map(|thread| (1000 + thread) * 16)
                .collect::<Vec<u64>>()
        );
    }
    Ok(())
}

/// Requests of one thread.
fn warp(llvm: Llvm, client: Theirs, thread: u64) {
    let client = client.get();
    for n in 0..1000 {
        let value = thread << 32 | n;
        assert_eq!((llvm.increment)(client, value), value + 1);
    }
    for size in [0, 1, 55, 56, 57, 64, 119, 120, 121, 5000] {
        let bytes: Vec<u8> = (0..size).map(|at| (at * 7 + thread) as u8).collect();
        let different = (llvm.stream)(client, bytes.as_ptr().cast(), size);
        assert_eq!(different, 0, "{size} bytes");
    }
    let path = CString::new(format!("file-{thread}")).expect("no NUL");
    let bytes = vec![thread as u8; 700];
    let failed = (llvm.file)(client, path.as_ptr(), bytes.as_ptr().cast(), 700);
    assert_eq!(failed, 0);
    let address = (llvm.malloc)(client, 1000 + thread);
    assert_eq!(address, (1000 + thread) * 16);
    (llvm.free)(client, address);
}

#[test]
#[ignore = "needs the sources of LLVM 22: ./tests/run --all"]
fn heavy_llvms_server_serves() -> Result<()> {
    let dir = scratch()?;
    let llvm = Llvm::load(dir.path())?;
    for (ports, lanes) in layouts() {
        let layout = Layout::new(ports, lanes)?;
        let region = Region::zeroed(layout)?;
        let client: Client<Region, _> = Client::new(region.clone(), HostLocks::yielding());
        let start = region.start().as_ptr() as usize;
        thread::scope(|scope| {
            let server = scope.spawn(move || (llvm.serve)(ports, lanes, start as *mut c_void));
            for n in 0..50_u64 {
                let mask = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1) & layout.lane_mask();
                let mut call = client.open(opcode::TEST_INCREMENT, mask);
                call.send(|packets| {
                    for lane in packets.lanes() {
                        packets.set_word(lane, 0, n + u64::from(lane));
                    }
                });
                call.recv(|packets| {
                    for lane in packets.lanes() {
                        assert_eq!(packets.word(lane, 0), n + u64::from(lane) + 1);
                    }
                });
                drop(call);

                let text = |lane: u32| vec![lane as u8; (n as usize * 5 + lane as usize * 3) % 400];
                let texts: Vec<_> = (0..lanes).map(text).collect();
                let mut call = client.open(opcode::TEST_STREAM, mask);
                call.send_n(|lane| &texts[lane as usize]);
                let mut received = vec![Vec::<u8>::new(); lanes as usize];
                call.recv_n(|lane, _, bytes| received[lane as usize].extend(bytes));
                for lane in call.lanes() {
                    assert_eq!(received[lane as usize], texts[lane as usize]);
                }
            }
            client.open(opcode::NOOP, 1).send(|_| {});
            server.join().map_err(|_| "LLVM's server has failed")
        })?;
    }
    Ok(())
}
