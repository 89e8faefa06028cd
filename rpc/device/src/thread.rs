//! The executing thread and its warp.

use crate::arch;

/// Index of the thread in its block (workgroup): x, y and z.
///
/// ```
/// use gpurpc_device::thread;
///
/// // A thread of a host.
/// assert_eq!(thread::index(), [0, 0, 0]);
/// ```
pub fn index() -> [u32; 3] {
    arch::thread_index()
}

/// Index of the block (workgroup) in its grid: x, y and z.
///
/// ```
/// use gpurpc_device::thread;
///
/// assert_eq!(thread::block(), [0, 0, 0]);
/// ```
pub fn block() -> [u32; 3] {
    arch::block_index()
}

/// Index of the thread in its warp (wavefront).
///
/// ```
/// use gpurpc_device::thread;
///
/// assert!(thread::lane() < thread::warp_size());
/// ```
pub fn lane() -> u32 {
    arch::lane_id()
}

/// Number of lanes of a warp: 32 on NVIDIA's GPUs, 32 or 64 on AMD's, 1 for threads of a host.
///
/// ```
/// use gpurpc_device::thread;
///
/// assert_eq!(thread::warp_size(), 1);
/// ```
pub fn warp_size() -> u32 {
    arch::warp_size()
}
