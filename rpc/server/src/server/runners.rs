//! Coroutines that run handlers, one after another.

use std::boxed::Box;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::vec::Vec;

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::budget::Reservation;
use super::fault::Fault;

/// Number of idle coroutines that are kept.
const WARM: usize = 16;
/// Number of other free stacks that are kept. They take addresses only.
const COLD: usize = 1024;

/// Size in bytes of the memory without access below a stack: compilers of C do not probe the stack by default, so that a
/// function with a large array skips a single page.
const GUARD: usize = 64 << 10;

/// Handler of a call, and the call.
pub(crate) struct Job {
    /// Runs the handler, and returns the fault of the call.
    pub run: unsafe fn(&Job, &Suspender) -> Option<Box<Fault>>,
    pub handler: NonNull<()>,
    pub open: NonNull<()>,
}

/// Argument of a coroutine that continues: a [`Job`] for an idle one, else the open call of its handler, if there is
/// still one.
pub(crate) type Resumed = Option<NonNull<()>>;

/// Suspends a coroutine.
pub(crate) type Suspender = Yielder<Resumed, Pause>;

/// Reason why a coroutine returns to the thread that serves.
pub(crate) enum Pause {
    /// Idle, with the fault of the call that has ended.
    Idle(Option<Box<Fault>>),
    /// The handler waits. The first time it passes the reservation of its stack.
    Wait(Option<Box<Reservation>>),
    /// The handler ends without returning, because its interface has no errors.
    Discard(Box<Fault>),
}

/// A coroutine on a stack with a guard.
pub(crate) struct Runner(Box<Coroutine<Resumed, Pause, (), DefaultStack>>);

// SAFETY: an idle coroutine refers to no thread, and one with a handler is continued by a single thread only.
unsafe impl Send for Runner {}

impl Runner {
    #[cold]
    fn new(stack: DefaultStack) -> Self {
        Self(Box::new(Coroutine::with_stack(stack, run_jobs)))
    }

    /// Continues the coroutine until it pauses.
    #[inline]
    pub fn resume(&mut self, resumed: Resumed) -> Pause {
        match self.0.resume(resumed) {
            CoroutineResult::Yield(pause) => pause,
            CoroutineResult::Return(()) => unreachable!("the loop has no end"),
        }
    }

    /// The stack, without what is on it.
    fn into_stack(self) -> DefaultStack {
        let runner = ManuallyDrop::new(self);
        // SAFETY: the other one is neither used nor dropped.
        let mut coroutine = unsafe { std::ptr::read(&raw const runner.0) };
        // SAFETY: the frames of an idle coroutine own nothing.
        unsafe { coroutine.force_reset() }
        coroutine.into_stack()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // SAFETY: the frames of an idle coroutine own nothing; a handler that is left here has promised that nothing on
        // its stack is needed.
        unsafe { self.0.force_reset() }
    }
}

/// Free coroutines of a device. The one that was used last is used next, because its pages are in the processor's
/// caches: calls that do not wait share a single one.
pub(crate) struct Runners {
    /// Size in bytes of each stack.
    stack_size: usize,
    warm: Vec<Runner>,
    /// Stacks without pages.
    cold: Vec<DefaultStack>,
    /// Coroutines whose handlers ended without returning: other code may still refer to their stacks.
    retired: Vec<Runner>,
}

impl Runners {
    pub fn new(stack_size: usize) -> Self {
        Self {
            // A larger one cannot be mapped.
            stack_size: stack_size.min(usize::MAX / 4),
            warm: Vec::new(),
            cold: Vec::new(),
            retired: Vec::new(),
        }
    }

    /// Removes a coroutine, or creates one.
    #[inline]
    pub fn get(&mut self) -> Result<Runner, Fault> {
        match self.warm.pop() {
            Some(runner) => Ok(runner),
            None => self.create(),
        }
    }

    #[cold]
    fn create(&mut self) -> Result<Runner, Fault> {
        let stack = match self.cold.pop() {
            Some(stack) => stack,
            None => allocate(self.stack_size).map_err(|_| Fault::OutOfMemory {
                size: self.stack_size as u64,
                limit: self.stack_size,
            })?,
        };
        Ok(Runner::new(stack))
    }

    /// Returns an idle coroutine.
    #[inline]
    pub fn put(&mut self, runner: Runner) {
        if self.warm.len() < WARM {
            self.warm.push(runner);
        } else {
            self.put_cold(runner);
        }
    }

    /// Keeps the stack of a coroutine without its pages: those that one burst of waiting calls has touched would stay as
    /// long as the device.
    #[cold]
    fn put_cold(&mut self, runner: Runner) {
        if self.cold.len() < COLD {
            let stack = runner.into_stack();
            release_pages(&stack);
            self.cold.push(stack);
        }
    }

