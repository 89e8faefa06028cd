//! Sleep and wake-up of threads that serve.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::time::Duration;

/// Functions of a program by which a serving thread waits, for example for the interrupt of a doorbell.
///
/// A server calls them instead of sleeping, while no call is open.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::sync::mpsc::{Receiver, Sender, channel};
/// use std::sync::Mutex;
/// use std::time::Duration;
///
/// use gpurpc::server::{IdlePolicy, Server, WaitHooks};
///
/// /// A counter of open calls, and the interrupts of a driver as a channel.
/// struct Interrupts {
///     open_calls: &'static AtomicU64,
///     sender: Sender<()>,
///     receiver: Mutex<Receiver<()>>,
/// }
///
/// impl WaitHooks for Interrupts {
///     fn wait(&self, timeout: Duration) -> bool {
///         self.open_calls.load(Ordering::Relaxed) != 0
///             || self.receiver.lock().unwrap().recv_timeout(timeout).is_ok()
///     }
///
///     fn wake(&self) {
///         let _ = self.sender.send(());
///     }
/// }
///
/// static OPEN_CALLS: AtomicU64 = AtomicU64::new(0);
/// let (sender, receiver) = channel();
/// let hooks = Interrupts { open_calls: &OPEN_CALLS, sender, receiver: Mutex::new(receiver) };
/// let server = Server::new(IdlePolicy::default()).with_wait_hooks(hooks);
/// ```
pub trait WaitHooks: Send + Sync {
    /// Blocks until a doorbell has rung, [`wake`](Self::wake) was called, or `timeout` has elapsed. Returns
    /// whether it was one of the first two. The condition is the counter of the doorbell, not its interrupt: a
    /// counter other than 0 ends the wait at once. Only one thread of a server waits at a time.
    fn wait(&self, timeout: Duration) -> bool;

    /// Ends the current wait, or else the next one. Any thread calls this, any number of times.
    fn wake(&self);
}

/// Number of wake-ups so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Epoch(u64);

/// Reason for the end of a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Awake {
    /// [`Sleepers::wake`] was called.
    Woken,
    /// The wait hook has returned early.
    Rang,
    TimedOut,
}

/// Threads that sleep until they are woken, without losing a wake-up between their last poll and the sleep.
#[derive(Default)]
pub(super) struct Sleepers {
    epoch: AtomicU64,
    /// Number of threads that sleep or are about to.
    sleeping: AtomicUsize,
    /// Whether one of them uses the wait hook.
    in_hook: Mutex<bool>,
    woken: Condvar,
    hooks: Option<Box<dyn WaitHooks>>,
}

impl Sleepers {
    pub fn with_hooks(hooks: impl WaitHooks + 'static) -> Self {
        Self {
            hooks: Some(Box::new(hooks)),
            ..Self::default()
        }
    }

    pub fn has_hooks(&self) -> bool {
        self.hooks.is_some()
    }

    /// To be read before the poll that precedes [`Self::sleep`].
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::SeqCst))
    }

    /// Wakes all threads that have read the epoch before.
    pub fn wake(&self) {
        // Both sequentially consistent, as the accesses of sleeping threads: either this thread sees that one
        // sleeps, or that one sees the new epoch.
        self.epoch.fetch_add(1, Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) == 0 {
            return;
        }
        let in_hook = *self.lock();
        self.woken.notify_all();
        if let (true, Some(hooks)) = (in_hook, &self.hooks) {
            hooks.wake();
        }
    }

    /// Sleeps until a wake-up after `since`, or until the timeout.
    pub fn sleep(&self, since: Epoch, timeout: Option<Duration>) -> Awake {
        let _sleeping = Sleeping::new(&self.sleeping);
        let is_asleep = |_: &mut bool| self.epoch() == since;
        let guard = self.lock();
        match timeout {
            None => drop(self.woken.wait_while(guard, is_asleep)),
            Some(timeout) => drop(self.woken.wait_timeout_while(guard, timeout, is_asleep)),
        }
        if self.epoch() == since {
            Awake::TimedOut
        } else {
            Awake::Woken
        }
    }

    /// Waits with the hook until a ring, a wake-up after `since`, or the timeout. While another thread does, this one
    /// sleeps, and is woken by it.
    pub fn wait(&self, since: Epoch, timeout: Duration) -> Awake {
        let _sleeping = Sleeping::new(&self.sleeping);
        let mut in_hook = self.lock();
        let Some(hooks) = self.hooks.as_ref().filter(|_| !*in_hook) else {
            drop(in_hook);
            return self.sleep(since, Some(timeout));
        };
        if self.epoch() != since {
            return Awake::Woken;
        }
        *in_hook = true;
        drop(in_hook);
        let in_hook = InHook(self);
        let rang = hooks.wait(timeout);
        drop(in_hook);
        if self.epoch() != since {
            return Awake::Woken;
        }
        if !rang {
            return Awake::TimedOut;
        }
        self.epoch.fetch_add(1, Ordering::SeqCst);
        // Locked once, so that no thread is between reading the epoch and sleeping.
        drop(self.lock());
        self.woken.notify_all();
        Awake::Rang
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.in_hook.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For the wakers of calls that wait for something other than their client.
impl Wake for Sleepers {
    fn wake(self: Arc<Self>) {
        Self::wake(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Self::wake(self);
    }
}

/// Counts a thread that sleeps.
struct Sleeping<'s>(&'s AtomicUsize);

impl<'s> Sleeping<'s> {
    fn new(sleeping: &'s AtomicUsize) -> Self {
        sleeping.fetch_add(1, Ordering::SeqCst);
        Self(sleeping)
    }
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The thread that uses the wait hook, also if the hook panics.
struct InHook<'s>(&'s Sleepers);

impl Drop for InHook<'_> {
    fn drop(&mut self) {
        *self.0.lock() = false;
    }
}
