//! Memory that is given back when nobody uses it any more.

use alloc::alloc::{alloc_zeroed, dealloc, handle_alloc_error};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

use super::Shared;
use crate::{Error, Layout};

/// Memory of a device, and what gives it back. A clone of it is the same memory, which is there until the last
/// one is dropped.
///
/// A device keeps it for as long as one of its calls is there, which may be longer than the device.
pub struct Region {
    /// Here too, as each access is by it.
    memory: Shared,
    owner: Arc<Owner>,
}

struct Owner {
    memory: Shared,
    release: Option<Release>,
}

type Release = Box<dyn FnOnce(NonNull<u8>) + Send + Sync>;

impl Region {
    /// Memory, and what is to be done once nobody uses it: it is told where the memory begins.
    pub fn new(memory: Shared, release: impl FnOnce(NonNull<u8>) + Send + Sync + 'static) -> Self {
        Self {
            memory: memory.again(),
            owner: Arc::new(Owner {
                memory,
                release: Some(Box::new(release)),
            }),
        }
    }

    /// Memory of the process, all zero, for a client on the host, or for a device that is told of it.
    ///
    /// # Errors
    ///
    /// None that a layout can cause.
    pub fn zeroed(layout: Layout) -> Result<Self, Error> {
        let size = layout.size();
        // Of a cache line's alignment, so that nothing else shares a line with mailboxes.
        let of = core::alloc::Layout::from_size_align(size, 64).map_err(|_| Error::Memory(size))?;
        // SAFETY: no layout is empty.
        let start = unsafe { alloc_zeroed(of) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(of)
        };
        // SAFETY: the memory is there until it is released below, and nothing else knows of it.
        let memory = unsafe { Shared::new(start, size, layout) }?;
        // SAFETY: allocated above, by the same layout; nobody uses it any more.
        let release = move |start: NonNull<u8>| unsafe { dealloc(start.as_ptr(), of) };
        Ok(Self::new(memory, release))
    }
}

impl Clone for Region {
    fn clone(&self) -> Self {
        Self {
            memory: self.memory.again(),
            owner: Arc::clone(&self.owner),
        }
    }
}

impl Deref for Region {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.memory
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release(self.memory.start());
        }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.fmt(f)
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::memory::{Memory, Side};

    #[test]
    fn memory_is_given_back_with_its_last_user() -> Result<(), Error> {
        let zeroed = Region::zeroed(Layout::new(1, 1)?)?;
        let (release, released) = channel();
        let region = Region::new(zeroed.again(), move |start| {
            drop(zeroed);
            release
                .send(start.as_ptr().addr())
                .expect("it is waited for");
        });
        let start = region.start().as_ptr().addr();
        let client = region.clone();
        drop(region);
        assert!(released.try_recv().is_err());
        client.set_outbox(Side::Client, 0, 1);
        drop(client);
        assert_eq!(released.try_recv(), Ok(start));
        Ok(())
    }
}
