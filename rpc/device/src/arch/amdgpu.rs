//! AMD's GPUs. The lanes of a warp (wavefront) run in lockstep.

use core::arch::amdgpu;

#[inline]
pub(crate) fn lane_id() -> u32 {
    let below = amdgpu::mbcnt_lo(u32::MAX, 0);
    if warp_size() == 64 {
        amdgpu::mbcnt_hi(u32::MAX, below)
    } else {
        below
    }
}

#[inline]
pub(crate) fn warp_size() -> u32 {
    amdgpu::wavefrontsize()
}

/// Lanes of different branches do not meet in a function here.
#[inline(always)]
pub(crate) fn active_mask(_opcode: u32) -> u64 {
    amdgpu::ballot(true)
}

/// Lanes of `mask` whose `predicate` is true.
#[inline]
pub(crate) fn ballot(mask: u64, predicate: bool) -> u64 {
    mask & amdgpu::ballot(predicate)
}

/// Keeps the compiler from moving accesses of lanes across.
#[inline]
pub(crate) fn sync(_mask: u64) {
    amdgpu::wave_barrier();
}

/// Orders accesses of this lane for all lanes of the device.
#[inline]
pub(crate) fn fence_device() {
    core::sync::atomic::fence(core::sync::atomic::Ordering::AcqRel);
}

/// Whether a lane leaves a call by a panic: devices do not unwind.
#[inline]
pub(crate) fn is_lost(_mask: u64) -> bool {
    false
}

/// Pauses between two polls.
#[inline]
pub(crate) fn pause() {
    amdgpu::s_sleep::<2>();
}

/// Ends this warp.
#[inline]
pub(crate) fn end() -> ! {
    amdgpu::endpgm()
}

/// Ends the kernel with an error.
#[inline]
pub(crate) fn trap() -> ! {
    #[allow(improper_ctypes)]
    unsafe extern "C" {
        #[link_name = "llvm.trap"]
        safe fn llvm_trap();
    }
    llvm_trap();
    amdgpu::endpgm()
}

/// Interrupts the host.
#[cfg(feature = "llvm-23")]
#[inline]
pub(crate) fn interrupt(event: u32) {
    #[allow(improper_ctypes)]
    unsafe extern "C" {
        #[link_name = "llvm.amdgcn.s.sendmsg"]
        fn llvm_s_sendmsg(message: i32, register: i32);
    }
    // SAFETY: message 1 is an interrupt, with the event in a register of the whole warp.
    unsafe { llvm_s_sendmsg(1, amdgpu::readfirstlane_u32(event) as i32) }
}

#[inline]
pub(crate) fn thread_index() -> [u32; 3] {
    [
        amdgpu::workitem_id_x(),
        amdgpu::workitem_id_y(),
        amdgpu::workitem_id_z(),
    ]
}

#[inline]
pub(crate) fn block_index() -> [u32; 3] {
    [
        amdgpu::workgroup_id_x(),
        amdgpu::workgroup_id_y(),
        amdgpu::workgroup_id_z(),
    ]
}
