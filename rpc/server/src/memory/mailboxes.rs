//! Reads 64 mailboxes with vector loads. Rust has no atomic loads wider than a mailbox, so they are inline
//! assembly: each mailbox in a vector is still read whole, as both architectures guarantee for loads aligned
//! to it (AMD64 manual 2, 7.3.2 for each word of the cache line; Arm DDI 0487, B2.2.1).

/// Sets a bit of a register for each of 16 mailboxes that is zero.
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    not(any(miri, gpurpc_atomic_copies))
))]
macro_rules! sixteen {
    ($at:literal, $bits:literal) => {
        concat!(
            "movdqu {a}, [{mailboxes} + ",
            $at,
            "]\n",
            "movdqu {b}, [{mailboxes} + ",
            $at,
            " + 16]\n",
            "movdqu {c}, [{mailboxes} + ",
            $at,
            " + 32]\n",
            "movdqu {d}, [{mailboxes} + ",
            $at,
            " + 48]\n",
            "pcmpeqd {a}, {zero}\n",
            "pcmpeqd {b}, {zero}\n",
            "pcmpeqd {c}, {zero}\n",
            "pcmpeqd {d}, {zero}\n",
            // All ones or zeros, which saturation keeps: 16 mailboxes become 16 bytes.
            "packssdw {a}, {b}\n",
            "packssdw {c}, {d}\n",
            "packsswb {a}, {c}\n",
            "pmovmskb ",
            $bits,
            ", {a}"
        )
    };
}

/// Bit mask of those of 64 mailboxes that are not zero. Relaxed loads.
///
/// # Safety
///
/// 64 mailboxes are readable at `mailboxes`.
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    not(any(miri, gpurpc_atomic_copies))
))]
#[inline]
pub unsafe fn nonzero(mailboxes: *const u32) -> u64 {
    let zero: u64;
    // SAFETY: reads 256 bytes, with SSE2.
    unsafe {
        core::arch::asm!(
            "pxor {zero}, {zero}",
            sixteen!(0, "{first}"),
            sixteen!(64, "{second}"),
            sixteen!(128, "{third}"),
            sixteen!(192, "{fourth}"),
            "shl {second}, 16",
            "shl {third}, 32",
            "shl {fourth}, 48",
            "or {first}, {second}",
            "or {third}, {fourth}",
            "or {first}, {third}",
            zero = out(xmm_reg) _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            first = out(reg) zero,
            second = out(reg) _,
            third = out(reg) _,
            fourth = out(reg) _,
            mailboxes = in(reg) mailboxes,
            options(nostack, readonly),
        );
    }
    !zero
}

/// Bit mask of those of 64 mailboxes that are not zero. Relaxed loads.
///
/// # Safety
///
/// 64 mailboxes are readable at `mailboxes`.
#[cfg(all(
    target_arch = "aarch64",
    target_feature = "neon",
    not(any(miri, gpurpc_atomic_copies))
))]
#[inline]
pub unsafe fn nonzero(mailboxes: *const u32) -> u64 {
    let mut bits = 0;
    for part in (0..64).step_by(16).rev() {
        let sixteen: u32;
        // SAFETY: reads 64 bytes, with Advanced SIMD.
        unsafe {
            core::arch::asm!(
                "ldp {a:q}, {b:q}, [{mailboxes}]",
                "ldp {c:q}, {d:q}, [{mailboxes}, #32]",
                "cmtst {a:v}.4s, {a:v}.4s, {a:v}.4s",
                "cmtst {b:v}.4s, {b:v}.4s, {b:v}.4s",
                "cmtst {c:v}.4s, {c:v}.4s, {c:v}.4s",
                "cmtst {d:v}.4s, {d:v}.4s, {d:v}.4s",
                "uzp1 {a:v}.8h, {a:v}.8h, {b:v}.8h",
                "uzp1 {c:v}.8h, {c:v}.8h, {d:v}.8h",
                "uzp1 {a:v}.16b, {a:v}.16b, {c:v}.16b",
                // A bit of each byte, then the sum of each half.
                "and {a:v}.16b, {a:v}.16b, {weights:v}.16b",
                "ext {b:v}.16b, {a:v}.16b, {a:v}.16b, #8",
                "zip1 {a:v}.16b, {a:v}.16b, {b:v}.16b",
                "addv {a:h}, {a:v}.8h",
                "umov {sixteen:w}, {a:v}.h[0]",
                a = out(vreg) _,
                b = out(vreg) _,
                c = out(vreg) _,
                d = out(vreg) _,
                weights = in(vreg) core::arch::aarch64::vreinterpretq_u8_u64(
                    core::arch::aarch64::vdupq_n_u64(0x8040_2010_0804_0201)
                ),
                mailboxes = in(reg) mailboxes.add(part),
                sixteen = out(reg) sixteen,
                options(nostack, readonly),
            );
        }
        bits = bits << 16 | u64::from(sixteen);
    }
    bits
}

/// Bit mask of those of 64 mailboxes that are not zero. Relaxed loads.
///
/// # Safety
///
/// 64 mailboxes are readable at `mailboxes`.
// Kernels are built without vector registers.
#[cfg(any(
    miri,
    gpurpc_atomic_copies,
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_feature = "neon")
    ))
))]
pub unsafe fn nonzero(mailboxes: *const u32) -> u64 {
    use core::sync::atomic::{AtomicU32, Ordering};
    // SAFETY: guaranteed by the caller; all other accesses are atomic too.
    let mailboxes = unsafe { core::slice::from_raw_parts(mailboxes.cast::<AtomicU32>(), 64) };
    let values = mailboxes.iter().zip(0..);
    values.fold(0, |bits, (mailbox, port)| {
        bits | u64::from(mailbox.load(Ordering::Relaxed) != 0) << port
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

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
            for at in 0..64 {
                for value in [1, 1 << 15, 1 << 16, 1 << 31, u32::MAX] {
                    memory[first + at] = value;
                    assert_eq!(bits(&memory), 1 << at, "{at} of {first}");
                }
                memory[first + at] = 0;
            }
            memory[first..first + 64].fill(2);
            assert_eq!(bits(&memory), u64::MAX);
        }
    }
}
