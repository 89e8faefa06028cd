//! Pauses of a serving thread between polls.

use std::thread;
use std::time::{Duration, Instant};

/// Policy of a serving thread while all devices are idle.
///
/// The thread spins for a while, as the next call usually follows soon; then it yields the processor between
/// polls; then it sleeps, each time for an eighth of the time since its first sleep, or waits with
/// [`WaitHooks`](super::WaitHooks). It does not poll at all while no device can call, see
/// [`Device::with_announced_kernels`](super::Device::with_announced_kernels).
///
/// ```
/// use std::time::Duration;
///
/// use gpurpc::server::IdlePolicy;
///
/// // Saves energy: a call after a pause waits for up to 5 ms.
/// let idle = IdlePolicy { spin_count: 0, max_sleep: Duration::from_millis(5), ..IdlePolicy::default() };
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdlePolicy {
    /// Number of polls while spinning.
    pub spin_count: u32,
    /// Number of polls while yielding.
    pub yield_count: u32,
    /// Longest sleep between two polls, which bounds the added latency of the first call after a pause.
    pub max_sleep: Duration,
    /// Longest wait for a doorbell, which bounds the added latency of a call whose interrupt was lost. Such losses
    /// occur on some devices (rocm-systems#8192).
    pub max_wait: Duration,
}

impl Default for IdlePolicy {
    fn default() -> Self {
        Self {
            spin_count: 2000,
            yield_count: 200,
            max_sleep: Duration::from_micros(250),
            max_wait: Duration::from_millis(10),
        }
    }
}

/// Duration of the first sleep. Hosts round up to about 50 µs.
const MIN_SLEEP: Duration = Duration::from_micros(1);

/// Increasing pauses of a thread between polls.
pub(super) struct Backoff {
    idle: IdlePolicy,
    polls: u32,
    /// Time of the first sleep.
    since: Option<Instant>,
    /// Whether a doorbell has rung, and no call was found since.
    has_rung: bool,
    /// Whether the last wait ended with a ring.
    rang_last: bool,
}

impl Backoff {
    pub fn new(idle: IdlePolicy) -> Self {
        Self {
            idle,
            polls: 0,
            since: None,
            has_rung: false,
            rang_last: false,
        }
    }

    /// Spins or yields. Returns the duration of the sleep instead, if one is due.
    pub fn pause(&mut self) -> Option<Duration> {
        let IdlePolicy {
            spin_count,
            yield_count,
            max_sleep,
            ..
        } = self.idle;
        self.polls = self.polls.saturating_add(1);
        if self.polls <= spin_count {
            core::hint::spin_loop();
            return None;
        }
        if self.polls <= spin_count.saturating_add(yield_count) {
            thread::yield_now();
            return None;
        }
        // LLVM's offload runtime also sleeps here, for 250 µs at a time (`RPC.cpp`).
        // The sleep is a fraction of the pause: after a short pause the first call is served soon, and a
        // long pause costs as little as `max_sleep` allows.
        let since = *self.since.get_or_insert_with(Instant::now);
        Some((since.elapsed() / 8).clamp(MIN_SLEEP.min(max_sleep), max_sleep))
    }

    /// Whether to wait for a doorbell. Not twice in succession if it rings without a call: its counter may be
    /// stuck, because a kernel has died, and the thread would spin.
    pub fn waits_for_doorbell(&mut self) -> bool {
        !std::mem::take(&mut self.rang_last)
    }

    /// Notes how a wait for a doorbell has ended. The packet follows the first ring soon.
    pub fn doorbell_rang(&mut self, rang: bool) {
        self.rang_last = rang;
        if rang && !self.has_rung {
            self.polls = 0;
        }
        self.has_rung = rang;
    }
}
