//! Atomic accesses of words: for Miri, which has no inline assembly, kernels, which have no vector registers, and
//! race detectors, which see these accesses.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::layout::{PACKET_WORDS, Packet};

/// Copies packets.
///
/// # Safety
///
/// As for [`super::copy`].
pub unsafe fn copy(from: *const Packet, to: *mut Packet, packets: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { copy_words(from.cast(), to.cast(), packets * PACKET_WORDS) }
}

/// Copies the first two words of packets.
///
/// # Safety
///
/// As for [`super::copy_two_words`].
pub unsafe fn copy_two_words(from: *const Packet, to: *mut Packet, packets: usize) {
    for packet in 0..packets {
        // SAFETY: guaranteed by the caller.
        unsafe { copy_words(from.add(packet).cast(), to.add(packet).cast(), 2) }
    }
}

/// Copies words one after another.
///
/// # Safety
///
/// As for [`super::copy`].
unsafe fn copy_words(from: *const u64, to: *mut u64, words: usize) {
    for word in 0..words {
        // SAFETY: guaranteed by the caller.
        let (from, to) = unsafe {
            (
                &*from.add(word).cast::<AtomicU64>(),
                &*to.add(word).cast::<AtomicU64>(),
            )
        };
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Bits of mailboxes that are not zero.
///
/// # Safety
///
/// As for [`super::nonzero`].
pub unsafe fn nonzero(mailboxes: *const u32) -> u64 {
    // SAFETY: guaranteed by the caller; all other accesses are atomic too.
    let mailboxes = unsafe { core::slice::from_raw_parts(mailboxes.cast::<AtomicU32>(), 64) };
    mailboxes.iter().zip(0..).fold(0, |bits, (mailbox, port)| {
        bits | u64::from(mailbox.load(Ordering::Acquire) != 0) << port
    })
}
