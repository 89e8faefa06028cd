//! Copies packets between memory that a device may write at any time and memory of this process.
//!
//! Rust has no wide access that may race. The inline assembly below behaves like one relaxed atomic access of
//! each aligned word of 8 bytes, in any order, as the architectures guarantee for its vector accesses (AMD64
//! manual 2, 7.3.2; Arm DDI 0487, B2.2.1). It is not `pure` or `nomem`: it stays between the accesses of the
//! mailbox that order it.

use crate::layout::Packet;

/// Copies `words` words, a multiple of 8 that is not 0.
///
/// # Safety
///
/// `from` is readable and `to` writable for this many words, both are aligned to 8, and they do not overlap. Code of
/// this process that accesses the shared one of them meanwhile does so word by word, atomically.
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    not(any(miri, gpurpc_atomic_copies))
))]
#[inline]
pub unsafe fn copy(from: *const u64, to: *mut u64, words: usize) {
    #[cfg(feature = "std")]
    if words > 32 && std::is_x86_feature_detected!("avx") {
        let single = words % 16;
        // SAFETY: guaranteed by the caller; the processor has AVX.
        unsafe {
            if single != 0 {
                copy_sse2(from, to, single);
            }
            return copy_avx(from.add(single), to.add(single), words - single);
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe { copy_sse2(from, to, words) }
}

/// [`copy`] with vectors of 16 bytes.
///
/// # Safety
///
/// As for [`copy`].
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    not(any(miri, gpurpc_atomic_copies))
))]
#[inline]
unsafe fn copy_sse2(from: *const u64, to: *mut u64, words: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        core::arch::asm!(
            "2:",
            "movdqu {a}, [{from} + {at}]",
            "movdqu {b}, [{from} + {at} + 16]",
            "movdqu {c}, [{from} + {at} + 32]",
            "movdqu {d}, [{from} + {at} + 48]",
            "movdqu [{to} + {at}], {a}",
            "movdqu [{to} + {at} + 16], {b}",
            "movdqu [{to} + {at} + 32], {c}",
            "movdqu [{to} + {at} + 48], {d}",
            "add {at}, 64",
            "jnz 2b",
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            // Counts up to 0 from the negative size.
            at = inout(reg) (words * 8).wrapping_neg() => _,
            from = in(reg) from.add(words),
            to = in(reg) to.add(words),
            options(nostack),
        );
    }
}

/// [`copy`] of an even number of packets with vectors of 32 bytes.
///
/// # Safety
///
/// As for [`copy`]; `words` is a multiple of 16, and the processor has AVX.
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    feature = "std",
    not(any(miri, gpurpc_atomic_copies))
))]
#[inline]
unsafe fn copy_avx(from: *const u64, to: *mut u64, words: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        core::arch::asm!(
            "2:",
            "vmovdqu ymm0, [{from} + {at}]",
            "vmovdqu ymm1, [{from} + {at} + 32]",
            "vmovdqu ymm2, [{from} + {at} + 64]",
            "vmovdqu ymm3, [{from} + {at} + 96]",
            "vmovdqu [{to} + {at}], ymm0",
            "vmovdqu [{to} + {at} + 32], ymm1",
            "vmovdqu [{to} + {at} + 64], ymm2",
            "vmovdqu [{to} + {at} + 96], ymm3",
            "sub {at}, -128",
            "jnz 2b",
            "vzeroupper",
            at = inout(reg) (words * 8).wrapping_neg() => _,
            from = in(reg) from.add(words),
            to = in(reg) to.add(words),
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        );
    }
}

/// Copies `words` words, a multiple of 8 that is not 0.
///
/// # Safety
///
/// `from` is readable and `to` writable for this many words, both are aligned to 8, and they do not overlap. Code of
/// this process that accesses the shared one of them meanwhile does so word by word, atomically.
#[cfg(all(
    target_arch = "aarch64",
    target_feature = "neon",
    not(any(miri, gpurpc_atomic_copies))
))]
#[inline]
pub unsafe fn copy(from: *const u64, to: *mut u64, words: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        core::arch::asm!(
            "2:",
            "ldp {a:q}, {b:q}, [{from}], #32",
            "ldp {c:q}, {d:q}, [{from}], #32",
            "stp {a:q}, {b:q}, [{to}], #32",
            "stp {c:q}, {d:q}, [{to}], #32",
            "subs {packets}, {packets}, #1",
            "b.ne 2b",
            a = out(vreg) _,
            b = out(vreg) _,
            c = out(vreg) _,
            d = out(vreg) _,
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            packets = inout(reg) words / 8 => _,
            options(nostack),
        );
    }
}

