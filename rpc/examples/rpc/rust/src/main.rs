//! As host.c, with the crate: the device's program is the same, in C.

use std::error::Error;
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use gpurpc::libc::Services;
use gpurpc::memory::Region;
use gpurpc::server::{Device, Handlers, IdlePolicy, Limits, Server};
use gpurpc::Layout;

const TAKE: u32 = (b'e' as u32) << 24 | 1;
const HAND_IN: u32 = (b'e' as u32) << 24 | 2;
const WARPS: u32 = 8;
const LAST: u64 = 1000;

unsafe extern "C" {
    fn warp(client: *mut c_void);
    fn print_file(client: *mut c_void, name: *const c_char);
}

/// Address of the client, for the threads that are the device.
#[derive(Clone, Copy)]
struct OnDevice(*mut c_void);

// SAFETY: any number of warps may use the client concurrently.
unsafe impl Send for OnDevice {}

impl OnDevice {
    fn run_warp(self) {
        // SAFETY: the client is filled in, and exists as long as the device.
        unsafe { warp(self.0) }
    }

    fn print(self, name: &CString) {
        // SAFETY: as above; the name is NUL-terminated.
        unsafe { print_file(self.0, name.as_ptr()) }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "poem.txt".into());
    let file = CString::new(file)?;
    let (next, sum) = (AtomicU64::new(1), Arc::new(AtomicU64::new(0)));
    let mut handlers = Handlers::new();
    let services = Services::new().files("files");
    let services = services.map_err(|error| format!("the directory `files`: {error}"))?;
    services.register(&mut handlers)?;
    handlers.on_warp(TAKE, 1, move |warp| {
        for lane in warp.lanes() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            warp.set_word(lane, 0, if number <= LAST { number } else { 0 });
        }
    })?;
    let sums = Arc::clone(&sum);
    handlers.on_warp(HAND_IN, 1, move |warp| {
        for lane in warp.lanes() {
            sums.fetch_add(warp.input().get(lane)[0], Ordering::Relaxed);
        }
    })?;

    let layout = Layout::new(WARPS, 1)?;
    let memory = Region::zeroed(layout)?;
    // Aligned as `gpurpc_client_t`.
    let mut client = layout.client(memory.start().as_ptr() as u64);
    let client = OnDevice(client.as_mut_ptr().cast());
    let server = Server::new(IdlePolicy::default());
    server.add_device(Device::new(
        memory,
        Arc::new(handlers),
        Limits::default()));
    thread::scope(|scope| {
        scope.spawn(|| server.serve());
        client.print(&file);
        let warps: Vec<_> = (0..WARPS)
            .map(|_| scope.spawn(move || client.run_warp()))
            .collect();
        for warp in warps {
            warp.join().expect("the device's program does not panic");
        }
        server.drain();
    });
    println!("the sum up to {LAST} is {}", sum.load(Ordering::Relaxed));
    Ok(())
}
