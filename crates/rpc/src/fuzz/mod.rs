//! What must hold of any bytes: the body of fuzz targets and of the tests with hostile input.

mod hostile;
mod script;
mod services;

use alloc::vec;
use alloc::vec::Vec;

use crate::host::printf::Format;
use crate::server::Fault;
pub use hostile::{Survived, hostile};

/// Prints a format that ends with the first byte that is 0. What follows is taken for its arguments,
/// as often as it takes, and for each string. Panics if something does that must not be, whatever
/// `data` is; tells whether there was text.
#[doc(hidden)]
pub fn printf(data: &[u8]) -> bool {
    const LIMIT: usize = 4096;
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let text = parts.next().unwrap_or_default();
    let rest = parts.next().unwrap_or_default();
    let source = if rest.is_empty() { &[0] } else { rest };
    let printed = [false, true].map(|packed| {
        let format = Format::parse(text, packed).ok()?;
        let size = format.arguments_size();
        let arguments: Vec<u8> = source.iter().copied().cycle().take(size).collect();
        let strings = vec![rest; format.strings(&arguments).len()];
        if let Some(fewer) = size.checked_sub(1) {
            let missing = format.print(&arguments[..fewer], &strings, LIMIT);
            assert!(missing.is_err(), "an argument is missing");
        }
        match format.print(&arguments, &strings, LIMIT) {
            Ok(text) => {
                assert!(text.len() <= LIMIT);
                Some(())
            }
            // Nothing else is wrong.
            Err(fault) => {
                let long = Fault::Other("printf: the text is longer than is allowed");
                assert_eq!(fault, long);
                None
            }
        }
    });
    printed.iter().any(Option::is_some)
}

/// Bytes for [`hostile`], of which each seed has its own.
#[doc(hidden)]
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

#[cfg(test)]
mod tests {
    use super::script::HOSTILE;
    use super::*;
    use crate::memory::changing::changing;

    /// What the server reads twice differs: the client writes it in between.
    #[test]
    fn nothing_is_believed_twice() {
        for seed in 0..60 {
            // Shown if it fails.
            println!("seed {seed}");
            changing(&HOSTILE, seed, || hostile(&script_of(seed), None, false));
        }
    }
}
