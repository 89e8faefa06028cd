//! A client that writes again what the server has just read: in tests of this crate.

use core::sync::atomic::{AtomicU64, Ordering};
use std::cell::Cell;

/// The ports of the client, and what its next number comes from.
type Writing = Option<(&'static [u32], u64)>;

std::thread_local! {
    static WRITING: Cell<Writing> = const { Cell::new(None) };
}

/// While `work` runs, each second word that this thread reads from one of these ports is another one right
/// after.
pub fn changing<T>(ports: &'static [u32], seed: u64, work: impl FnOnce() -> T) -> T {
    WRITING.set(Some((ports, seed | 1)));
    let value = work();
    WRITING.set(None);
    value
}

/// A word of a port was read.
pub fn was_read(port: u32, word: &AtomicU64) {
    let Some((ports, mut state)) = WRITING.get() else {
        return;
    };
    if ports.contains(&port) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        WRITING.set(Some((ports, state)));
        if state & 1 == 0 {
            word.store(state >> (state % 64), Ordering::Relaxed);
        }
    }
}

#[path = "../../tests/hostile/play/mod.rs"]
mod play;

/// What the server reads twice differs: the client writes it in between.
#[test]
fn nothing_is_believed_twice() {
    for seed in 0..60 {
        // Shown if it fails.
        println!("seed {seed}");
        let data = play::script_of(seed);
        changing(&play::script::HOSTILE, seed, || {
            play::hostile(&data, None, false)
        });
    }
}
