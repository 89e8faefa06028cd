//! NVIDIA's GPUs, from sm_70 on.
//!
//! LLVM's intrinsics instead of inline assembly: rustc does not mark the latter as convergent, so that LLVM could move it
//! into or out of divergent branches.

use core::arch::nvptx;

#[allow(improper_ctypes)]
unsafe extern "C" {
    #[link_name = "llvm.nvvm.activemask"]
    safe fn llvm_activemask() -> u32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn llvm_bar_warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn llvm_vote_ballot_sync(mask: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i32"]
    fn llvm_match_any_sync(mask: u32, value: u32) -> u32;
    #[link_name = "llvm.nvvm.membar.gl"]
    safe fn llvm_membar_gl();
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    safe fn llvm_laneid() -> u32;
    #[link_name = "llvm.nvvm.nanosleep"]
    safe fn llvm_nanosleep(nanoseconds: u32);
    #[link_name = "llvm.nvvm.exit"]
    safe fn llvm_exit();
}

#[inline]
pub(crate) fn lane_id() -> u32 {
    llvm_laneid()
}

#[inline]
pub(crate) fn warp_size() -> u32 {
    32
}

/// Active lanes that open a call with this opcode. The GPU runs lanes together again when they reach a function from different
/// branches (seen on an H200), where their opcodes may differ.
#[inline(always)]
pub(crate) fn active_mask(opcode: u32) -> u64 {
    // SAFETY: the lanes of the mask are those that execute this.
    unsafe { llvm_match_any_sync(llvm_activemask(), opcode) }.into()
}

/// Lanes of `mask` whose `predicate` is true. All lanes of `mask` call this, and only they.
#[inline]
pub(crate) fn ballot(mask: u64, predicate: bool) -> u64 {
    // SAFETY: this lane is in the mask of its call.
    unsafe { llvm_vote_ballot_sync(mask as u32, predicate) }.into()
}

/// Waits for all lanes of `mask`. Orders their accesses to memory.
#[inline]
pub(crate) fn sync(mask: u64) {
    // SAFETY: this lane is in the mask of its call.
    unsafe { llvm_bar_warp_sync(mask as u32) }
}

/// Orders accesses of this lane for all lanes of the device.
#[inline]
pub(crate) fn fence_device() {
    llvm_membar_gl();
}

/// Whether a lane leaves a call by a panic: devices do not unwind.
#[inline]
pub(crate) fn is_lost(_mask: u64) -> bool {
    false
}

/// Pauses between two polls.
#[inline]
pub(crate) fn pause() {
    llvm_nanosleep(64);
}

/// Ends this thread.
#[inline]
pub(crate) fn end() -> ! {
    llvm_exit();
    loop {}
}

/// Ends the kernel with an error.
#[inline]
pub(crate) fn trap() -> ! {
    // SAFETY: has no requirements.
    unsafe { nvptx::trap() }
}

/// Interrupts the host: not possible on these GPUs.
#[cfg(feature = "llvm-23")]
#[inline]
pub(crate) fn interrupt(_event: u32) {}

#[inline]
pub(crate) fn thread_index() -> [u32; 3] {
    // SAFETY: read registers.
    unsafe {
        [
            nvptx::_thread_idx_x(),
            nvptx::_thread_idx_y(),
            nvptx::_thread_idx_z(),
        ]
    }
}

#[inline]
pub(crate) fn block_index() -> [u32; 3] {
    // SAFETY: read registers.
    unsafe {
        [
            nvptx::_block_idx_x(),
            nvptx::_block_idx_y(),
            nvptx::_block_idx_z(),
        ]
    }
}
