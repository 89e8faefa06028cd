//! Memory that is released after its last use.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

use super::pages::Pages;
use super::shared::SharedMemory;
use crate::error::Error;
use crate::layout::Layout;

/// Memory of a device, with the function that releases it. Clones share the memory, which is released after
/// the last of them is dropped.
///
/// Calls of a device hold a clone, so the memory may outlive the device.
///
/// ```
/// use gpurpc::memory::{Memory, Region};
/// use gpurpc::{Layout, PortIndex};
///
/// let region = Region::zeroed(Layout::new(8, 32)?)?;
/// assert_eq!(region.word(PortIndex::new(7), 31, 0), 0);
/// # Ok::<(), gpurpc::Error>(())
/// ```
pub struct Region {
    /// Duplicate of the owner's, so that accesses need no indirection.
    memory: SharedMemory,
    owner: Arc<Owner>,
    /// Whether it is memory of this library.
    is_own: bool,
}

struct Owner {
    memory: SharedMemory,
    release: Option<Release>,
}

type Release = Box<dyn FnOnce(NonNull<u8>) + Send + Sync>;

impl Region {
    /// Memory, and the function that is called with its start address after the last use.
    pub fn new(
        memory: SharedMemory,
        release: impl FnOnce(NonNull<u8>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            memory: memory.duplicate(),
            owner: Arc::new(Owner {
                memory,
                release: Some(Box::new(release)),
            }),
            is_own: false,
        }
    }

    /// Zeroed memory of this process, for a client on the host or for a device that can access it: pages of
    /// the system, which no other code of the process shares.
    ///
    /// A [`Server`](crate::server::Server) keeps such memory until it is dropped itself, because the device may
    /// continue to write after it was removed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidMemory`] if the system does not provide as much memory.
    pub fn zeroed(layout: Layout) -> Result<Self, Error> {
        let size = layout.size();
        let pages = Pages::new(size).ok_or(Error::InvalidMemory(size))?;
        // SAFETY: the pages stay mapped until they are released below, and no other pointer refers to them.
        let memory = unsafe { SharedMemory::new(pages.start(), size, layout) }?;
        let mut region = Self::new(memory, move |_| drop(pages));
        region.is_own = true;
        Ok(region)
    }

    /// Whether the memory is that of [`Self::zeroed`].
    #[cfg(feature = "std")]
    pub(crate) fn is_own(&self) -> bool {
        self.is_own
    }
}

impl Clone for Region {
    fn clone(&self) -> Self {
        Self {
            memory: self.memory.duplicate(),
            owner: Arc::clone(&self.owner),
            is_own: self.is_own,
        }
    }
}

impl Deref for Region {
    type Target = SharedMemory;

    fn deref(&self) -> &SharedMemory {
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
    use crate::layout::PortIndex;
    use crate::memory::{Memory, Side};

    #[test]
    fn memory_is_given_back_with_its_last_user() -> Result<(), Error> {
        let zeroed = Region::zeroed(Layout::new(1, 1)?)?;
        let (release, released) = channel();
        let region = Region::new(zeroed.duplicate(), move |start| {
            drop(zeroed);
            release
                .send(start.as_ptr().addr())
                .expect("it is waited for");
        });
        let start = region.start().as_ptr().addr();
        let client = region.clone();
        drop(region);
        assert!(released.try_recv().is_err());
        client.set_outbox(Side::Client, PortIndex::new(0), 1);
        drop(client);
        assert_eq!(released.try_recv(), Ok(start));
        Ok(())
    }
}
