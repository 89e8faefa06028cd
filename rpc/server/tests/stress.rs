//! Many threads of the host act as warps: no call is lost, none is answered twice.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::thread;

use gpurpc::client::{Client, HostLocks};
use gpurpc::memory::Region;
use gpurpc::server::{Device, Handlers, Limits};
use gpurpc::{Error, Generation, Layout};

const INCREMENT: u32 = 0x6700_0001;
const ECHO: u32 = 0x6700_0002;
/// The same service with a number of words for each lane that is copied, and as a session (the last).
const INCREMENTS: [u32; 4] = [INCREMENT, 0x6700_0003, 0x6700_0004, 0x6700_0005];

fn device(
    layout: Layout,
    handlers: Handlers,
) -> Result<(Device, Client<Region, HostLocks>), Error> {
    let region = Region::zeroed(layout)?;
    let client = Client::new(region.clone(), HostLocks::yielding());
    let device = Device::new(region, Arc::new(handlers), Limits::default());
    Ok((device, client))
}

/// Serves until all clients have ended.
fn serve(mut device: Device, clients: impl Fn() + Sync, count: usize) {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                if !device.poll() {
                    thread::yield_now();
                }
            }
        });
        thread::scope(|scope| {
            for _ in 0..count {
                scope.spawn(&clients);
            }
        });
        ended.store(true, Ordering::Release);
        server.join().expect("the server ends");
    });
}

#[test]
fn calls_are_answered_once() -> Result<(), Error> {
    for (generation, ports, lanes) in [
        (Generation::LLVM_20, 1, 1),
        (Generation::LLVM_20, 64, 1),
        (Generation::LLVM_20, 64, 32),
        (Generation::LLVM_20, 100, 64),
        (Generation::LLVM_23, 1, 1),
        (Generation::LLVM_23, 64, 32),
        (Generation::LLVM_23, 100, 64),
    ] {
        let layout = Layout::with_generation(generation, ports, lanes)?;
        let served = Arc::new(AtomicU64::new(0));
        let mut handlers = Handlers::new();
        let [.., session] = INCREMENTS;
        for (opcode, words) in INCREMENTS.into_iter().zip([1, 8, 0]) {
            let count = Arc::clone(&served);
            handlers.on_warp(opcode, words, move |warp| {
                for lane in warp.lanes() {
                    let number = match words {
                        0 => warp.output().word(lane, 0),
                        _ => warp.input().get(lane)[0],
                    };
                    warp.set_word(lane, 0, number + 1);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })?;
        }
        let count = Arc::clone(&served);
        handlers.on_session(session, move |mut port| {
            let count = Arc::clone(&count);
            async move {
                port.recv(|packets| {
                    for lane in packets.lanes() {
                        packets.set_word(lane, 0, packets.word(lane, 0) + 1);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                })
                .await;
                // Continues in the next poll.
                let mut is_first = true;
                poll_fn(|context| {
                    context.waker().wake_by_ref();
                    if std::mem::take(&mut is_first) {
                        Poll::Pending
                    } else {
                        Poll::Ready(())
                    }
                })
                .await;
                port.send(|_| ()).await;
                Ok(port)
            }
        })?;
        handlers.on_session(ECHO, |mut port| async move {
            let messages = port.recv_n().await?;
            port.send_n(|lane| messages.get(lane).unwrap_or_default())
                .await;
            Ok(port)
        })?;
        let (device, client) = device(layout, handlers)?;
        let mask = layout.lane_mask();
        let seed = AtomicU64::new(0);
        let calls = AtomicU64::new(0);
        serve(
            device,
            || {
                let thread = seed.fetch_add(1, Ordering::Relaxed);
                for n in 0..200_u64 {
                    let value = thread << 32 | n;
                    let some = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1) & mask;
                    let mut call = client.open(INCREMENTS[n as usize % 4], some);
                    calls.fetch_add(call.lanes().count() as u64, Ordering::Relaxed);
                    call.send(|packets| {
                        for lane in packets.lanes() {
                            packets.set_word(lane, 0, value ^ u64::from(lane) << 48);
                        }
                    });
                    call.recv(|packets| {
                        for lane in packets.lanes() {
                            assert_eq!(packets.word(lane, 0), (value ^ u64::from(lane) << 48) + 1);
                        }
                    });
                    drop(call);
                    if n % 20 == 0 {
                        let text = vec![n as u8; (n as usize * 7) % 500 + 1];
                        let mut call = client.open(ECHO, some);
                        call.send_n(|lane| &text[..text.len().min(1 + lane as usize * 13)]);
                        let mut got = vec![Vec::<u8>::new(); 64];
                        call.recv_n(|lane, _, bytes| got[lane as usize].extend(bytes));
                        for lane in call.lanes() {
                            let sent = &text[..text.len().min(1 + lane as usize * 13)];
                            assert_eq!(got[lane as usize], sent);
                        }
                    }
                }
            },
            16,
        );
        assert_eq!(
            served.load(Ordering::Relaxed),
            calls.load(Ordering::Relaxed)
        );
    }
    Ok(())
}

/// Runs 64 warps, each with calls whose answers no other warp can receive.
fn many_calls(of_each: u64) -> Result<(), Error> {
    let served = Arc::new(AtomicU64::new(0));
    let mut handlers = Handlers::new();
    let count = Arc::clone(&served);
    handlers.on_warp(INCREMENT, 1, move |warp| {
        warp.set_word(0, 0, warp.input().get(0)[0] + 1);
        count.fetch_add(1, Ordering::Relaxed);
    })?;
    let (device, client) = device(Layout::new(64, 1)?, handlers)?;
    let next = AtomicU64::new(0);
    let warp = || {
        let thread = next.fetch_add(1, Ordering::Relaxed);
        for n in 0..of_each {
            let value = thread << 40 | n;
            let mut call = client.open(INCREMENT, 1);
            call.send(|packets| packets.set_word(0, 0, value));
            let answer = call.recv(|packets| packets.word(0, 0));
            assert_eq!(answer, Some(value + 1));
        }
    };
    serve(device, warp, 64);
    assert_eq!(served.load(Ordering::Relaxed), 64 * of_each);
    Ok(())
}

#[test]
fn a_million_calls_of_64_warps_are_answered_once() -> Result<(), Error> {
    many_calls(15_625)
}

#[test]
#[ignore = "takes minutes: ./tests/run --all"]
fn heavy_64_million_calls_of_64_warps_are_answered_once() -> Result<(), Error> {
    many_calls(1_000_000)
}
