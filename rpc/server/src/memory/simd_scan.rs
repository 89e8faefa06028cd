//! Compares 64 mailboxes with vector loads. Rust has no atomic loads wider than a mailbox, so they are inline
//! assembly: each mailbox in a vector is still read whole, as both architectures guarantee for loads aligned
//! to it (AMD64 manual 2, 7.3.2 for each word of the cache line; Arm DDI 0487, B2.2.1).

/// Whether any of 64 mailboxes differs from its expected value.
///
/// # Safety
///
/// 64 mailboxes are readable at `inbox`.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
pub unsafe fn any_differs(inbox: *const u32, expected: &[u32; 64]) -> bool {
    let differ: u32;
    // SAFETY: reads 256 bytes from each array, with SSE2.
    unsafe {
        core::arch::asm!(
            "pcmpeqd {all}, {all}",
            "mov {at:e}, 192",
            "2:",
            "movdqu {a}, [{inbox} + {at}]",
            "movdqu {e}, [{expected} + {at}]",
            "pcmpeqd {a}, {e}",
            "movdqu {b}, [{inbox} + {at} + 16]",
            "movdqu {e}, [{expected} + {at} + 16]",
            "pcmpeqd {b}, {e}",
            "movdqu {c}, [{inbox} + {at} + 32]",
            "movdqu {e}, [{expected} + {at} + 32]",
            "pcmpeqd {c}, {e}",
            "movdqu {d}, [{inbox} + {at} + 48]",
            "movdqu {e}, [{expected} + {at} + 48]",
            "pcmpeqd {d}, {e}",
            "pand {a}, {b}",
            "pand {c}, {d}",
            "pand {all}, {a}",
            "pand {all}, {c}",
            "sub {at}, 64",
            "jns 2b",
            "pmovmskb {differ:e}, {all}",
            all = out(xmm_reg) _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            e = out(xmm_reg) _,
            at = out(reg) _,
            inbox = in(reg) inbox,
            expected = in(reg) expected.as_ptr(),
            differ = lateout(reg) differ,
            options(nostack, readonly),
        );
    }
    differ != 0xffff
}

/// Whether any of 64 mailboxes differs from its expected value.
///
/// # Safety
///
/// 64 mailboxes are readable at `inbox`.
#[cfg(all(target_arch = "aarch64", target_feature = "neon", not(miri)))]
pub unsafe fn any_differs(inbox: *const u32, expected: &[u32; 64]) -> bool {
    let differ: u64;
    // SAFETY: reads 256 bytes from each array, with Advanced SIMD.
    unsafe {
        core::arch::asm!(
            "movi {all:v}.4s, #0",
            "mov {left}, #8",
            "2:",
            "ldp {a:q}, {b:q}, [{inbox}], #32",
            "ldp {c:q}, {d:q}, [{expected}], #32",
            "eor {a:v}.16b, {a:v}.16b, {c:v}.16b",
            "eor {b:v}.16b, {b:v}.16b, {d:v}.16b",
            "orr {a:v}.16b, {a:v}.16b, {b:v}.16b",
            "orr {all:v}.16b, {all:v}.16b, {a:v}.16b",
            "subs {left}, {left}, #1",
            "b.ne 2b",
            "umaxv {all:s}, {all:v}.4s",
            "fmov {differ:w}, {all:s}",
            all = out(vreg) _,
            a = out(vreg) _,
            b = out(vreg) _,
            c = out(vreg) _,
            d = out(vreg) _,
            left = out(reg) _,
            inbox = inout(reg) inbox => _,
            expected = inout(reg) expected.as_ptr() => _,
            differ = lateout(reg) differ,
            options(nostack, readonly),
        );
    }
    differ as u32 != 0
}

/// Whether any of 64 mailboxes differs from its expected value.
///
/// # Safety
///
/// 64 mailboxes are readable at `inbox`.
// Kernels are built without vector registers.
#[cfg(any(
    miri,
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_feature = "neon")
    ))
))]
pub unsafe fn any_differs(inbox: *const u32, expected: &[u32; 64]) -> bool {
    use core::sync::atomic::{AtomicU32, Ordering};
    // SAFETY: guaranteed by the caller; all other accesses are atomic too.
    let inbox = unsafe { core::slice::from_raw_parts(inbox.cast::<AtomicU32>(), 64) };
    let pairs = inbox.iter().zip(expected);
    pairs.fold(0, |all, (now, expected)| {
        all | (now.load(Ordering::Relaxed) ^ expected)
    }) != 0
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Each mailbox counts, at any offset in a cache line, and no memory around them.
    #[test]
    fn each_mailbox_counts() {
        for first in 0..16 {
            let mut memory: Vec<u32> = (0..96).map(|at| at * 7).collect();
            let mut expected = [0; 64];
            expected.copy_from_slice(&memory[first..first + 64]);
            let differs = |memory: &[u32]| {
                // SAFETY: 64 mailboxes follow, and no code writes them.
                unsafe { any_differs(memory[first..first + 64].as_ptr(), &expected) }
            };
            assert!(!differs(&memory));
            for at in 0..memory.len() {
                for bit in [1, 1 << 31] {
                    memory[at] ^= bit;
                    let among = (first..first + 64).contains(&at);
                    assert_eq!(differs(&memory), among, "{at} of {first}");
                    memory[at] ^= bit;
                }
            }
        }
    }
}