    /// Keeps a coroutine as long as the device.
    pub fn retire(&mut self, runner: Runner) {
        self.retired.push(runner);
    }
}

/// Allocates a stack.
fn allocate(size: usize) -> std::io::Result<DefaultStack> {
    let stack = DefaultStack::new(size + GUARD)?;
    #[cfg(unix)]
    {
        use rustix::mm::{MprotectFlags, mprotect};

        let start = std::ptr::with_exposed_provenance_mut(stack.limit().get());
        // SAFETY: the pages belong to the stack, which has no contents yet.
        unsafe { mprotect(start, GUARD, MprotectFlags::empty()) }?;
    }
    Ok(stack)
}

/// Returns the pages of a free stack to the system.
fn release_pages(stack: &DefaultStack) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};

        // The guard has nothing to release.
        let (limit, base) = (stack.limit().get(), stack.base().get());
        let start = std::ptr::with_exposed_provenance_mut(limit);
        // SAFETY: the pages belong to the stack, which holds nothing. A failure leaves the pages.
        let _ = unsafe { madvise(start, base - limit, Advice::LinuxDontNeed) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stack.base();
}

/// Runs a handler for each job. Uses no thread-local variable: another thread may continue an idle coroutine.
fn run_jobs(suspender: &Suspender, mut resumed: Resumed) {
    loop {
        let fault = resumed.and_then(|job| {
            // SAFETY: an idle coroutine is continued with a job, which stays until the next suspension.
            let job = unsafe { job.cast::<Job>().as_ref() };
            // SAFETY: as `run` requires, the handler stays until the coroutine is idle again.
            unsafe { (job.run)(job, suspender) }
        });
        resumed = suspender.suspend(Pause::Idle(fault));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Range and access of a line of `/proc/self/maps`.
    #[cfg(target_os = "linux")]
    fn mapping(line: &str) -> Option<(std::ops::Range<usize>, &str)> {
        let (range, access) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        Some((start..end, access))
    }

    /// The pages below a stack have no access.
    #[cfg(target_os = "linux")]
    #[test]
    fn stacks_have_a_guard() -> std::io::Result<()> {
        let stack = allocate(64 << 10)?;
        let (limit, base) = (stack.limit().get(), stack.base().get());
        // The file is no snapshot: other tests map memory while it is read.
        for _ in 0..100 {
            let maps = std::fs::read_to_string("/proc/self/maps")?;
            // The kernel need not merge ranges that two calls have protected.
            let mut guard_end = limit;
            for (range, access) in maps.lines().filter_map(mapping) {
                if range.contains(&guard_end) && access.starts_with("---p") {
                    guard_end = range.end;
                }
            }
            if guard_end - limit >= GUARD && base - guard_end >= 64 << 10 {
                return Ok(());
            }
        }
        panic!("no guard at {limit:#x}");
    }

    /// Stores a number on the stack, and reports its address.
    unsafe fn run(job: &Job, _: &Suspender) -> Option<Box<Fault>> {
        let mut number = 7_u64;
        let address = std::hint::black_box(&raw mut number).addr();
        // SAFETY: as created below.
        unsafe { job.handler.cast::<usize>().write(address) };
        None
    }

    /// The number of runners that are in use at the same time is the number of stacks.
    #[test]
    fn runners_are_reused_and_bounded() -> Result<(), Fault> {
        let mut runners = Runners::new(64 << 10);
        let (mut address, mut addresses) = (0_usize, Vec::new());
        let job = Job {
            run,
            handler: NonNull::from(&mut address).cast(),
            open: NonNull::dangling(),
        };
        let use_once = |runner: &mut Runner| {
            let pause = runner.resume(Some(NonNull::from(&job).cast()));
            assert!(matches!(pause, Pause::Idle(None)));
            // SAFETY: still there.
            unsafe { job.handler.cast::<usize>().read() }
        };
        for _ in 0..3 {
            let mut runner = runners.get()?;
            addresses.push(use_once(&mut runner));
            runners.put(runner);
        }
        assert_eq!(addresses, [addresses[0]; 3]);
        // More than are kept, first on new stacks, then on those without pages.
        for _ in 0..2 {
            let mut in_use = Vec::new();
            for _ in 0..WARM + COLD + 8 {
                let mut runner = runners.get()?;
                assert_ne!(use_once(&mut runner), 0);
                in_use.push(runner);
            }
            assert_eq!((runners.warm.len(), runners.cold.len()), (0, 0));
            in_use.into_iter().for_each(|runner| runners.put(runner));
            assert_eq!((runners.warm.len(), runners.cold.len()), (WARM, COLD));
        }
        Ok(())
    }
}
