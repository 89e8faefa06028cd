//! Memory of the device that the host allocates.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;

use gpurpc::opcode;

use crate::call::Call;

/// Alignment of memory of the host's allocator, that of C's `malloc`.
const HOST_ALIGNMENT: usize = 16;

/// Allocator of memory of the device, as `malloc` and `free` of LLVM's libc: each allocation is a call of the host.
///
/// A host without memory services returns null for all sizes. Freeing does not wait for the host.
///
/// ```
/// use gpurpc_device::alloc::HostAllocator;
///
/// # #[cfg(any(target_arch = "nvptx64", target_arch = "amdgpu"))]
/// #[global_allocator]
/// static ALLOCATOR: HostAllocator = HostAllocator;
/// ```
#[derive(Clone, Copy, Default, Debug)]
pub struct HostAllocator;

// SAFETY: the host returns memory that no other allocation has, aligned to 16; a larger alignment is found in it.
unsafe impl GlobalAlloc for HostAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let align = layout.align();
        if align <= HOST_ALIGNMENT {
            return malloc(layout.size());
        }
        // The address of the allocation is stored before the aligned bytes.
        let Some(size) = layout.size().checked_add(align) else {
            return ptr::null_mut();
        };
        let start = malloc(size);
        if start.is_null() {
            return start;
        }
        // SAFETY: the allocation is `align` bytes larger, and `start` is aligned to 16: at least 16 bytes lie between.
        unsafe {
            let aligned = start.add(align - start.addr() % align);
            aligned.cast::<*mut u8>().sub(1).write(start);
            aligned
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if layout.align() <= HOST_ALIGNMENT {
            free(memory);
        } else {
            // SAFETY: `alloc` has stored the address there.
            free(unsafe { memory.cast::<*mut u8>().sub(1).read() });
        }
    }
}

fn malloc(size: usize) -> *mut u8 {
    let mut call = Call::open(opcode::MALLOC);
    call.send([size as u64]);
    let [address] = call.recv();
    ptr::with_exposed_provenance_mut(address as usize)
}

fn free(memory: *mut u8) {
    let mut call = Call::open(opcode::FREE);
    call.send([memory.expose_provenance() as u64]);
}
