//! Explores all interleavings of the accesses of two sides, up to a bound: the protocol with its memory
//! orderings loses nothing, and each of these orderings is required.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gpurpc::client::{Client, Locks};
use gpurpc::handshake::Handshake;
use gpurpc::memory::{Memory, PortMemory, Side};
use gpurpc::{Layout, PortIndex};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use loom::thread;

/// Memory orderings of the accesses that synchronize.
#[derive(Clone, Copy)]
struct Orders {
    inbox: Ordering,
    outbox: Ordering,
    lock: Ordering,
    unlock: Ordering,
}

const RIGHT: Orders = Orders {
    inbox: Ordering::Acquire,
    outbox: Ordering::Release,
    lock: Ordering::Acquire,
    unlock: Ordering::Release,
};

const PORT: PortIndex = PortIndex::new(0);

/// One port of one lane.
struct Modelled {
    orders: Orders,
    primary: AtomicU32,
    secondary: AtomicU32,
    mask: AtomicU64,
    opcode: AtomicU32,
    word: AtomicU64,
    lock: AtomicU32,
}

#[derive(Clone)]
struct Handle(Arc<Modelled>);

impl Handle {
    fn new(orders: Orders) -> Self {
        Self(Arc::new(Modelled {
            orders,
            primary: AtomicU32::new(0),
            secondary: AtomicU32::new(0),
            mask: AtomicU64::new(0),
            opcode: AtomicU32::new(0),
            word: AtomicU64::new(0),
            lock: AtomicU32::new(0),
        }))
    }

    fn mailbox(&self, read_by: Side) -> &AtomicU32 {
        match read_by {
            Side::Client => &self.0.primary,
            Side::Server => &self.0.secondary,
        }
    }
}

impl PortMemory for &Handle {
    fn word(&self, _: u32, _: usize) -> u64 {
        self.0.word.load(Ordering::Relaxed)
    }

    fn set_word(&self, _: u32, _: usize, value: u64) {
        self.0.word.store(value, Ordering::Relaxed);
    }
}

impl Memory for Handle {
    type Port<'m> = &'m Self;

    fn port(&self, _: PortIndex) -> &Self {
        self
    }

    fn layout(&self) -> Layout {
        Layout::new(1, 1).expect("the sizes are valid")
    }

    fn inbox(&self, side: Side, _: PortIndex) -> u32 {
        self.mailbox(side).load(self.0.orders.inbox)
    }

    fn outbox(&self, side: Side, _: PortIndex) -> u32 {
        self.mailbox(side.other()).load(Ordering::Relaxed)
    }

    fn set_outbox(&self, side: Side, _: PortIndex, value: u32) {
        self.mailbox(side.other())
            .store(value, self.0.orders.outbox);
    }

    fn mask(&self, _: PortIndex) -> u64 {
        self.0.mask.load(Ordering::Relaxed)
    }

    fn opcode(&self, _: PortIndex) -> u32 {
        self.0.opcode.load(Ordering::Relaxed)
    }

    fn set_header(&self, _: PortIndex, mask: u64, opcode: u32) {
        self.0.mask.store(mask, Ordering::Relaxed);
        self.0.opcode.store(opcode, Ordering::Relaxed);
    }
}

impl Locks for Handle {
    fn try_lock(&self, _: PortIndex) -> bool {
        self.0.lock.fetch_or(1, self.0.orders.lock) == 0
    }

    fn unlock(&self, _: PortIndex) {
        self.0.lock.fetch_and(0, self.0.orders.unlock);
    }

    fn relax(&self) {
        thread::yield_now();
    }
}

/// Answers so many calls with the sum of number and opcode.
fn serve(memory: &Handle, calls: u32) {
    serve_from(memory, calls, 0);
}

