//! Test client that overwrites shared memory right after the server has read it (TOCTOU).

use core::sync::atomic::{AtomicU64, Ordering};
use std::cell::Cell;

use crate::layout::PortIndex;

/// The ports of the racing client, and the state of its random numbers.
type Race = Option<(&'static [PortIndex], u64)>;

std::thread_local! {
    static RACE: Cell<Race> = const { Cell::new(None) };
}

/// Runs `work`. Meanwhile about half of the words that this thread reads from one of these ports are
/// overwritten right after the read.
pub fn race<T>(ports: &'static [PortIndex], seed: u64, work: impl FnOnce() -> T) -> T {
    RACE.set(Some((ports, seed | 1)));
    let value = work();
    RACE.set(None);
    value
}

/// Called after each read of a word of a port.
pub fn was_read(port: PortIndex, word: &AtomicU64) {
    let Some((ports, mut state)) = RACE.get() else {
        return;
    };
    if ports.contains(&port) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        RACE.set(Some((ports, state)));
        if state & 1 == 0 {
            word.store(state >> (state % 64), Ordering::Relaxed);
        }
    }
}

#[path = "../../tests/hostile/play/mod.rs"]
mod play;

/// A second read of any word returns another value, because the client writes it in between.
#[test]
fn each_shared_word_is_read_once() {
    for seed in 0..60 {
        // Shown if the test fails.
        println!("seed {seed}");
        let data = play::script_of(seed);
        race(&play::script::HOSTILE, seed, || {
            play::hostile(&data, None, false)
        });
    }
}
