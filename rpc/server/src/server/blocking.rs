//! Handlers in which an operation has happened when its function returns.

mod calls;

use std::boxed::Box;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::budget::Reservation;
use super::fault::Fault;
use super::messages::{Messages, RecvN, SendN};
use super::refusal::RefusedCall;
use super::runners::{Pause, Resumed, Suspender};
use super::session::OpenCall;
use super::workers::{Workers, block_on};
use crate::lanes::Lanes;
use crate::layout::PortIndex;
use crate::memory::SharedMemory;
use crate::packets::{PacketCopies, Packets};
pub(crate) use calls::{Blocking, BlockingCalls};

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
    suspender: &'s Suspender,
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
    #[inline]
    pub fn wait_for<T>(
        &mut self,
        mut poll: impl FnMut(&mut OpenCall<'_>) -> Result<Option<T>, Fault>,
    ) -> Result<T, Fault> {
        loop {
            let Some(open) = self.open else {
                return Err(self.last_fault());
            };
            // SAFETY: `step` has passed a call that it does not use until this stack returns to it, and passes another
            // one when it continues.
            match poll(unsafe { open.cast::<OpenCall<'_>>().as_mut() }) {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => self.pause(),
                Err(fault) => self.fail(fault),
            }
        }
    }

    /// Fault of a call that is no longer open.
    #[cold]
    fn last_fault(&mut self) -> Fault {
        self.fault.get_or_insert(Fault::Abandoned).clone()
    }

    /// Returns to the thread until it continues this handler.
    #[cold]
    fn pause(&mut self) {
        match self.reserve_stack() {
            Ok(reserved) => self.open = self.suspender.suspend(Pause::Wait(reserved)),
            Err(fault) => self.fail(fault),
        }
    }

    /// Reserves the stack from the budget of the device, before it waits for the first time: a device can open all of
    /// its ports.
    fn reserve_stack(&mut self) -> Result<Option<Box<Reservation>>, Fault> {
        let Some(open) = self.open.filter(|_| !self.is_reserved) else {
            return Ok(None);
        };
        // SAFETY: as in `wait_for`.
        let open = unsafe { open.cast::<OpenCall<'_>>().as_ref() };
        let reserved = open.budget().reserve(open.budget().limits.stack)?;
        self.is_reserved = true;
        Ok(Some(Box::new(reserved)))
    }

    /// Waits for packets and reads them. Buffer ownership returns to the client, with everything written into the
    /// packets, on the next receive or at the end of the call.
    ///
    /// # Errors
    ///
    /// As for [`Self::wait_for`].
    #[inline]
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
    #[inline]
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
    #[inline]
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
    #[inline]
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
        if self.open.is_none() {
            return Err(self.last_fault());
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

    /// Reports to [`Handlers::on_refusal`](super::Handlers::on_refusal) that the host refuses the request. The handler then
    /// answers with an error, so that the client continues; a handler that cannot returns the fault instead, and the call
    /// is dropped.
    ///
    /// ```
    /// use gpurpc::server::{Fault, Handlers};
    ///
    /// let mut handlers = Handlers::new();
    /// handlers.on_refusal(|call| eprintln!("port {}: {}", call.port, call.reason));
    /// handlers.on_blocking(0x7800_0007, |call| {
    ///     let largest = call.recv(|packets| packets.lanes().map(|lane| packets.word(lane, 0)).max())?;
    ///     let is_refused = largest > Some(1000);
    ///     if is_refused {
    ///         call.refuse(Fault::Other("more than 1000"));
    ///     }
    ///     let answer = if is_refused { u64::MAX } else { 0 };
    ///     call.send(|packets| packets.lanes().for_each(|lane| packets.set_word(lane, 0, answer)))
    /// })?;
    /// # Ok::<(), gpurpc::Error>(())
    /// ```
    pub fn refuse(&self, reason: Fault) {
        let Some(open) = self.open else { return };
        // SAFETY: as in `wait_for`.
        let open = unsafe { open.cast::<OpenCall<'_>>().as_ref() };
        open.device.refusals.report(&RefusedCall {
            port: self.port,
            opcode: self.opcode,
            reason,
        });
    }

    /// Drops the call when the handler returns: all later operations return this fault, or an earlier one.
    #[cold]
    pub fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
        self.open = None;
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
        self.suspender.suspend(Pause::Discard(Box::new(fault)));
        unreachable!("a discarded handler is not continued");
    }
}
