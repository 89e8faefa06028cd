//! Handlers of opcodes.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;

#[cfg(feature = "blocking")]
use super::blocking::{Blocking, BlockingCall, BlockingCalls};
use super::fault::Fault;
use super::port::Port;
use super::refusal::{Refusals, RefusedCall};
use super::session::Session;
use super::session_future::SessionFuture;
use crate::error::Error;
use crate::lanes::Lanes;
use crate::layout::PortIndex;
use crate::memory::SharedMemory;
use crate::packets::{PacketCopies, Packets};

type WarpHandler = Box<dyn Fn(&mut Warp<'_>) + Send + Sync>;
type NewSession = Box<dyn Fn() -> Box<dyn Session> + Send + Sync>;
type FaultHandler = Box<dyn Fn(&DroppedCall) + Send + Sync>;

/// A call whose port is no longer served.
///
/// ```
/// let mut handlers = gpurpc::server::Handlers::new();
/// handlers.on_fault(|call| eprintln!("port {}, opcode {:#x}: {}", call.port, call.opcode, call.fault));
/// ```
#[derive(Clone, Debug)]
pub struct DroppedCall {
    /// The port.
    pub port: PortIndex,
    /// Opcode of the call.
    pub opcode: u32,
    /// Reason for the drop.
    pub fault: Fault,
}

pub(crate) enum Handler {
    /// With the number of words of a packet that it reads.
    Warp(usize, WarpHandler),
    Session(NewSession),
}

/// The packets of a warp: private copies to read, and the packets themselves to write.
///
/// ```
/// let mut handlers = gpurpc::server::Handlers::new();
/// handlers.on_warp(0x7800_0009, 1, |warp| {
///     let sum = warp.lanes().map(|lane| warp.input().get(lane)[0]).sum();
///     for lane in warp.lanes() {
///         warp.set_word(lane, 0, sum);
///     }
/// })?;
/// # Ok::<(), gpurpc::Error>(())
/// ```
pub struct Warp<'c> {
    pub(crate) input: &'c PacketCopies,
    pub(crate) output: Packets<'c, SharedMemory>,
}

impl<'c> Warp<'c> {
    /// Copies of the packets that the client has sent.
    #[inline]
    pub fn input(&self) -> &PacketCopies {
        self.input
    }

    /// The participating lanes.
    #[inline]
    pub fn lanes(&self) -> Lanes {
        self.input.lanes()
    }

    /// Writes a word of the packet of a lane.
    ///
    /// # Panics
    ///
    /// If the layout has no such lane, or `word` is 8 or more.
    #[inline]
    pub fn set_word(&mut self, lane: u32, word: usize, value: u64) {
        self.output.set_word(lane, word, value);
    }

    /// The packets themselves.
    #[inline]
    pub fn output(&self) -> &Packets<'c, SharedMemory> {
        &self.output
    }
}

/// Handlers by opcode, of two kinds: [`Self::on_warp`] for calls of one packet of each lane, and `on_blocking` (feature
/// `blocking`) for calls of any sequence of packets.
///
/// ```
/// use gpurpc::Error;
/// use gpurpc::server::Handlers;
///
/// let mut handlers = Handlers::new();
/// handlers.on_warp(0x7800_0001, 1, |warp| {
///     for lane in warp.lanes() {
///         warp.set_word(lane, 0, warp.input().get(lane)[0].wrapping_add(1));
///     }
/// })?;
/// let again = handlers.on_warp(0x7800_0001, 1, |_| {});
/// assert_eq!(again.err(), Some(Error::DuplicateOpcode(0x7800_0001)));
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct Handlers {
    /// In ascending order of opcodes.
    by_opcode: Vec<(u32, Handler)>,
    /// For all other opcodes.
    fallback: Option<Handler>,
    on_fault: Option<FaultHandler>,
    pub(crate) refusals: Refusals,
}

impl Handlers {
    /// No handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a handler for calls of one packet per lane, which reads copies and writes the answer into the packets:
    /// the device cannot change what the handler has checked. The copies have only the first `words` words of a packet,
    /// 1 to 8; the others have arbitrary values. With 0 nothing is copied: a handler that trusts the device reads
    /// [`Warp::output`]. The handler must not block, as it would block all other calls.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateOpcode`] if the opcode has a handler.
    pub fn on_warp(
        &mut self,
        opcode: u32,
        words: usize,
        handler: impl Fn(&mut Warp<'_>) + Send + Sync + 'static,
    ) -> Result<&mut Self, Error> {
        self.insert(opcode, Handler::Warp(words, Box::new(handler)))
    }

    /// Registers an `async` handler for calls of any sequence of packets, internally: the services of libc are built on
    /// it, as they need no stacks, which not every host has. Public for tests under ThreadSanitizer, which does not know
    /// the stacks of blocking handlers.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateOpcode`] if the opcode has a handler.
    #[doc(hidden)]
    pub fn on_session<F>(
        &mut self,
        opcode: u32,
        handler: impl Fn(Port) -> F + Send + Sync + 'static,
    ) -> Result<&mut Self, Error>
    where
        F: Future<Output = Result<Port, Fault>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        self.on_call(opcode, move || SessionFuture::new(Arc::clone(&handler)))
    }

