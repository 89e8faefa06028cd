//! Stacks of blocking handlers.

use std::vec::Vec;

use corosensei::stack::{DefaultStack, Stack};

use super::fault::Fault;

/// Number of free stacks that keep their pages.
const WARM: usize = 16;
/// Number of free stacks that are kept. Those that are not warm take addresses only.
const FREE: usize = 1024;

/// Free stacks of a device, each with a guard page. The one that was used last is used next, because its pages are in
/// the processor's caches: calls that do not wait share a single stack.
pub(crate) struct Stacks {
    /// Size in bytes of each.
    size: usize,
    free: Vec<DefaultStack>,
    /// Stacks whose handlers ended without returning: other code may still refer to them.
    retired: Vec<DefaultStack>,
}

impl Stacks {
    pub fn new(size: usize) -> Self {
        Self {
            // A larger one cannot be mapped.
            size: size.min(usize::MAX / 4),
            free: Vec::new(),
            retired: Vec::new(),
        }
    }

    /// Removes a stack, or allocates one.
    #[inline]
    pub fn get(&mut self) -> Result<DefaultStack, Fault> {
        match self.free.pop() {
            Some(stack) => Ok(stack),
            None => self.allocate(),
        }
    }

    #[cold]
    fn allocate(&self) -> Result<DefaultStack, Fault> {
        let fault = Fault::OutOfMemory {
            size: self.size as u64,
            limit: self.size,
        };
        DefaultStack::new(self.size).map_err(|_| fault)
    }

    /// Returns a stack that no handler uses.
    #[inline]
    pub fn put(&mut self, stack: DefaultStack) {
        if self.free.len() >= WARM {
            // Pages that one burst of waiting calls has touched would stay as long as the device.
            release_pages(&stack);
        }
        if self.free.len() < FREE {
            self.free.push(stack);
        }
    }

    /// Keeps a stack as long as the device.
    pub fn retire(&mut self, stack: DefaultStack) {
        self.retired.push(stack);
    }
}

/// Returns the pages of a free stack to the system.
#[cold]
fn release_pages(stack: &DefaultStack) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};

        // The lowest page is the guard page, which has nothing to release.
        let (limit, base) = (stack.limit().get(), stack.base().get());
        let start = std::ptr::with_exposed_provenance_mut(limit);
        // SAFETY: the pages belong to the stack, which holds nothing. A failure leaves the pages.
        let _ = unsafe { madvise(start, base - limit, Advice::LinuxDontNeed) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stack.base();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_reused_and_bounded() -> Result<(), Fault> {
        let mut stacks = Stacks::new(64 << 10);
        let first = stacks.get()?;
        let base = first.base();
        // SAFETY: the stack is free and has more than 8 bytes.
        unsafe { std::ptr::with_exposed_provenance_mut::<u64>(base.get() - 8).write(7) };
        stacks.put(first);
        let all: Result<Vec<_>, _> = (0..FREE + 8).map(|_| stacks.get()).collect();
        let all = all?;
        assert_eq!(all[0].base(), base);
        for stack in all.into_iter().rev() {
            stacks.put(stack);
        }
        assert_eq!(stacks.free.len(), FREE);
        Ok(())
    }
}
