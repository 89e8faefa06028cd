//! Handlers in which an operation has happened when its function returns.

use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::vec::Vec;

use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::budget::Reservation;
use super::catch_panic::catch_panic;
use super::fault::Fault;
use super::messages::{Messages, RecvN, SendN};
use super::serial_executor::{JobFuture, SerialExecutor};
use super::serving_thread::{Body, Pause, Resumed, Waiting, Waits};
use super::session::{OpenCall, Session, Step};
use crate::lanes::Lanes;
use crate::layout::PortIndex;
use crate::memory::SharedMemory;
use crate::packets::{PacketCopies, Packets};

/// An open call, for its handler, which waits in these functions until the client has acted. Meanwhile the thread
/// serves other calls.
///
/// The handler runs on a stack of its own ([`Limits::stack`](super::Limits::stack)), and always on the thread that has
/// started it; other threads leave its client's packets to that thread.
///
/// A function that returns a fault returns it again at each later call, and the handler is expected to return. The call
/// is then dropped, whatever the handler returns. If the device was removed, the port was reset, or the thread ends,
/// the fault is [`Fault::Abandoned`]: the handler runs to its end on its thread, in the next poll of that thread or
/// when the thread ends.
///
/// ```
/// use gpurpc::server::{BlockingCall, Handlers};
///
/// let mut handlers = Handlers::new();
/// handlers.on_blocking(0x7800_000a, |call: &mut BlockingCall<'_>| {
///     let mut sum = 0;
///     loop {
///         let number = call.recv(|packets| packets.word(0, 0))?;
///         if number == 0 {
///             break;
///         }
///         sum += number;
///     }
///     call.send(|packets| packets.set_word(0, 0, sum))
/// })?;
/// # Ok::<(), gpurpc::Error>(())
/// ```
pub struct BlockingCall<'s> {
    yielder: &'s Yielder<Resumed, Pause>,
    open: Resumed,
    opcode: u32,
    port: PortIndex,
    mask: u64,
    workers: &'s Workers,
    /// Whether the stack is reserved.
    is_reserved: bool,
    fault: Option<Fault>,
}