    /// Registers a function that creates the [`Session`] of a port.
    pub(crate) fn on_call<S: Session + 'static>(
        &mut self,
        opcode: u32,
        session: impl Fn() -> S + Send + Sync + 'static,
    ) -> Result<&mut Self, Error> {
        let new = Box::new(move || -> Box<dyn Session> { Box::new(session()) });
        self.insert(opcode, Handler::Session(new))
    }

    /// Registers a handler for calls of any sequence of packets, in which an operation has happened when its function
    /// returns: see [`BlockingCall`]. While a call waits, others are served. A handler that does not wait costs two
    /// switches of the stack.
    ///
    /// ```
    /// use gpurpc::server::Handlers;
    ///
    /// let mut handlers = Handlers::new();
    /// handlers.on_blocking(0x7800_000c, |call| {
    ///     let text = call.recv_n()?;
    ///     call.send_n(|lane| text.get(lane).unwrap_or_default())
    /// })?;
    /// # Ok::<(), gpurpc::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateOpcode`] if the opcode has a handler.
    #[cfg(feature = "blocking")]
    pub fn on_blocking(
        &mut self,
        opcode: u32,
        handler: impl Fn(&mut BlockingCall<'_>) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Result<&mut Self, Error> {
        let blocking = Arc::new(Blocking::new(handler));
        self.on_call(opcode, move || BlockingCalls::new(Arc::clone(&blocking)))
    }

    /// Sets the blocking handler of all opcodes without a handler. For the interface of LLVM 19, whose callbacks may be
    /// registered while the device is served; programs register opcodes by [`Self::on_blocking`].
    #[doc(hidden)]
    #[cfg(feature = "blocking")]
    pub fn on_other(
        &mut self,
        handler: impl Fn(&mut BlockingCall<'_>) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> &mut Self {
        let blocking = Arc::new(Blocking::new(handler));
        self.fallback = Some(Handler::Session(Box::new(move || {
            Box::new(BlockingCalls::new(Arc::clone(&blocking)))
        })));
        self
    }

    /// Sets the function that is called for each dropped call.
    pub fn on_fault(
        &mut self,
        handler: impl Fn(&DroppedCall) + Send + Sync + 'static,
    ) -> &mut Self {
        self.on_fault = Some(Box::new(handler));
        self
    }

    /// Sets the function that is called for each refused call: by a service of libc, or by `BlockingCall::refuse`. A device can
    /// cause any number of them.
    pub fn on_refusal(
        &mut self,
        handler: impl Fn(&RefusedCall) + Send + Sync + 'static,
    ) -> &mut Self {
        self.refusals = Refusals::new(handler);
        self
    }

    /// Index of the handler of an opcode.
    #[inline]
    pub(crate) fn index_of(&self, opcode: u32) -> Option<usize> {
        match self.position(opcode) {
            Ok(index) => Some(index),
            Err(_) => self.fallback.as_ref().map(|_| self.by_opcode.len()),
        }
    }

    /// Index of an opcode in `by_opcode`, or else the index at which it is inserted.
    #[inline]
    fn position(&self, opcode: u32) -> Result<usize, usize> {
        self.by_opcode
            .binary_search_by_key(&opcode, |(opcode, _)| *opcode)
    }

    /// The handler with an index.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&Handler> {
        match self.by_opcode.get(index) {
            Some((_, handler)) => Some(handler),
            None => self.fallback.as_ref(),
        }
    }

    pub(crate) fn report(&self, dropped: &DroppedCall) {
        if let Some(handler) = &self.on_fault {
            handler(dropped);
        }
    }

    /// Registers all handlers of another value.
    #[cfg(feature = "std")]
    pub(crate) fn extend(&mut self, other: Self) -> Result<(), Error> {
        for (opcode, handler) in other.by_opcode {
            self.insert(opcode, handler)?;
        }
        Ok(())
    }

    /// Registers handlers of another value, for opcodes without one.
    #[cfg(feature = "std")]
    pub(crate) fn extend_missing(&mut self, other: Self) {
        for (opcode, handler) in other.by_opcode {
            // An error is a handler that the opcode has.
            let _ = self.insert(opcode, handler);
        }
    }

    fn insert(&mut self, opcode: u32, handler: Handler) -> Result<&mut Self, Error> {
        match self.position(opcode) {
            Ok(_) => Err(Error::DuplicateOpcode(opcode)),
            Err(index) => {
                self.by_opcode.insert(index, (opcode, handler));
                Ok(self)
            }
        }
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.by_opcode.iter().map(|(opcode, _)| opcode))
            .finish()
    }
}
