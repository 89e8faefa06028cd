//! Threads of the host act as warps of a device: whole, partial and divergent masks of lanes, messages whose
//! size differs between lanes, calls without waiting clients, warps that stop in the middle. Each answer is
//! checked; none is lost, none is sent twice. The actions of a warp are derived from a seed.
#![cfg(feature = "std")]

mod rig;
mod warp;

use std::env;

use gpurpc::{Error, Generation, Layout};
use rig::Bench;

/// Variable with the first seed, to repeat a failed run.
const SEED: &str = "GPUSTUB_TEST_SEED";

#[allow(clippy::disallowed_methods, reason = "nothing is built here")]
fn first_seed() -> u64 {
    let given = env::var(SEED).ok();
    given.map_or(0, |seed| seed.parse().expect("a seed is a number"))
}

/// Prints how to repeat a failed run.
struct Say(u64);

impl Drop for Say {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat the run: {SEED}={}", self.0);
        }
    }
}

/// Runs warps of so many lanes; the fewer ports, the more warps wait for each.
fn play(lanes: u32, seeds: u64, calls: u32) -> Result<(), Error> {
    let first = first_seed();
    for seed in first..first + seeds {
        let _say = Say(seed);
        let ports = [1, 3, 17, 64, 70, 200][seed as usize % 6];
        let generation = [Generation::LLVM_20, Generation::LLVM_23][seed as usize / 6 % 2];
        // Warps that stop keep their ports.
        let mortal = ports > 32;
        let layout = Layout::with_generation(generation, ports, lanes)?;
        Bench::new(layout)?.run(16, seed, calls, mortal);
    }
    Ok(())
}

#[test]
fn warps_of_1_lane() -> Result<(), Error> {
    play(1, 12, 40)
}

#[test]
fn warps_of_32_lanes() -> Result<(), Error> {
    play(32, 12, 40)
}

#[test]
fn warps_of_64_lanes() -> Result<(), Error> {
    play(64, 12, 40)
}

#[test]
#[ignore = "takes minutes: ./tests/run --all"]
fn heavy_warps() -> Result<(), Error> {
    for lanes in [1, 32, 64] {
        play(lanes, 30, 500)?;
    }
    Ok(())
}