impl BlockingCall<'_> {
    /// Opcode of the call.
    pub fn opcode(&self) -> u32 {
        self.opcode
    }

    /// Index of the port.
    pub fn index(&self) -> PortIndex {
        self.port
    }

    /// Bit mask of the participating lanes.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// The participating lanes.
    pub fn lanes(&self) -> Lanes {
        Lanes::from_mask(self.mask)
    }

    /// Waits until `poll` returns a value. It is called at once, and then each time the client has answered or the
    /// waker of the call was used.
    ///
    /// ```
    /// use gpurpc::server::{BlockingCall, Fault, RecvN};
    ///
    /// /// Messages of at most one kilobyte.
    /// fn short_texts(call: &mut BlockingCall<'_>) -> Result<gpurpc::server::Messages, Fault> {
    ///     let mut receive = RecvN::default();
    ///     call.wait_for(|open| {
    ///         let texts = receive.poll(open)?;
    ///         let is_long = |text: &[u8]| text.len() > 1024;
    ///         match texts {
    ///             Some(texts) if open.lanes().any(|lane| texts.get(lane).is_some_and(is_long)) => {
    ///                 Err(Fault::Other("text too long"))
    ///             }
    ///             texts => Ok(texts),
    ///         }
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The fault of `poll`, an earlier one of this call, [`Fault::Abandoned`], or [`Fault::OutOfMemory`] if the calls
    /// of the device that wait have too many stacks.
    pub fn wait_for<T>(
        &mut self,
        mut poll: impl FnMut(&mut OpenCall<'_>) -> Result<Option<T>, Fault>,
    ) -> Result<T, Fault> {
        loop {
            if let Some(fault) = &self.fault {
                return Err(fault.clone());
            }
            let polled = match self.open {
                // SAFETY: `step` has passed a call that it does not use until this stack returns to it, and passes
                // another one when it continues.
                Some(open) => poll(unsafe { open.cast::<OpenCall<'_>>().as_mut() }),
                None => Err(Fault::Abandoned),
            };
            match polled {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => self.pause(),
                Err(fault) => self.fault = Some(fault),
            }
        }
    }

    /// Returns to the thread until it continues this handler.
    fn pause(&mut self) {
        let reserved = match self.reserve_stack() {
            Ok(reserved) => reserved,
            Err(fault) => {
                self.fault = Some(fault);
                return;
            }
        };
        self.open = self.yielder.suspend(Pause::Wait(reserved));
    }

    /// Reserves the stack from the budget of the device, before it waits for the first time: a device can open all of
    /// its ports.
    fn reserve_stack(&mut self) -> Result<Option<Reservation>, Fault> {
        let Some(open) = self.open.filter(|_| !self.is_reserved) else {
            return Ok(None);
        };
        // SAFETY: as in `wait_for`.
        let open = unsafe { open.cast::<OpenCall<'_>>().as_ref() };
        let reserved = open.budget().reserve(open.budget().limits.stack)?;
        self.is_reserved = true;
        Ok(Some(reserved))
    }

    /// Waits for packets and reads them. Buffer ownership returns to the client, with everything written into the
    /// packets, on the next receive or at the end of the call.
    ///
    /// # Errors
    ///
    /// As for [`Self::wait_for`].
    pub fn recv<T>(
        &mut self,
        read: impl FnOnce(&mut Packets<'_, SharedMemory>) -> T,
    ) -> Result<T, Fault> {
        let mut read = Some(read);
        self.wait_for(|open| {
            Ok(open
                .poll_recv(|packets| read.take().map(|read| read(packets)))
                .flatten())
        })
    }

    /// Waits for ownership of the packets, fills and sends them. Packets that were just received keep their contents.
    ///
    /// # Errors
    ///
    /// As for [`Self::wait_for`].
    pub fn send<T>(
        &mut self,
        fill: impl FnOnce(&mut Packets<'_, SharedMemory>) -> T,
    ) -> Result<T, Fault> {
        let mut fill = Some(fill);
        self.wait_for(|open| {
            Ok(open
                .poll_send(|packets| fill.take().map(|fill| fill(packets)))
                .flatten())
        })
    }

    /// Waits for packets, changes them by `work`, and sends them back as the answer.
    ///
    /// # Errors
    ///
    /// As for [`Self::wait_for`].
    pub fn recv_and_send<T>(
        &mut self,
        work: impl FnOnce(&mut Packets<'_, SharedMemory>) -> T,
    ) -> Result<T, Fault> {
        let value = self.recv(work)?;
        self.send(|_| {})?;
        Ok(value)
    }

    /// Like [`Self::recv`], with private copies of the packets, which are written back.
    ///
    /// # Errors
    ///
    /// As for [`Self::wait_for`].
    pub fn recv_copies<T>(
        &mut self,
        work: impl FnOnce(&mut PacketCopies) -> T,
    ) -> Result<T, Fault> {
        let mut work = Some(work);
        self.wait_for(|open| {
            let value = open.poll_recv_copies(|packets| work.take().map(|work| work(packets)));
            Ok(value.flatten())
        })
    }

    /// Like [`Self::send`], with private copies of the packets.
    ///
    /// # Errors
    ///
    /// As for [`Self::wait_for`].
    pub fn send_copies<T>(
        &mut self,
        fill: impl FnOnce(&mut PacketCopies) -> T,
    ) -> Result<T, Fault> {
        let mut fill = Some(fill);
        self.wait_for(|open| {
            let value = open.poll_send_copies(|packets| fill.take().map(|fill| fill(packets)));
            Ok(value.flatten())
        })
    }

    /// Waits for a message of each lane.
    ///
    /// # Errors
    ///
    /// As for [`Self::wait_for`]; [`Fault::MessageTooLarge`] or [`Fault::OutOfMemory`] if the messages exceed the
    /// [`Limits`](super::Limits).
    pub fn recv_n(&mut self) -> Result<Messages, Fault> {
        let mut receive = RecvN::default();
        self.wait_for(|open| receive.poll(open))
    }

    /// Sends a message to each lane.
    ///
    /// # Errors
    ///
    /// As for [`Self::wait_for`].
    pub fn send_n<'a>(&mut self, message: impl Fn(u32) -> &'a [u8]) -> Result<(), Fault> {
        let mut send = SendN::default();
        self.wait_for(|open| Ok(send.poll(open, &message).then_some(())))
    }

    /// Runs a function that may block in the system on a worker thread, and waits for its result. It also waits for
    /// the function if the call is abandoned: the function may use what the caller owns.
    ///
    /// ```
    /// use gpurpc::server::{Fault, Handlers};
    ///
    /// let mut handlers = Handlers::new();
    /// handlers.on_blocking(0x7800_000b, |call| {
    ///     call.recv(|_| {})?;
    ///     let text = call.run(|| std::fs::read("/etc/hostname"))?;
    ///     let text = text.map_err(|_| Fault::Other("no host name"))?;
    ///     call.send_n(|_| &text)
    /// })?;
    /// # Ok::<(), gpurpc::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Self::wait_for`]; [`Fault::HandlerFailed`] if the function panics or the thread cannot be started.
    pub fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let workers = self.workers;
        let worker = workers.get();
        let mut job = worker.spawn(work);
        let result = self.wait_for(|open| {
            match Pin::new(&mut job).poll(&mut Context::from_waker(open.waker())) {
                Poll::Ready(result) => result.map(Some),
                Poll::Pending => Ok(None),
            }
        });
        if matches!(&result, Err(fault) if *fault != Fault::HandlerFailed) {
            let _ = block_on(job);
        }
        workers.put(worker);
        result
    }

    /// Drops the call, unless the handler is abandoned already: all later operations return this fault.
    pub fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// Ends the handler without returning, for interfaces whose functions cannot report a fault. The call is dropped.
    /// The stack stays until the device is removed, because other code may refer to it; if the device was removed, it
    /// is released.
    ///
    /// # Safety
    ///
    /// Nothing on the stack is dropped, as by `longjmp` to the beginning of the handler. No code accesses the stack
    /// after the device was removed.
    pub unsafe fn discard(&mut self) -> ! {
        let fault = self.fault.clone().unwrap_or(Fault::HandlerFailed);
        self.yielder.suspend(Pause::Discard(fault));
        unreachable!("a discarded handler is not continued");
    }
}

/// Waits for a job on this thread.
fn block_on<T>(mut job: JobFuture<T>) -> Result<T, Fault> {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match Pin::new(&mut job).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

/// Maximum number of idle worker threads of a handler.
const MAX_IDLE: usize = 8;

/// Idle worker threads of a handler.
#[derive(Default)]
struct Workers(Mutex<Vec<SerialExecutor>>);

impl Workers {
    fn get(&self) -> SerialExecutor {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop().unwrap_or_default()
    }

    fn put(&self, worker: SerialExecutor) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(worker);
        }
    }
}

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
    /// Starts the handler on a stack.
    #[inline]
    fn start(&self, open: &mut OpenCall<'_>) -> Result<Body, Fault> {
        let stack = open.stacks.get()?;
        let (opcode, port, mask) = (open.opcode(), open.index(), open.mask());
        let blocking = Arc::as_ptr(&self.blocking);
        Ok(Coroutine::with_stack(stack, move |yielder, open| {
            // SAFETY: these calls, or `Waiting` if they are dropped, keep the handler while its stack is in use.
            let blocking = unsafe { &*blocking };
            let mut call = BlockingCall {
                yielder,
                open,
                opcode,
                port,
                mask,
                workers: &blocking.workers,
                is_reserved: false,
                fault: None,
            };
            // No panic may leave the stack.
            let result = catch_panic(|| (blocking.handler)(&mut call));
            match call.fault {
                Some(fault) => Err(fault),
                None => result.and_then(|result| result),
            }
        }))
    }

    /// Runs the handler until it waits or ends.
    #[inline]
    fn resume(
        &mut self,
        mut body: Body,
        reserved: Option<Reservation>,
        open: &mut OpenCall<'_>,
    ) -> Result<Step, Fault> {
        // The handler uses the call until `resume` returns.
        let resumed = body.resume(Some(NonNull::from(&mut *open).cast()));
        match resumed {
            CoroutineResult::Return(result) => {
                open.stacks.put(body.into_stack());
                result.map(|()| Step::Done)
            }
            CoroutineResult::Yield(Pause::Wait(more)) => {
                let waiting = Waiting {
                    body,
                    _handler: Arc::clone(&self.blocking) as _,
                    reserved: more.or(reserved),
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
            CoroutineResult::Yield(Pause::Discard(fault)) => {
                // SAFETY: the caller of `discard` has promised that nothing on the stack is needed.
                unsafe { body.force_reset() };
                open.stacks.retire(body.into_stack());
                Err(fault)
            }
        }
    }
}

impl<H> Session for BlockingCalls<H>
where
    H: Fn(&mut BlockingCall<'_>) -> Result<(), Fault> + Send + Sync + 'static,
{
    fn step(&mut self, open: &mut OpenCall<'_>) -> Result<Step, Fault> {
        let Some(waits) = self.waits.take() else {
            let body = self.start(open)?;
            return self.resume(body, None, open);
        };
        if waits.thread().is_current() {
            let waiting = waits.take().ok_or(Fault::Abandoned)?;
            return self.resume(waiting.body, waiting.reserved, open);
        }
        if waits.thread().has_ended() {
            return Err(Fault::Abandoned);
        }
        *open.left_to = Some(Arc::clone(waits.thread()));
        self.waits = Some(waits);
        Ok(Step::Pending)
    }

    fn end(&mut self) {}
}
