//! The hash of names and contents.

/// The hash of these bytes, as the tables have it: eight bytes at a time, as a little-endian number, the
/// last ones filled up with zeros. It finds accidents, not attacks.
#[must_use]
pub fn of(bytes: &[u8]) -> u64 {
    let mut hash = START ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        hash = step(hash, word);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        // The last eight bytes are there at once, in all but short ones.
        let word = match bytes.last_chunk::<8>() {
            Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * rest.len()),
            None => (rest.iter().rev()).fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        hash = step(hash, word.to_le_bytes());
    }
    hash
}

const START: u64 = 0x9E37_79B9_7F4A_7C15;
const FACTOR: u64 = 0x9FB2_1C65_1E98_DF25;

fn step(hash: u64, word: [u8; 8]) -> u64 {
    let mixed = (hash ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    mixed ^ (mixed >> 32)
}
