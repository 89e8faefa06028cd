//! A device, the server's thread, and a record of served calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use gpurpc::client::{Call, Client, HostDoorbell, HostLocks};
use gpurpc::memory::Region;
use gpurpc::server::{Device, Handlers, Limits};
use gpurpc::{Error, Layout};

use crate::warp::{Warp, Wrote};

/// Adds one to a number.
pub const INCREMENT: u32 = 0x6700_0001;
/// Sends a message back, with each bit changed.
pub const INVERT: u32 = 0x6700_0002;
/// Receives a number, and answers without a value.
pub const NOTE: u32 = 0x6700_0003;
/// Receives three numbers in sequence, and returns their sum after each.
pub const SUMS: u32 = 0x6700_0004;

pub type Calls<'c> = Call<'c, Region, HostLocks>;

/// Number of calls served for each number.
pub type Served = Arc<Mutex<BTreeMap<u64, u32>>>;

pub struct Bench {
    device: Device,
    pub client: Client<Region, HostLocks>,
    /// Doorbell of a client of LLVM 23.
    doorbell: Option<HostDoorbell>,
    served: Served,
}

impl Bench {
    pub fn new(layout: Layout) -> Result<Self, Error> {
        let served = Served::default();
        let mut handlers = Handlers::new();
        for (opcode, more) in [(INCREMENT, 1), (NOTE, 0)] {
            let seen = Arc::clone(&served);
            handlers.on_warp(opcode, 1, move |warp| {
                for lane in warp.lanes() {
                    let number = warp.input().get(lane)[0];
                    count(&seen, number);
                    warp.set_word(lane, 0, number + more);
                }
            })?;
        }
        handlers.on_session(INVERT, |mut port| async move {
            let mut messages = port.recv_n().await?;
            for lane in port.lanes() {
                let message = messages.get_mut(lane).unwrap_or_default();
                message.iter_mut().for_each(|byte| *byte = !*byte);
            }
            port.send_n(|lane| messages.get(lane).unwrap_or_default())
                .await;
            Ok(port)
        })?;
        let seen = Arc::clone(&served);
        handlers.on_session(SUMS, move |mut port| {
            let seen = Arc::clone(&seen);
            async move {
                let mut sums = [0_u64; 64];
                for _ in 0..3 {
                    port.recv_and_send(|packets| {
                        for lane in packets.lanes() {
                            let number = packets.word(lane, 0);
                            count(&seen, number);
                            sums[lane as usize] = sums[lane as usize].wrapping_add(number);
                            packets.set_word(lane, 0, sums[lane as usize]);
                        }
                    })
                    .await;
                }
                Ok(port)
            }
        })?;
        handlers.on_fault(|dropped| panic!("{dropped:?}"));
        let region = Region::zeroed(layout)?;
        let mut client = Client::new(region.clone(), HostLocks::yielding());
        let mut device = Device::new(region, Arc::new(handlers), Limits::default());
        let has_doorbell = layout.generation().has_doorbell();
        let doorbell = has_doorbell.then(|| HostDoorbell::new(1));
        if let Some(doorbell) = &doorbell {
            client = client.with_doorbell(doorbell.clone())?;
            device = device.with_doorbell(doorbell.clone().into())?;
        }
        Ok(Self {
            device,
            client,
            doorbell,
            served,
        })
    }

    /// Runs warps, and compares the sent numbers with the served ones.
    pub fn run(mut self, warps: u64, seed: u64, calls: u32, mortal: bool) {
        let ended = AtomicBool::new(false);
        let wrote = thread::scope(|scope| {
            let device = &mut self.device;
            let ended = &ended;
            let server = scope.spawn(move || {
                while !ended.load(Ordering::Acquire) {
                    if !device.poll() {
                        thread::yield_now();
                    }
                }
                // Calls without a waiting client.
                while device.poll() {}
            });
            let client = &self.client;
            let warps: Vec<_> = (0..warps)
                .map(|id| {
                    let warp = Warp::new(client, id, seed, mortal);
                    scope.spawn(move || warp.play(calls))
                })
                .collect();
            let ends: Vec<_> = warps
                .into_iter()
                .map(thread::ScopedJoinHandle::join)
                .collect();
            // Even after a panic, so that the server ends.
            ended.store(true, Ordering::Release);
            server.join().expect("the server ends");
            let ends = ends
                .into_iter()
                .map(|end| end.expect("all answers are right"));
            ends.fold(Wrote::default(), Wrote::and)
        });
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        let right = wrote.numbers.iter().map(|number| (*number, 1)).collect();
        assert_eq!(*served, right, "lost, or served twice");
        assert_eq!(
            self.device.open_calls(),
            wrote.left_open,
            "calls of warps that stopped"
        );
        assert_eq!(self.device.dropped_calls(), 0);
        if let Some(doorbell) = &self.doorbell {
            let counted = wrote.left_open + wrote.left_unsent;
            assert_eq!(doorbell.open_calls(), counted as u64);
        }
    }
}

fn count(served: &Served, number: u64) {
    let mut served = served.lock().unwrap_or_else(PoisonError::into_inner);
    *served.entry(number).or_default() += 1;
}
