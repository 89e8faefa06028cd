//! Wide accesses to memory that a device may write at any time.
//!
//! Rust has none that may race. The inline assembly of the machines behaves like one relaxed atomic access of each
//! mailbox, or each aligned word of 8 bytes, in any order, as the architectures guarantee for vector accesses
//! that are aligned to them (AMD64 manual 2, 7.3.2 for each word of the cache line; Arm DDI 0487, B2.2.1). It is
//! not `pure` or `nomem`: it stays between the accesses of the mailbox that order it.

#[cfg(all(
    target_arch = "aarch64",
    target_feature = "neon",
    not(any(miri, gpurpc_thread_sanitizer))
))]
mod aarch64;
#[cfg(any(
    miri,
    gpurpc_thread_sanitizer,
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_feature = "neon")
    ))
))]
mod words;
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    not(any(miri, gpurpc_thread_sanitizer))
))]
mod x86_64;

#[cfg(all(
    target_arch = "aarch64",
    target_feature = "neon",
    not(any(miri, gpurpc_thread_sanitizer))
))]
use aarch64 as machine;
#[cfg(any(
    miri,
    gpurpc_thread_sanitizer,
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_feature = "neon")
    ))
))]
use words as machine;
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    not(any(miri, gpurpc_thread_sanitizer))
))]
use x86_64 as machine;

use crate::layout::Packet;

/// Copies packets, at least one.
///
/// # Safety
///
/// `from` is readable and `to` writable for this many packets, both are aligned to 8, and they do not overlap. Code of
/// this process that accesses the shared one of them meanwhile does so word by word, atomically.
#[inline]
pub unsafe fn copy(from: *const Packet, to: *mut Packet, packets: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { machine::copy(from, to, packets) }
}

/// Copies the first two words of each of some packets, at least one.
///
/// # Safety
///
/// As for [`copy`].
#[inline]
pub unsafe fn copy_two_words(from: *const Packet, to: *mut Packet, packets: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { machine::copy_two_words(from, to, packets) }
}

/// Bit mask of those of 64 mailboxes that are not zero. An acquire fence must follow before packets are read.
///
/// # Safety
///
/// 64 mailboxes are readable at `mailboxes`.
#[inline]
pub unsafe fn nonzero(mailboxes: *const u32) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { machine::nonzero(mailboxes) }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    /// Any number of packets, at any offset of 8 bytes in a cache line, and no memory around them.
    #[test]
    fn words_are_copied_and_no_others() {
        for packets in 1..=64 {
            for from_start in 0..8 {
                let to_start = (from_start * 5 + packets) % 8;
                let from: Vec<u64> = (0..80 * 8).map(|word| word * 0x0101_0101_0101).collect();
                let mut to = [u64::MAX; 80 * 8];
                // SAFETY: both have 80 packets, and at most 65 are used.
                unsafe {
                    let from = from[from_start..].as_ptr();
                    let to = to[to_start..].as_mut_ptr();
                    copy(from.cast(), to.cast(), packets);
                }
                for (index, word) in to.iter().enumerate() {
                    let expected = if (to_start..to_start + packets * 8).contains(&index) {
                        from[from_start + index - to_start]
                    } else {
                        u64::MAX
                    };
                    assert_eq!(*word, expected, "{packets} packets, word {index}");
                }
            }
        }
    }

    #[test]
    fn two_words_of_each_packet_are_copied() {
        for packets in 1..=64 {
            let from: Vec<Packet> = (1..=64).map(|value| [value; 8]).collect();
            let mut to = [[0; 8]; 64];
            // SAFETY: both have 64 packets.
            unsafe { copy_two_words(from.as_ptr(), to.as_mut_ptr(), packets) };
            for (index, packet) in to.iter().enumerate() {
                let value = if index < packets { index as u64 + 1 } else { 0 };
                assert_eq!(
                    *packet,
                    [value, value, 0, 0, 0, 0, 0, 0],
                    "{packets} packets"
                );
            }
        }
    }

    /// Each mailbox counts, at any offset in a cache line, and no memory around them.
    #[test]
    fn each_mailbox_has_a_bit() {
        for first in 0..16 {
            let mut memory = vec![7; 96];
            memory[first..first + 64].fill(0);
            let bits = |memory: &[u32]| {
                // SAFETY: 64 mailboxes follow, and no code writes them.
                unsafe { nonzero(memory[first..first + 64].as_ptr()) }
            };
            assert_eq!(bits(&memory), 0);
            for index in 0..64 {
                for value in [1, 1 << 15, 1 << 16, 1 << 31, u32::MAX] {
                    memory[first + index] = value;
                    assert_eq!(bits(&memory), 1 << index, "{index} of {first}");
                }
                memory[first + index] = 0;
            }
            memory[first..first + 64].fill(2);
            assert_eq!(bits(&memory), u64::MAX);
        }
    }
}
