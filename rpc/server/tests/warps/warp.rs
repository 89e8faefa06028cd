//! Actions of a warp.

use gpurpc::Lanes;
use gpurpc::client::{Client, HostLocks};
use gpurpc::memory::{Memory, Region};

use crate::rig::{Calls, INCREMENT, INVERT, NOTE, SUMS};

/// Numbers that warps sent.
#[derive(Default)]
pub struct Wrote {
    /// Distinct numbers.
    pub numbers: Vec<u64>,
    /// Number of calls of stopped warps, which the server keeps open.
    pub left_open: usize,
    /// Number of calls of stopped warps that the server has not seen.
    pub left_unsent: usize,
}

impl Wrote {
    pub fn and(mut self, other: Self) -> Self {
        self.numbers.extend(other.numbers);
        self.left_open += other.left_open;
        self.left_unsent += other.left_unsent;
        self
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn next_below(&mut self, count: u64) -> u64 {
        self.next() % count
    }
}

/// A warp: all its lanes are one thread of the host.
pub struct Warp<'c> {
    client: &'c Client<Region, HostLocks>,
    all: u64,
    id: u64,
    random: Random,
    mortal: bool,
    sent: u64,
    wrote: Wrote,
}

impl<'c> Warp<'c> {
    pub fn new(client: &'c Client<Region, HostLocks>, id: u64, seed: u64, mortal: bool) -> Self {
        Self {
            client,
            all: client.memory().layout().lane_mask(),
            id,
            random: Random(seed << 32 | id),
            mortal,
            sent: 0,
            wrote: Wrote::default(),
        }
    }

    /// Makes so many calls, or fewer if the warp stops.
    pub fn play(mut self, calls: u32) -> Wrote {
        // A third of the warps stop after their last call.
        let stops = self.mortal && self.id % 3 == 0;
        for _ in 0..calls {
            let mask = self.mask();
            match self.random.next_below(6) {
                0 => self.increment(mask),
                1 => self.invert(mask),
                2 => self.sums(mask),
                3 => self.not_awaited(mask),
                4 => self.diverge(mask),
                _ => self.increment(mask),
            }
        }
        if stops {
            self.stop();
        }
        self.wrote
    }

    /// Mask of participating lanes: all, one, or some.
    fn mask(&mut self) -> u64 {
        let mask = match self.random.next_below(4) {
            0 => self.all,
            1 => 1 << (self.random.next() % u64::from(self.all.count_ones())),
            _ => self.random.next() & self.all,
        };
        if mask == 0 { 1 } else { mask }
    }

    /// Unique numbers for 64 lanes.
    fn numbers(&mut self, mask: u64) -> [u64; 64] {
        self.sent += 1;
        let (id, sent) = (self.id, self.sent);
        let number = |lane: usize| id << 48 | sent << 8 | lane as u64;
        let numbers = std::array::from_fn(number);
        let taking_part = Lanes::from_mask(mask).map(|lane| numbers[lane as usize]);
        self.wrote.numbers.extend(taking_part);
        numbers
    }

    fn increment(&mut self, mask: u64) {
        let numbers = self.numbers(mask);
        let mut call = self.client.open(INCREMENT, mask);
        send(&mut call, &numbers);
        check(&mut call, &numbers.map(|number| number + 1));
    }

    /// Makes calls without waiting, followed by others on the same ports.
    fn not_awaited(&mut self, mask: u64) {
        for _ in 0..=self.random.next_below(3) {
            let opcode = [NOTE, INCREMENT][self.random.next_below(2) as usize];
            let numbers = self.numbers(mask);
            send(&mut self.client.open(opcode, mask), &numbers);
        }
    }

    /// Sends a message of a different size for each lane.
    fn invert(&mut self, mask: u64) {
        let texts: Vec<Vec<u8>> = (0..64)
            .map(|_| {
                let size = [0, 1, 55, 56, 57, 120, 121, 300][self.random.next_below(8) as usize];
                let byte = self.random.next() as u8;
                (0..size).map(|at: u16| at as u8 ^ byte).collect()
            })
            .collect();
        let mut call = self.client.open(INVERT, mask);
        call.send_n(|lane| &texts[lane as usize]);
        let mut got = vec![Vec::new(); 64];
        call.recv_n(|lane, _, bytes| got[lane as usize].extend_from_slice(bytes));
        for lane in Lanes::from_mask(mask) {
            let right: Vec<u8> = texts[lane as usize].iter().map(|byte| !byte).collect();
            assert_eq!(got[lane as usize], right, "lane {lane} of {mask:#x}");
        }
    }

    fn sums(&mut self, mask: u64) {
        let mut call = self.client.open(SUMS, mask);
        let mut sums = [0_u64; 64];
        for _ in 0..3 {
            let numbers = self.numbers(mask);
            for (sum, number) in sums.iter_mut().zip(numbers) {
                *sum = sum.wrapping_add(number);
            }
            send(&mut call, &numbers);
            check(&mut call, &sums);
        }
    }

    /// Two branches of one warp, whose calls are open at the same time: each has a port of its own. The
    /// second one ends first, or has none if there is no other port.
    fn diverge(&mut self, mask: u64) {
        let one = self.random.next() & mask;
        let other = mask & !one;
        if one == 0 || other == 0 {
            return self.increment(mask);
        }
        let mut first = self.client.open(INCREMENT, one);
        let numbers = self.numbers(one);
        send(&mut first, &numbers);
        if let Some(mut second) = self.client.try_open(SUMS, other) {
            let mut sums = [0_u64; 64];
            for _ in 0..3 {
                let numbers = self.numbers(other);
                for (sum, number) in sums.iter_mut().zip(numbers) {
                    *sum = sum.wrapping_add(number);
                }
                send(&mut second, &numbers);
                check(&mut second, &sums);
            }
        }
        check(&mut first, &numbers.map(|number| number + 1));
    }

    /// Stops in the middle of a call: its port stays taken.
    fn stop(&mut self) {
        let mask = self.mask();
        let when = self.random.next_below(4);
        let mut call = match when {
            0..=1 => self.client.open(INVERT, mask),
            _ => self.client.open(SUMS, mask),
        };
        match when {
            // Before anything was sent.
            0 => self.wrote.left_unsent += 1,
            // After the first packet of a message.
            1 => {
                call.send(|packets| {
                    for lane in packets.lanes() {
                        packets.set_word(lane, 0, 1000);
                    }
                });
                self.wrote.left_open += 1;
            }
            // Without waiting, and after an answer.
            _ => {
                let numbers = self.numbers(mask);
                send(&mut call, &numbers);
                if when == 3 {
                    check(&mut call, &numbers);
                }
                self.wrote.left_open += 1;
            }
        }
        std::mem::forget(call);
    }
}

fn send(call: &mut Calls<'_>, numbers: &[u64; 64]) {
    call.send(|packets| {
        for lane in packets.lanes() {
            packets.set_word(lane, 0, numbers[lane as usize]);
        }
    });
}

fn check(call: &mut Calls<'_>, right: &[u64; 64]) {
    let wrong = call.recv(|packets| {
        let mut lanes = packets.lanes();
        lanes.find(|lane| packets.word(*lane, 0) != right[*lane as usize])
    });
    assert_eq!(wrong, Some(None), "a lane with a wrong answer");
}
