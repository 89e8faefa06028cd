//! Warps whose lanes are threads of the host.
//!
//! A thread that is no lane is a warp of one lane.

use std::any::Any;
use std::boxed::Box;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

std::thread_local! {
    /// The lane that this thread is.
    static LANE: RefCell<Option<Lane>> = const { RefCell::new(None) };
}

#[derive(Clone)]
struct Lane {
    warp: Arc<Warp>,
    id: u32,
    thread: u32,
    block: u32,
}

/// A warp. Its lanes run until all of them wait: for their convergence, or for other lanes.
struct Warp {
    lanes: u32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Lanes that have not ended.
    live: u64,
    /// Waiting lanes, by operation.
    waiting: BTreeMap<Operation, Votes>,
    /// Result of an operation, for each lane that has not read it.
    results: BTreeMap<u32, u64>,
    /// Reason why the warp cannot continue.
    error: Option<&'static str>,
}

/// Event that lanes wait for together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    /// The other lanes that converge at this place, with this opcode.
    Converge(&'static Location<'static>, u32),
    /// All lanes of a mask.
    Vote(u64),
}

/// Lanes that have arrived, and those of them with a true predicate.
#[derive(Clone, Copy, Default)]
struct Votes {
    arrived: u64,
    set: u64,
}

/// Payload of a lane that has ended itself.
struct Ended;

const DIVERGED: &str =
    "lanes of one call diverged: each of them waits for others that execute something else";

