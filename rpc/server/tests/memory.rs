//! Memory that a program gives to a device.

use std::ptr::NonNull;

use gpurpc::memory::{Memory, SharedMemory};
use gpurpc::{Error, Generation, Layout};

#[repr(align(64))]
struct Aligned([u8; 512]);

/// The doorbell, with which the memory begins in LLVM 23, is aligned to 64.
#[test]
fn misaligned_memory_is_refused() -> Result<(), Error> {
    let mut memory = Aligned([0; 512]);
    let first = NonNull::from(&mut memory.0).cast::<u8>();
    for (generation, alignment) in Generation::ALL.into_iter().zip([8, 8, 64]) {
        let layout = Layout::with_generation(generation, 1, 1)?;
        for at in [0, 1, 4, 8, 16, 32, 48, 60, 64, 72, 128] {
            // SAFETY: the memory has as many bytes, and no other code uses it.
            let made = unsafe { SharedMemory::new(first.add(at), 256, layout) };
            let refused = (at % alignment != 0).then_some(Error::InvalidMemory(256));
            assert_eq!(made.err(), refused, "{generation} at {at}");
        }
    }
    Ok(())
}

#[test]
fn small_memory_is_refused() -> Result<(), Error> {
    let mut memory = Aligned([0; 512]);
    let start = NonNull::from(&mut memory.0).cast();
    for generation in Generation::ALL {
        let layout = Layout::with_generation(generation, 2, 1)?;
        let size = layout.size();
        // SAFETY: the memory has as many bytes, and no other code uses it.
        let made = unsafe { SharedMemory::new(start, size - 1, layout) };
        assert_eq!(made.err(), Some(Error::InvalidMemory(size - 1)));
        // SAFETY: as above.
        let made = unsafe { SharedMemory::new(start, size, layout) }?;
        assert_eq!(made.layout(), layout);
    }
    Ok(())
}