/// Copies `words` words, a multiple of 8 that is not 0.
///
/// # Safety
///
/// `from` is readable and `to` writable for this many words, both are aligned to 8, and they do not overlap. Code of
/// this process that accesses the shared one of them meanwhile does so word by word, atomically.
// Miri has no inline assembly, kernels no vector registers, and race detectors see these accesses.
#[cfg(any(
    miri,
    gpurpc_atomic_copies,
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_feature = "neon")
    ))
))]
pub unsafe fn copy(from: *const u64, to: *mut u64, words: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { copy_words(from, to, words) }
}

/// Copies words one after another.
///
/// # Safety
///
/// As for [`copy`].
#[cfg(any(
    miri,
    gpurpc_atomic_copies,
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_feature = "neon")
    ))
))]
unsafe fn copy_words(from: *const u64, to: *mut u64, words: usize) {
    use core::sync::atomic::{AtomicU64, Ordering};
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

/// Copies the first two words of each of `packets` packets, which is not 0.
///
/// # Safety
///
/// As for [`copy`] of whole packets.
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    not(any(miri, gpurpc_atomic_copies))
))]
#[inline]
pub unsafe fn copy_two_words(from: *const Packet, to: *mut Packet, packets: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        core::arch::asm!(
            "2:",
            "movdqu {a}, [{from} + {at}]",
            "movdqu [{to} + {at}], {a}",
            "add {at}, 64",
            "jnz 2b",
            a = out(xmm_reg) _,
            at = inout(reg) (packets * size_of::<Packet>()).wrapping_neg() => _,
            from = in(reg) from.add(packets),
            to = in(reg) to.add(packets),
            options(nostack),
        );
    }
}

/// Copies the first two words of each of `packets` packets, which is not 0.
///
/// # Safety
///
/// As for [`copy`] of whole packets.
#[cfg(all(
    target_arch = "aarch64",
    target_feature = "neon",
    not(any(miri, gpurpc_atomic_copies))
))]
#[inline]
pub unsafe fn copy_two_words(from: *const Packet, to: *mut Packet, packets: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        core::arch::asm!(
            "2:",
            "ldr {a:q}, [{from}], #64",
            "str {a:q}, [{to}], #64",
            "subs {packets}, {packets}, #1",
            "b.ne 2b",
            a = out(vreg) _,
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            packets = inout(reg) packets => _,
            options(nostack),
        );
    }
}

/// Copies the first two words of each of `packets` packets, which is not 0.
///
/// # Safety
///
/// As for [`copy`] of whole packets.
#[cfg(any(
    miri,
    gpurpc_atomic_copies,
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_feature = "neon")
    ))
))]
pub unsafe fn copy_two_words(from: *const Packet, to: *mut Packet, packets: usize) {
    for packet in 0..packets {
        // SAFETY: guaranteed by the caller.
        unsafe { copy_words(from.add(packet).cast(), to.add(packet).cast(), 2) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Any number of packets, at any offset of 8 bytes in a cache line, and no memory around them.
    #[test]
    fn words_are_copied_and_no_others() {
        for packets in 1..=64 {
            for (shift, other) in (0..8).map(|shift| (shift, (shift * 5 + packets) % 8)) {
                let from: Vec<u64> = (0..80 * 8).map(|word| word * 0x0101_0101_0101).collect();
                let mut to = [u64::MAX; 80 * 8];
                // SAFETY: both have 80 packets, and at most 65 are used.
                unsafe {
                    copy(
                        from[shift..].as_ptr(),
                        to[other..].as_mut_ptr(),
                        packets * 8,
                    );
                }
                for (at, word) in to.iter().enumerate() {
                    let inside = (other..other + packets * 8).contains(&at);
                    let expected = if inside {
                        from[shift + at - other]
                    } else {
                        u64::MAX
                    };
                    assert_eq!(*word, expected, "{packets} packets, word {at}");
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
            for (at, packet) in to.iter().enumerate() {
                let value = if at < packets { at as u64 + 1 } else { 0 };
                assert_eq!(
                    *packet,
                    [value, value, 0, 0, 0, 0, 0, 0],
                    "{packets} packets"
                );
            }
        }
    }
}
