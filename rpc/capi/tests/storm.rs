//! Devices that write anything to 100 ports, beside an honest one: calls of the honest one are answered, and resident
//! memory stays bounded and goes back to the system.
#![cfg(target_os = "linux")]

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gpurpc::client::{Client, HostLocks};
use gpurpc::memory::{Memory, SharedMemory, Side};
use gpurpc::{Generation, Layout, PACKET_WORDS, PortIndex, opcode};
use gpurpc_capi::*;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Service that returns a message.
const ECHO: u32 = 0x7900_0001;
const PORTS: u32 = 100;
const MIB: u64 = 1 << 20;
/// Resident memory during the storms: the limit of all calls of one device is 256 MiB.
const MOST_DURING: u64 = 300_000_000;
/// Resident memory that may remain after the removal of a device.
const MOST_AFTER: u64 = 20_000_000;
/// Least duration of each storm, which continues until [`CALLS`] are answered beside it, however slow the machine.
const STORM: Duration = Duration::from_secs(10);
/// Number of honest calls that are answered at least beside each storm.
const CALLS: u64 = 100;

/// Resident memory of this process in bytes.
fn resident() -> Result<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = pages.split(' ').nth(1).ok_or("no second number")?.parse()?;
    Ok(pages * 4096)
}

/// Number of threads of this process.
fn threads() -> Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Time after which a condition is taken to hold never.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
fn wait_until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result {
    let until = Instant::now() + PATIENCE;
    while !holds()? {
        if Instant::now() > until {
            return Err(format!("after a minute: {what}").into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn check(status: c_int) -> Result {
    match status {
        0 => Ok(()),
        status => Err(format!("{status:#x}").into()),
    }
}

#[derive(Default)]
struct Counts {
    dropped: AtomicU64,
    refused: AtomicU64,
}

unsafe extern "C" fn count(fault: *const CFault, data: *mut c_void) {
    // SAFETY: the fault is valid, and the data is that of the registration.
    let (fault, counts) = unsafe { (&*fault, &*data.cast::<Counts>()) };
    let refused = fault.status == 0x100f;
    let counter = if refused {
        &counts.refused
    } else {
        &counts.dropped
    };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Endless input.
unsafe extern "C" fn read(_: CDevice, bytes: *mut c_void, size: u64, _: *mut c_void) -> i64 {
    // SAFETY: there is room for as many bytes.
    unsafe { bytes.cast::<u8>().write_bytes(b'x', size as usize) };
    size as i64
}

unsafe extern "C" fn discard(
    _: CDevice,
    _: c_int,
    _: *const c_void,
    size: u64,
    _: *mut c_void,
) -> i64 {
    size as i64
}

unsafe extern "C" fn malloc(_: CDevice, size: u64, _: *mut c_void) -> u64 {
    size << 8
}

unsafe extern "C" fn free(_: CDevice, _: u64, _: *mut c_void) {}

/// Sends a message back.
unsafe extern "C" fn echo(call: *mut Blocking, _: *mut c_void) {
    let (mut messages, mut sizes) = ([null_mut(); 64], [0; 64]);
    // SAFETY: the call is valid; both arrays have 64 elements.
    unsafe {
        let (texts, bytes) = (messages.as_mut_ptr(), sizes.as_mut_ptr());
        if gpurpc_blocking_recv_n(call, texts, bytes) == 0 {
            gpurpc_blocking_send_n(call, texts.cast(), bytes);
        }
    }
}

/// A server that other threads use.
#[derive(Clone, Copy)]
struct Server(*mut gpurpc_capi::Server);

// SAFETY: the header allows any thread to use a server.
unsafe impl Send for Server {}
// SAFETY: as above.
unsafe impl Sync for Server {}

impl Server {
    fn add(
        self,
        generation: &'static Generation,
        ports: u32,
        lanes: u32,
    ) -> Result<(CDevice, SharedMemory)> {
        // SAFETY: all zero but four members: the defaults.
        let mut options: DeviceOptions = unsafe { std::mem::zeroed() };
        options.struct_size = size_of::<DeviceOptions>() as u64;
        (options.ports, options.lanes) = (ports, lanes);
        options.generation = generation.first_release;
        let (mut device, mut start, mut size) = (CDevice::default(), null_mut(), 0);
        // SAFETY: the server is valid. The memory stays until it is destroyed, which is after the last access.
        unsafe {
            check(gpurpc_device_add(self.0, &options, &mut device))?;
            check(gpurpc_device_buffer(self.0, device, &mut start, &mut size))?;
            let start = NonNull::new(start.cast()).ok_or("no memory")?;
            let layout = Layout::with_generation(generation, ports, lanes)?;
            Ok((device, SharedMemory::new(start, size as usize, layout)?))
        }
    }

    fn serve(self) {
        // SAFETY: the server is valid.
        assert_eq!(unsafe { gpurpc_serve(self.0) }, 0);
    }
}

/// A xorshift generator.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// One of some values.
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.next() as usize % of.len()]
    }
}

/// Formats of `printf`, and other text.
const TEXTS: [&[u8]; 6] = [
    b"%1000000d\0",
    b"%n\0",
    b"%s%s%s%s\0",
    b"%99999999d\0",
    b"file\0",
    b"%d text\n\0",
];

/// Writes to all ports until the end: calls with large sizes as a client makes them, and noise.
fn storm(memory: &SharedMemory, seed: u64, ended: &AtomicBool) {
    let mut noise = Noise(seed);
    let lanes = memory.layout().lanes();
    let sizes = [
        0,
        9,
        100,
        5000,
        200_000,
        MIB,
        4 * MIB,
        16 * MIB,
        17 * MIB,
        1 << 63,
        u64::MAX,
    ];
    while !ended.load(Ordering::Acquire) {
        let port = PortIndex::new(noise.next() as u32 % PORTS);
        let outbox = memory.outbox(Side::Client, port);
        let owns = Side::Client.owns(memory.inbox(Side::Client, port), outbox);
        if owns {
            let known = noise.one(opcode::ALL).1;
            let mask = noise.one(&[1, 0b1011, 0xff, u64::MAX, noise.0]);
            if noise.next() % 4 == 0 {
                memory.set_header(port, mask, noise.one(&[known, known, ECHO]));
            }
            let (size, text) = (noise.one(&sizes), noise.one(&TEXTS));
            for lane in 0..lanes {
                memory.set_word(port, lane, 0, size);
                memory.set_word(port, lane, 1, noise.one(&[0, 1, 2, 3]));
                if noise.next() % 2 == 0 {
                    for (word, part) in (1..).zip(text.chunks(8)) {
                        let mut bytes = [0; 8];
                        bytes[..part.len()].copy_from_slice(part);
                        memory.set_word(port, lane, word, u64::from_ne_bytes(bytes));
                    }
                }
            }
            memory.set_outbox(Side::Client, port, u32::from(outbox == 0));
        } else if noise.next() % 64 == 0 {
            let (lane, word) = (noise.next() as u32 % lanes, noise.next() as usize);
            match noise.next() % 4 {
                0 => memory.set_outbox(Side::Client, port, noise.next() as u32),
                1 => memory.set_header(port, noise.next(), noise.one(opcode::ALL).1),
                _ => memory.set_word(port, lane, word % PACKET_WORDS, noise.next()),
            }
        }
    }
}

/// Makes correct calls until the end, and counts them.
fn honest(client: &Client<SharedMemory, HostLocks>, calls: &AtomicU64, ended: &AtomicBool) {
    let text = vec![7; 3000];
    while !ended.load(Ordering::Acquire) {
        let mut call = client.open(ECHO, 0b101);
        call.send_n(|lane| &text[..lane as usize * 1000 + 900]);
        let mut got = [0, 0, 0];
        call.recv_n(|lane, _, bytes| {
            assert!(bytes.iter().all(|byte| *byte == 7));
            got[lane as usize] += bytes.len();
        });
        assert_eq!(got, [900, 0, 2900]);
        drop(call);
        let mut call = client.open(opcode::WRITE_TO_STDOUT, 1);
        call.send_n(|_| b"text");
        assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(4));
        calls.fetch_add(2, Ordering::Release);
    }
}

/// Sets a flag when it is dropped, also in a panic.
struct End<'e>(&'e AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Storms of devices with 32 and with 64 lanes. Each device is removed while it writes.
#[test]
#[ignore = "takes twenty seconds, and measures the memory of the process: ./tests/run --all"]
fn heavy_storms_leave_no_memory() -> Result {
    let counts = Counts::default();
    let mut server = null_mut();
    let root = tempfile::tempdir()?;
    let path = std::ffi::CString::new(root.path().as_os_str().as_encoded_bytes())?;
    // SAFETY: all pointers are valid; the data outlives the server.
    unsafe {
        check(gpurpc_server_create(std::ptr::null(), &mut server))?;
        let data = std::ptr::from_ref(&counts).cast_mut().cast();
        check(gpurpc_register_fault_callback(server, Some(count), data))?;
        check(gpurpc_register_blocking(server, ECHO, Some(echo), data))?;
        let mut libc: LibcOptions = std::mem::zeroed();
        libc.struct_size = size_of::<LibcOptions>() as u64;
        libc.read = Some(read);
        libc.write = Some(discard);
        libc.malloc = Some(malloc);
        libc.free = Some(free);
        libc.root = path.as_ptr();
        check(gpurpc_register_libc(server, &libc))?;
    }
    let server = Server(server);
    let (_, memory) = server.add(Generation::LLVM_20, 8, 32)?;
    let client = Client::new(memory, HostLocks::yielding());
    let (calls, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let (before, most, after, reset, beside) = thread::scope(|serving| -> Result<_> {
        for _ in 0..2 {
            serving.spawn(move || server.serve());
        }
        let _stop = Stop(server);
        // The client ends before the server stops, also after an error: its call would wait forever.
        thread::scope(|scope| -> Result<_> {
            let _end = End(&ended);
            let calling = scope.spawn(|| honest(&client, &calls, &ended));
            // These have started the threads and taken the memory that honest calls need.
            wait_until("too few honest calls", || {
                Ok(calls.load(Ordering::Acquire) >= CALLS)
            })?;
            let (before, threads_before) = (resident()?, threads()?);
            let (mut most, mut after, mut reset, mut beside) = (0, 0, 0, 0);
            for (generation, lanes) in [(Generation::LLVM_20, 32), (Generation::LLVM_23, 64)] {
                let (device, memory) = server.add(generation, PORTS, lanes)?;
                let calm = AtomicBool::new(false);
                thread::scope(|scope| -> Result {
                    let _end = End(&calm);
                    let (memory, calm) = (&memory, &calm);
                    for thread in 1..3 {
                        let seed = u64::from(lanes) << 8 | thread;
                        scope.spawn(move || {
                            storm(memory, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), calm)
                        });
                    }
                    let (from, first) = (Instant::now(), calls.load(Ordering::Acquire));
                    let mut answered = 0;
                    while from.elapsed() < STORM || answered < CALLS {
                        if from.elapsed() > STORM + PATIENCE {
                            return Err(format!("{answered} honest calls beside a storm").into());
                        }
                        for _ in 0..5 {
                            // Between two samples.
                            thread::sleep(Duration::from_millis(2));
                            most = most.max(resident()?);
                        }
                        let now = calls.load(Ordering::Acquire) - first;
                        // Otherwise all ports would be out of service soon. A reset abandons calls whose jobs are queued:
                        // they do not pile up where the threads of the server make progress.
                        if now > answered {
                            let mut ports = 0;
                            // SAFETY: the server is valid.
                            check(unsafe {
                                gpurpc_device_reset_ports(server.0, device, &mut ports)
                            })?;
                            reset += ports;
                            answered = now;
                        }
                    }
                    beside += answered;
                    // SAFETY: the server is valid.
                    check(unsafe { gpurpc_device_remove(server.0, device) })
                })?;
                // Jobs of the removed device have ended with their threads, and take no memory later.
                wait_until("threads of the removed device", || {
                    Ok(threads()? <= threads_before)
                })?;
                after = after.max(resident()?);
            }
            ended.store(true, Ordering::Release);
            calling.join().map_err(|_| "a wrong answer")?;
            Ok((before, most, after, reset, beside))
        })
    })?;
    let mb = |bytes: u64| bytes / 1_000_000;
    println!(
        "resident: {} MB before, at most {} MB during, {} MB after; {} ports dropped, {reset} reset, {} calls refused, \
         {beside} honest calls answered",
        mb(before),
        mb(most),
        mb(after),
        counts.dropped.load(Ordering::Relaxed),
        counts.refused.load(Ordering::Relaxed)
    );
    // SAFETY: no thread uses the server any more.
    check(unsafe { gpurpc_server_destroy(server.0) })?;
    assert!(reset > PORTS, "{reset} ports");
    assert!(most <= MOST_DURING, "{most} bytes during the storms");
    assert!(
        after <= before + MOST_AFTER,
        "{after} bytes remain, {before} before"
    );
    Ok(())
}

/// Stops the serving threads, also in a panic.
struct Stop(Server);

impl Drop for Stop {
    fn drop(&mut self) {
        // SAFETY: the server is valid.
        assert_eq!(unsafe { gpurpc_stop(self.0.0) }, 0);
    }
}
