//! Nesting of `poll` and `serve` on a thread.

use std::cell::Cell;

thread_local! {
    /// Above 0 in callbacks. Right on the stacks of blocking callbacks too, which only their own thread continues, and
    /// which wait in no poll but the one that continues them.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Number of polls that this thread is in.
#[inline]
pub fn depth() -> usize {
    DEPTH.get()
}

/// Counts this thread as one that polls, until it is dropped.
pub struct Nested(());

impl Nested {
    #[inline]
    pub fn new() -> Self {
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        Self(())
    }
}

impl Drop for Nested {
    #[inline]
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}
