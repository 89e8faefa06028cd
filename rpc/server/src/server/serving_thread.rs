//! Threads that have started handlers on stacks of their own, and the handlers that wait there.
//!
//! A handler is continued only by the thread that has started it, because compiled code keeps addresses of thread-local
//! variables, such as that of `errno`, across calls of functions.

use std::boxed::Box;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use super::budget::Reservation;
use super::runners::Runner;

/// A handler that waits.
pub(crate) struct Waiting {
    /// The stack of the handler.
    pub runner: Runner,
    /// Owner of the function.
    pub _handler: Arc<dyn Handler>,
    pub reserved: Option<Box<Reservation>>,
}

/// Any type of handlers.
pub(crate) trait Handler: Send + Sync {}

impl<H: Send + Sync> Handler for H {}

impl Waiting {
    /// Runs the handler to its end, without a call.
    pub fn abandon(mut self) {
        // Idle or discarded afterwards: without a call, a handler cannot wait.
        self.runner.resume(None);
    }
}

/// A thread, for other threads.
#[derive(Debug, Default)]
pub(crate) struct ServingThread {
    abandoned: Mutex<Abandoned>,
}

/// Handlers that another thread has abandoned.
#[derive(Debug, Default)]
struct Abandoned {
    /// Whether the thread has ended, and all its handlers.
    thread_has_ended: bool,
    keys: Vec<usize>,
}

/// Number of handlers in [`Abandoned`] of all threads.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// Handlers of a thread, which it alone accesses.
struct Home {
    thread: Arc<ServingThread>,
    /// Handlers by key.
    waiting: RefCell<Vec<Option<Waiting>>>,
    free_keys: RefCell<Vec<usize>>,
}

thread_local! {
    static HOME: Home = Home {
        thread: Arc::default(),
        waiting: RefCell::default(),
        free_keys: RefCell::default(),
    };
}

/// A handler that waits on a thread, for the call that it serves. Abandons it if dropped.
pub(crate) struct Waits {
    thread: Arc<ServingThread>,
    key: Option<usize>,
}

impl Waits {
    /// Keeps a handler for this thread. Returns it if the thread ends.
    pub fn keep(waiting: Waiting) -> Result<Self, Waiting> {
        let mut waiting = Some(waiting);
        let kept = HOME.try_with(|home| home.keep(&mut waiting));
        match (kept, waiting) {
            (Err(_), Some(waiting)) => Err(waiting),
            (Ok(waits), _) => Ok(waits),
            (Err(_), None) => unreachable!("only `keep` takes the handler"),
        }
    }

    /// The thread that continues the handler.
    pub fn thread(&self) -> &Arc<ServingThread> {
        &self.thread
    }

    /// Removes the handler, on its thread.
    pub fn take(mut self) -> Option<Waiting> {
        let key = self.key.take()?;
        HOME.try_with(|home| home.take(key)).ok().flatten()
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        if self.thread.is_current() {
            if let Some(waiting) = HOME.try_with(|home| home.take(key)).ok().flatten() {
                waiting.abandon();
            }
            return;
        }
        let mut abandoned = self.thread.abandoned();
        if !abandoned.thread_has_ended {
            abandoned.keys.push(key);
            ABANDONED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl ServingThread {
    /// Whether this is the calling thread.
    pub fn is_current(self: &Arc<Self>) -> bool {
        let is_current = HOME.try_with(|home| Arc::ptr_eq(&home.thread, self));
        is_current.unwrap_or(false)
    }

    /// Whether the thread has ended, and with it all handlers that waited there.
    pub fn has_ended(&self) -> bool {
        self.abandoned().thread_has_ended
    }

    fn abandoned(&self) -> MutexGuard<'_, Abandoned> {
        let abandoned = self.abandoned.lock();
        abandoned.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Home {
    fn keep(&self, waiting: &mut Option<Waiting>) -> Waits {
        let mut slots = self.waiting.borrow_mut();
        let key = self.free_keys.borrow_mut().pop().unwrap_or_else(|| {
            slots.push(None);
            slots.len() - 1
        });
        slots[key] = waiting.take();
        Waits {
            thread: Arc::clone(&self.thread),
            key: Some(key),
        }
    }

    fn take(&self, key: usize) -> Option<Waiting> {
        let waiting = self.waiting.borrow_mut().get_mut(key)?.take()?;
        self.free_keys.borrow_mut().push(key);
        Some(waiting)
    }
}

impl Drop for Home {
    /// Runs all handlers that wait to their ends, each on its stack and this thread.
    fn drop(&mut self) {
        {
            let mut abandoned = self.thread.abandoned();
            abandoned.thread_has_ended = true;
            let keys = std::mem::take(&mut abandoned.keys);
            ABANDONED.fetch_sub(keys.len(), Ordering::Relaxed);
        }
        let waiting = std::mem::take(self.waiting.get_mut());
        for waiting in waiting.into_iter().flatten() {
            waiting.abandon();
        }
    }
}

/// Runs handlers of this thread to their ends whose calls other threads have abandoned.
#[inline]
pub(crate) fn end_abandoned() {
    // Relaxed: a thread that misses one ends it in a later poll.
    if ABANDONED.load(Ordering::Relaxed) > 0 {
        end_abandoned_here();
    }
}

#[cold]
fn end_abandoned_here() {
    while let Some(waiting) = take_abandoned() {
        waiting.abandon();
    }
}

/// Removes an abandoned handler of this thread.
fn take_abandoned() -> Option<Waiting> {
    HOME.try_with(|home| {
        let key = home.thread.abandoned().keys.pop()?;
        ABANDONED.fetch_sub(1, Ordering::Relaxed);
        home.take(key)
    })
    .ok()
    .flatten()
}
