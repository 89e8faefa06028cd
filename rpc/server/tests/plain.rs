//! The protocol orders accesses to other memory: after an ownership transfer, a side reads the values that
//! the other one wrote before. ThreadSanitizer (`tests/sanitizer`) reports a missing ordering as a race,
//! which it cannot detect in packets, as these are atomic.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use gpurpc::client::{Client, HostLocks};
use gpurpc::memory::Region;
use gpurpc::server::{Device, Handlers, Limits};
use gpurpc::{Error, Generation, Layout, PortIndex};

const ADD: u32 = 0x6700_0001;
const REPLY: u32 = 0x6700_0002;

/// A number for each port, which only the port's owner accesses.
struct Numbers(Vec<UnsafeCell<u64>>);

// SAFETY: only the owner of a port accesses its number.
unsafe impl Sync for Numbers {}

impl Numbers {
    fn get(&self, port: PortIndex) -> u64 {
        // SAFETY: the caller owns the port.
        unsafe { *self.0[port.get() as usize].get() }
    }

    fn set(&self, port: PortIndex, number: u64) {
        // SAFETY: the caller owns the port.
        unsafe { *self.0[port.get() as usize].get() = number }
    }
}

#[test]
fn memory_that_is_not_atomic_changes_hands() -> Result<(), Error> {
    for (generation, ports) in [
        (Generation::LLVM_20, 1),
        (Generation::LLVM_20, 2),
        (Generation::LLVM_20, 65),
        (Generation::LLVM_23, 65),
    ] {
        let numbers = Arc::new(Numbers(
            vec![0; ports].into_iter().map(UnsafeCell::new).collect(),
        ));
        let mut handlers = Handlers::new();
        let theirs = Arc::clone(&numbers);
        handlers.on_session(ADD, move |mut port| {
            let numbers = Arc::clone(&theirs);
            async move {
                let at = port.index();
                for more in 1..=2 {
                    port.recv(|_| numbers.set(at, numbers.get(at) + more)).await;
                    port.send(|_| ()).await;
                }
                Ok(port)
            }
        })?;
        let theirs = Arc::clone(&numbers);
        handlers.on_warp(REPLY, 1, move |warp| {
            let at = PortIndex::new(warp.input().get(0)[0] as u32);
            theirs.set(at, theirs.get(at) + 5);
        })?;
        let layout = Layout::with_generation(generation, ports as u32, 1)?;
        let region = Region::zeroed(layout)?;
        let client = Client::new(region.clone(), HostLocks::yielding());
        let limits = Limits::default();
        let mut device = Device::new(region, Arc::new(handlers), limits);
        let (next, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        let warp = || {
            let thread = next.fetch_add(1, Ordering::Relaxed);
            for n in 0..300 {
                let number = thread << 32 | n << 8;
                let mut call = client.open(ADD, 1);
                let at = call.port();
                call.send(|_| numbers.set(at, number));
                call.recv(|_| assert_eq!(numbers.get(at), number + 1));
                call.send(|_| numbers.set(at, number + 10));
                call.recv(|_| assert_eq!(numbers.get(at), number + 12));
                drop(call);
                let mut call = client.open(REPLY, 1);
                let at = call.port();
                call.send(|packets| {
                    numbers.set(at, number);
                    packets.set_word(0, 0, at.get().into());
                });
                call.recv(|_| assert_eq!(numbers.get(at), number + 5));
            }
        };
        thread::scope(|scope| {
            let ended = &ended;
            scope.spawn(move || {
                while !ended.load(Ordering::Acquire) {
                    if !device.poll() {
                        thread::yield_now();
                    }
                }
            });
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(warp);
                }
            });
            ended.store(true, Ordering::Release);
        });
    }
    Ok(())
}
