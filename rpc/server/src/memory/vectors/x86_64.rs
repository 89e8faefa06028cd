//! Vectors of SSE2, AVX and AVX-512.

use crate::layout::Packet;

/// Copies packets.
///
/// # Safety
///
/// As for [`super::copy`].
#[inline]
pub unsafe fn copy(from: *const Packet, to: *mut Packet, packets: usize) {
    #[cfg(feature = "std")]
    if packets > 4 {
        if std::is_x86_feature_detected!("avx512f") {
            // SAFETY: guaranteed by the caller; the processor has AVX-512.
            return unsafe { copy_avx512(from, to, packets) };
        }
        if std::is_x86_feature_detected!("avx") {
            // SAFETY: guaranteed by the caller; the processor has AVX.
            return unsafe { copy_avx(from, to, packets) };
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe { copy_sse2(from, to, packets) }
}

/// Copies packets with vectors of 16 bytes.
///
/// # Safety
///
/// As for [`super::copy`].
#[inline]
unsafe fn copy_sse2(from: *const Packet, to: *mut Packet, packets: usize) {
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
            at = inout(reg) (packets * size_of::<Packet>()).wrapping_neg() => _,
            from = in(reg) from.add(packets),
            to = in(reg) to.add(packets),
            options(nostack),
        );
    }
}

/// Copies packets with vectors of 32 bytes.
///
/// # Safety
///
/// As for [`super::copy`]; the processor has AVX.
#[cfg(feature = "std")]
#[inline]
unsafe fn copy_avx(from: *const Packet, to: *mut Packet, packets: usize) {
    let single = packets % 2;
    // SAFETY: guaranteed by the caller.
    unsafe {
        if single != 0 {
            copy_sse2(from, to, single);
        }
        let (from, to, packets) = (from.add(single), to.add(single), packets - single);
        if packets == 0 {
            return;
        }
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
            at = inout(reg) (packets * size_of::<Packet>()).wrapping_neg() => _,
            from = in(reg) from.add(packets),
            to = in(reg) to.add(packets),
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        );
    }
}

/// Copies packets with vectors of 64 bytes: one access for each cache line. Reads of many lines that another processor
/// has written are faster by a tenth than with two accesses for each.
///
/// # Safety
///
/// As for [`super::copy`]; the processor has AVX-512.
#[cfg(feature = "std")]
#[inline]
unsafe fn copy_avx512(from: *const Packet, to: *mut Packet, packets: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        core::arch::asm!(
            "2:",
            "vmovdqu64 zmm0, [{from} + {at}]",
            "vmovdqu64 [{to} + {at}], zmm0",
            "add {at}, 64",
            "jnz 2b",
            "vzeroupper",
            at = inout(reg) (packets * size_of::<Packet>()).wrapping_neg() => _,
            from = in(reg) from.add(packets),
            to = in(reg) to.add(packets),
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        );
    }
}

/// Copies the first two words of packets.
///
/// # Safety
///
/// As for [`super::copy_two_words`].
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

/// Sets a bit of a register for each of 16 mailboxes that is zero.
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

/// Bits of mailboxes that are not zero.
///
/// # Safety
///
/// As for [`super::nonzero`].
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

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    type Copy = unsafe fn(*const Packet, *mut Packet, usize);

    /// The test covers all vectors that this processor has, not only those that it uses.
    #[test]
    fn vectors_of_each_size_copy_all_words() {
        let mut copies: Vec<(&str, Copy)> = vec![("sse2", copy_sse2)];
        if std::is_x86_feature_detected!("avx") {
            copies.push(("avx", copy_avx));
        }
        if std::is_x86_feature_detected!("avx512f") {
            copies.push(("avx512f", copy_avx512));
        }
        for (name, copy) in copies {
            for packets in 1..=64 {
                let from: [Packet; 65] = std::array::from_fn(|packet| {
                    std::array::from_fn(|word| (packet * 8 + word + 1) as u64)
                });
                let mut to = [[0; 8]; 65];
                // SAFETY: both have 65 packets; the processor has the vectors.
                unsafe { copy(from.as_ptr(), to.as_mut_ptr(), packets) };
                assert_eq!(to[..packets], from[..packets], "{name}, {packets} packets");
                assert_eq!(to[packets], [0; 8], "{name}, {packets} packets");
            }
        }
    }
}
