//! Blocking handlers, and their calls on ports.

use super::BlockingCall;
use std::boxed::Box;
use std::ptr::NonNull;
use std::sync::Arc;

use super::super::budget::Reservation;
use super::super::catch_panic::catch_panic;
use super::super::fault::Fault;
use super::super::runners::{Job, Pause, Runner, Suspender};
use super::super::serving_thread::{Waiting, Waits};
use super::super::session::{OpenCall, Session, Step};
use super::super::workers::Workers;

/// A blocking handler of all devices that share it.
pub(crate) struct Blocking<H> {
    handler: H,
    workers: Workers,
}

impl<H> Blocking<H> {
    pub fn new(handler: H) -> Self {
        Self {
            handler,
            workers: Workers::default(),
        }
    }
}

/// Calls of a blocking handler on a port.
pub(crate) struct BlockingCalls<H> {
    blocking: Arc<Blocking<H>>,
    /// The handler, if it waits.
    waits: Option<Waits>,
}

impl<H> BlockingCalls<H> {
    pub fn new(blocking: Arc<Blocking<H>>) -> Self {
        Self {
            blocking,
            waits: None,
        }
    }
}

impl<H> BlockingCalls<H>
where
    H: Fn(&mut BlockingCall<'_>) -> Result<(), Fault> + Send + Sync + 'static,
{
    /// Runs the handler on the stack of a coroutine.
    ///
    /// # Safety
    ///
    /// The job is one of [`Self::step`]. Its call stays until the coroutine pauses, the handler until it is idle.
    #[inline]
    unsafe fn run(job: &Job, suspender: &Suspender) -> Option<Box<Fault>> {
        // SAFETY: guaranteed by the caller.
        let (blocking, open) = unsafe {
            let blocking = job.handler.cast::<Blocking<H>>().as_ref();
            (blocking, job.open.cast::<OpenCall<'_>>().as_ref())
        };
        let mut call = BlockingCall {
            suspender,
            open: Some(job.open),
            opcode: open.opcode(),
            port: open.index(),
            mask: open.mask(),
            workers: &blocking.workers,
            is_reserved: false,
            fault: None,
        };
        // No panic may leave the stack.
        let caught = catch_panic(|| {
            if let Err(fault) = (blocking.handler)(&mut call) {
                call.fail(fault);
            }
        });
        if let Err(fault) = caught {
            call.fail(fault);
        }
        call.fault.map(Box::new)
    }

    /// Runs the handler until it waits or ends.
    #[inline]
    fn resume(
        &mut self,
        mut runner: Runner,
        resumed: NonNull<()>,
        reserved: Option<Box<Reservation>>,
        open: NonNull<()>,
    ) -> Result<Step, Fault> {
        let pause = runner.resume(Some(resumed));
        // SAFETY: the call of `step`, which the handler uses no longer.
        let open = unsafe { open.cast::<OpenCall<'_>>().as_mut() };
        match pause {
            Pause::Idle(fault) => {
                open.runners.put(runner);
                fault.map_or(Ok(Step::Done), |fault| Err(*fault))
            }
            pause => self.pause(runner, pause, reserved, open),
        }
    }

    /// Keeps a handler that waits.
    #[cold]
    fn pause(
        &mut self,
        runner: Runner,
        pause: Pause,
        reserved: Option<Box<Reservation>>,
        open: &mut OpenCall<'_>,
    ) -> Result<Step, Fault> {
        let stack_reservation = match pause {
            Pause::Wait(reservation) => reservation,
            Pause::Idle(_) => None,
            Pause::Discard(fault) => {
                open.runners.retire(runner);
                return Err(*fault);
            }
        };
        let waiting = Waiting {
            runner,
            _handler: Arc::clone(&self.blocking) as _,
            reserved: stack_reservation.or(reserved),
        };
        match Waits::keep(waiting) {
            Ok(waits) => {
                self.waits = Some(waits);
                Ok(Step::Pending)
            }
            Err(waiting) => {
                waiting.abandon();
                Err(Fault::Abandoned)
            }
        }
    }

    /// Continues a handler that waits.
    #[cold]
    fn step_on(&mut self, open: &mut OpenCall<'_>) -> Result<Step, Fault> {
        let waits = self.waits.take().ok_or(Fault::HandlerFailed)?;
        if waits.thread().is_current() {
            let waiting = waits.take().ok_or(Fault::Abandoned)?;
            let open = NonNull::from(open).cast();
            return self.resume(waiting.runner, open, waiting.reserved, open);
        }
        if waits.thread().has_ended() {
            return Err(Fault::Abandoned);
        }
        *open.left_to = Some(Arc::clone(waits.thread()));
        self.waits = Some(waits);
        Ok(Step::Pending)
    }
}

impl<H> Session for BlockingCalls<H>
where
    H: Fn(&mut BlockingCall<'_>) -> Result<(), Fault> + Send + Sync + 'static,
{
    fn step(&mut self, open: &mut OpenCall<'_>) -> Result<Step, Fault> {
        if self.waits.is_some() {
            return self.step_on(open);
        }
        let runner = open.runners.get()?;
        let job = Job {
            run: Self::run,
            handler: NonNull::from(&*self.blocking).cast(),
            open: NonNull::from(open).cast(),
        };
        self.resume(runner, NonNull::from(&job).cast(), None, job.open)
    }

    fn end(&mut self) {}
}
