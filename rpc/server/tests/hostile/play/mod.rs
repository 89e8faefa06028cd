//! Properties that hold for any client: the body of the tests here and in `src/memory/racing.rs`, and of
//! the fuzz target `rpc`.

mod rig;
pub mod script;
mod services;

pub use rig::hostile;

/// Bytes for [`hostile`], derived from a seed.
pub fn script_of(seed: u64) -> Vec<u8> {
    // SplitMix64.
    let mut state = seed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let size = 50 + next() as usize % 1500;
    (0..size).map(|_| next() as u8).collect()
}