fn serve_from(memory: &Handle, calls: u32, mut outbox: u32) {
    for _ in 0..calls {
        while !Side::Server.owns(memory.inbox(Side::Server, PORT), outbox) {
            thread::yield_now();
        }
        let (mask, opcode) = (memory.mask(PORT), memory.opcode(PORT));
        assert_eq!(mask, 1);
        let mut handshake = Handshake::new(Side::Server, PORT, outbox, mask);
        let mut packets = handshake.poll_recv(memory).expect("it is the server's");
        let value = packets.word(0, 0);
        packets.set_word(0, 0, value + u64::from(opcode));
        handshake.finish_send(memory);
        handshake.close(memory);
        outbox = handshake.outbox();
    }
}

fn call(memory: &Handle, opcode: u32, value: u64, answered: bool) {
    let client = Client::new(memory.clone(), memory.clone());
    let mut call = client.open(opcode, 1);
    call.send(|packets| packets.set_word(0, 0, value));
    if answered {
        let answer = call.recv(|packets| packets.word(0, 0));
        assert_eq!(answer, Some(value + u64::from(opcode)));
    }
}

/// One warp makes two calls.
fn one_warp(orders: Orders) {
    let memory = Handle::new(orders);
    let server = memory.clone();
    let server = thread::spawn(move || serve(&server, 2));
    call(&memory, 10, 100, true);
    call(&memory, 20, 200, true);
    server.join().expect("the server ends");
}

/// One warp makes a call without waiting, and one with waiting.
fn one_warp_that_leaves(orders: Orders) {
    let memory = Handle::new(orders);
    let server = memory.clone();
    let server = thread::spawn(move || serve(&server, 2));
    call(&memory, 10, 100, false);
    call(&memory, 20, 200, true);
    server.join().expect("the server ends");
}

/// Two warps each try the same port once: none overwrites packets of the other.
fn two_warps(orders: Orders) {
    let memory = Handle::new(orders);
    let other = memory.clone();
    let other = thread::spawn(move || try_to_send(&other));
    let sent = try_to_send(&memory) + other.join().expect("the other warp ends");
    assert_eq!(sent, 1);
    serve(&memory, 1);
    // The port is free again, with its last state.
    assert_eq!(try_to_send(&memory), 1);
    serve_from(&memory, 1, 1);
}

/// Number of calls that were begun.
fn try_to_send(memory: &Handle) -> u32 {
    let client = Client::new(memory.clone(), memory.clone());
    let Some(mut call) = client.try_open(10, 1) else {
        return 0;
    };
    call.send(|packets| packets.set_word(0, 0, 100));
    1
}

fn explore(model: fn(Orders), orders: Orders, bound: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    // Threads that wait take many steps.
    builder.max_branches = 100_000;
    builder.check(move || model(orders));
}

/// Whether some interleaving results in a wrong answer.
fn breaks(model: fn(Orders), orders: Orders) -> bool {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| explore(model, orders, 2))) else {
        return false;
    };
    let message = panic.downcast_ref::<String>().map_or("", String::as_str);
    assert!(
        message.contains("assertion `left == right` failed"),
        "{message}"
    );
    true
}

#[test]
fn calls_of_one_warp_are_answered() {
    explore(one_warp, RIGHT, 3);
}

#[test]
fn calls_without_waiting_clients_are_served() {
    explore(one_warp_that_leaves, RIGHT, 3);
}

#[test]
fn warps_do_not_share_a_port() {
    explore(two_warps, RIGHT, 3);
}

#[test]
fn each_order_is_needed() {
    let relaxed = Ordering::Relaxed;
    let without = |change: fn(&mut Orders, Ordering)| {
        let mut orders = RIGHT;
        change(&mut orders, relaxed);
        orders
    };
    assert!(breaks(one_warp, without(|all, to| all.inbox = to)));
    assert!(breaks(one_warp, without(|all, to| all.outbox = to)));
    assert!(breaks(two_warps, without(|all, to| all.lock = to)));
    assert!(breaks(two_warps, without(|all, to| all.unlock = to)));
}
