//! Vectors of Advanced SIMD.

use crate::layout::Packet;

/// Copies packets.
///
/// # Safety
///
/// As for [`super::copy`].
#[inline]
pub unsafe fn copy(from: *const Packet, to: *mut Packet, packets: usize) {
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
            packets = inout(reg) packets => _,
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

/// Bits of mailboxes that are not zero.
///
/// # Safety
///
/// As for [`super::nonzero`].
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