impl Warp {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes an operation together with other lanes. Convergence results in their mask, a vote in the mask of
    /// those that have voted true.
    fn execute(&self, lane: u32, operation: Operation, predicate: bool) -> u64 {
        let bit = 1 << lane;
        let mut state = self.lock();
        let votes = state.waiting.entry(operation).or_default();
        votes.arrived |= bit;
        votes.set |= if predicate { bit } else { 0 };
        let votes = *votes;
        if matches!(operation, Operation::Vote(mask) if mask == votes.arrived) {
            state.finish(operation, votes.set);
            self.changed.notify_all();
        } else if state.converge() {
            self.changed.notify_all();
        }
        loop {
            if let Some(result) = state.results.remove(&lane) {
                return result;
            }
            if let Some(error) = state.error {
                drop(state);
                panic!("{error}");
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Removes a lane.
    fn leave(&self, lane: u32) {
        let mut state = self.lock();
        state.live &= !(1 << lane);
        if state.converge() {
            self.changed.notify_all();
        }
    }
}

impl State {
    /// Ends an operation: its lanes continue.
    fn finish(&mut self, operation: Operation, result: u64) {
        let votes = self.waiting.remove(&operation).unwrap_or_default();
        let lanes = (0..64).filter(|lane| votes.arrived >> lane & 1 != 0);
        self.results.extend(lanes.map(|lane| (lane, result)));
    }

    /// Lets lanes converge once no lane of the warp can arrive any more, because all of them wait.
    /// Returns whether a lane can continue.
    fn converge(&mut self) -> bool {
        let waiting = self
            .waiting
            .values()
            .fold(0, |lanes, votes| lanes | votes.arrived);
        if waiting != self.live || waiting == 0 {
            return false;
        }
        // In the order of the source, so that lanes which skip a branch wait for those that execute it.
        let mut waiting = self.waiting.iter();
        match waiting.find(|(operation, _)| matches!(operation, Operation::Converge(..))) {
            Some((operation, votes)) => self.finish(*operation, votes.arrived),
            None => self.error = Some(DIVERGED),
        }
        true
    }
}

/// The lane that this thread is, if any.
fn lane() -> Option<Lane> {
    LANE.with_borrow(Clone::clone)
}

/// Runs a kernel: `blocks` blocks of `threads` threads, in warps of `lanes` lanes, each a thread of the host. The host
/// memory of the client has as many lanes.
///
/// The lanes of a warp run until each of them opens a call or has ended. Then those begin their call that open one at the
/// first of these lines of the source, together. So lanes that skip a branch wait for those that execute it, as they
/// usually do on devices. A warp whose lanes diverge within a call panics.
///
/// # Panics
///
/// If a thread panics, with its payload, after all threads have ended; and if `lanes` is not 1 to 64.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::{host, println, thread};
///
/// # let printed = example::stdout_of_warps(32, || {
/// // Two lanes of one warp.
/// host::launch(1, 2, 32, || println!("lane {}", thread::lane()));
/// # });
/// # assert_eq!(printed, "lane 0\nlane 1\n");
/// ```
pub fn launch(blocks: u32, threads: u32, lanes: u32, kernel: impl Fn() + Sync) {
    assert!((1..=64).contains(&lanes), "a warp has 1 to 64 lanes");
    let panicked = Mutex::new(None);
    thread::scope(|scope| {
        for block in 0..blocks {
            for first in (0..threads).step_by(lanes as usize) {
                let count = lanes.min(threads - first);
                let warp = Arc::new(Warp {
                    lanes,
                    state: Mutex::new(State {
                        live: u64::MAX >> (64 - count),
                        ..State::default()
                    }),
                    changed: Condvar::new(),
                });
                for id in 0..count {
                    let lane = Lane {
                        warp: Arc::clone(&warp),
                        id,
                        thread: first + id,
                        block,
                    };
                    let (kernel, panicked) = (&kernel, &panicked);
                    scope.spawn(move || lane.run(kernel, panicked));
                }
            }
        }
    });
    if let Some(payload) = panicked
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        resume_unwind(payload);
    }
}

type Payload = Box<dyn Any + Send>;

impl Lane {
    fn run(self, kernel: &(impl Fn() + Sync), panicked: &Mutex<Option<Payload>>) {
        LANE.set(Some(self.clone()));
        let ran = catch_unwind(AssertUnwindSafe(kernel));
        if let Some(payload) = ran.err().filter(|payload| !payload.is::<Ended>()) {
            let mut panicked = panicked.lock().unwrap_or_else(PoisonError::into_inner);
            panicked.get_or_insert(payload);
        }
        // Later: lanes that wait for this one panic.
        self.warp.leave(self.id);
    }
}

pub(crate) fn lane_id() -> u32 {
    lane().map_or(0, |lane| lane.id)
}

pub(crate) fn warp_size() -> u32 {
    lane().map_or(1, |lane| lane.warp.lanes)
}

#[track_caller]
pub(crate) fn active_mask(opcode: u32) -> u64 {
    let operation = Operation::Converge(Location::caller(), opcode);
    lane().map_or(1, |lane| lane.warp.execute(lane.id, operation, true))
}

pub(crate) fn ballot(mask: u64, predicate: bool) -> u64 {
    match lane() {
        Some(lane) => lane.warp.execute(lane.id, Operation::Vote(mask), predicate),
        None if predicate => mask,
        None => 0,
    }
}

pub(crate) fn sync(mask: u64) {
    ballot(mask, true);
}

/// Orders accesses of this lane for all lanes of the device.
pub(crate) fn fence_device() {
    core::sync::atomic::fence(core::sync::atomic::Ordering::AcqRel);
}

/// Whether this lane leaves a call by a panic, so that the other lanes cannot be waited for.
pub(crate) fn is_lost(mask: u64) -> bool {
    thread::panicking() && mask != 1 << lane_id()
}

pub(crate) fn pause() {
    thread::yield_now();
}

pub(crate) fn end() -> ! {
    resume_unwind(Box::new(Ended))
}

pub(crate) fn trap() -> ! {
    panic!("the client is not initialized: gpurpc_device::host::connect")
}

#[cfg(feature = "llvm-23")]
pub(crate) fn interrupt(_event: u32) {}

pub(crate) fn thread_index() -> [u32; 3] {
    [lane().map_or(0, |lane| lane.thread), 0, 0]
}

pub(crate) fn block_index() -> [u32; 3] {
    [lane().map_or(0, |lane| lane.block), 0, 0]
}
