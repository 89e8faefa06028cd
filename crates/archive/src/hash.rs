//! The hash of names and contents.

/// Hashes bytes as in the tables: 16 at a time, the last ones padded with zeros. Detects accidents,
/// not attacks.
///
/// ```
/// use gpustub_archive::hash::hash_bytes;
///
/// assert_eq!(hash_bytes(b"norm"), hash_bytes(b"norm"));
/// assert_ne!(hash_bytes(b"norm"), hash_bytes(b"scale"));
/// ```
#[must_use]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let (mut hash, mut rest) = (bytes.len() as u64, bytes);
    while let Some((block, tail)) = rest.split_first_chunk() {
        hash = step(hash, u128::from_le_bytes(*block));
        rest = tail;
    }
    match rest {
        [] => hash,
        rest => step(hash, padded_block(bytes, rest)),
    }
}

/// Adds a block to the hash. The multiplications of different blocks are independent; only that of the
/// hash is serial. `FACTOR`, 5 modulo 8, has the maximum period.
fn step(hash: u64, block: u128) -> u64 {
    let product = u128::from(block as u64 ^ LOW) * u128::from((block >> 64) as u64 ^ HIGH);
    let folded = product as u64 ^ (product >> 64) as u64;
    hash.wrapping_mul(FACTOR).wrapping_add(folded)
}

const FACTOR: u64 = 0x9FB2_1C65_1E98_DF25;
// Keep zeros from multiplying to zero. Fractions of the golden ratio, and of the square root of 3.
const LOW: u64 = 0x9E37_79B9_7F4A_7C15;
const HIGH: u64 = 0xBB67_AE85_84CA_A73B;

/// The last block: `rest`, the last at most 15 bytes of `bytes`, padded with zeros. Read in words, not
/// byte by byte: names are short.
fn padded_block(bytes: &[u8], rest: &[u8]) -> u128 {
    let bits = 8 * rest.len();
    if let Some(block) = bytes.last_chunk::<16>() {
        return u128::from_le_bytes(*block) >> (128 - bits);
    }
    // The two words may overlap.
    if let (Some(low), Some(high)) = (rest.first_chunk(), rest.last_chunk()) {
        u128::from(u64::from_le_bytes(*low)) | u128::from(u64::from_le_bytes(*high)) << (bits - 64)
    } else if let (Some(low), Some(high)) = (rest.first_chunk(), rest.last_chunk()) {
        u128::from(u32::from_le_bytes(*low)) | u128::from(u32::from_le_bytes(*high)) << (bits - 32)
    } else {
        (rest.iter().rev()).fold(0, |word, &byte| word << 8 | u128::from(byte))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::HashSet;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    use super::*;

    /// The hash as `FORMAT.md` specifies it.
    fn as_specified(bytes: &[u8]) -> u64 {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(16), 0);
        let mut hash = bytes.len() as u64;
        for block in padded.chunks(16) {
            let low = u64::from_le_bytes(block[..8].try_into().unwrap());
            let high = u64::from_le_bytes(block[8..].try_into().unwrap());
            let product =
                u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xBB67_AE85_84CA_A73B);
            let halves = product as u64 ^ (product >> 64) as u64;
            hash = hash
                .wrapping_mul(0x9FB2_1C65_1E98_DF25)
                .wrapping_add(halves);
        }
        hash
    }

    #[test]
    fn all_sizes_are_hashed_as_the_format_says() {
        let bytes: Vec<u8> = (0..99)
            .map(|byte: u8| byte.wrapping_mul(89) ^ 0xA5)
            .collect();
        for size in 0..bytes.len() {
            for part in bytes.windows(size.max(1)) {
                let part = &part[..size];
                assert_eq!(hash_bytes(part), as_specified(part), "{part:?}");
            }
        }
    }

    #[test]
    fn zeros_and_single_bits_count() {
        let mut hashes: HashSet<u64> = (0..200).map(|size| hash_bytes(&[0; 200][..size])).collect();
        for bit in 0..199 * 8 {
            let mut bytes = [0; 199];
            bytes[bit / 8] = 1 << (bit % 8);
            hashes.insert(hash_bytes(&bytes));
        }
        assert_eq!(hashes.len(), 200 + 199 * 8);
    }

    fn mangled_name(number: u32) -> String {
        format!("_ZN4math6kernelILi{number}EEvPKfS2_Pfj")
    }

    fn plain_name(number: u32) -> String {
        format!("__clc_cos{number}")
    }

    /// 5000 random names occupy 4309 of 16384 slots.
    #[test]
    fn names_spread_over_slots() {
        for name in [mangled_name as fn(u32) -> String, plain_name] {
            let hashes: Vec<u64> = (0..5000)
                .map(|number| hash_bytes(name(number).as_bytes()))
                .collect();
            for shift in [0, 32] {
                let slots: HashSet<u64> =
                    hashes.iter().map(|hash| hash >> shift & 0x3FFF).collect();
                // A deviation of a twentieth is not random.
                assert!((4094..4525).contains(&slots.len()), "{}", slots.len());
            }
        }
    }
}
