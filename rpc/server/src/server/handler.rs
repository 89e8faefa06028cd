//! Handlers of opcodes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::fmt;
use core::future::Future;
use core::pin::Pin;

use super::fault::Fault;
use super::port::Port;
use super::refusal::{Refusals, RefusedCall};
use crate::error::Error;
use crate::layout::PortIndex;
use crate::memory::SharedMemory;
use crate::packets::Packets;

/// Future of an open call. It returns the port when the call has completed.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<Port, Fault>> + Send>>;

type RequestHandler = Box<dyn Fn(&mut Packets<'_, SharedMemory>) + Send + Sync>;
type SessionHandler = Box<dyn Fn(Port) -> HandlerFuture + Send + Sync>;
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
    Request(RequestHandler),
    Session(SessionHandler),
}

/// Handlers by opcode.
///
/// ```
/// use gpurpc::Error;
/// use gpurpc::server::Handlers;
///
/// let mut handlers = Handlers::new();
/// handlers.on_request(0x7800_0001, |packets| {
///     for lane in packets.lanes() {
///         packets.set_word(lane, 0, packets.word(lane, 0).wrapping_add(1));
///     }
/// })?;
/// let again = handlers.on_request(0x7800_0001, |_| {});
/// assert_eq!(again.err(), Some(Error::DuplicateOpcode(0x7800_0001)));
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct Handlers {
    by_opcode: BTreeMap<u32, Handler>,
    on_fault: Option<FaultHandler>,
    pub(crate) refusals: Refusals,
}

impl Handlers {
    /// No handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a handler for calls of one packet per lane, which the handler turns into the answer in
    /// place. The handler must not block, as it would block all other calls.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateOpcode`] if the opcode has a handler.
    pub fn on_request(
        &mut self,
        opcode: u32,
        handler: impl Fn(&mut Packets<'_, SharedMemory>) + Send + Sync + 'static,
    ) -> Result<&mut Self, Error> {
        self.insert(opcode, Handler::Request(Box::new(handler)))
    }

    /// Registers a handler for calls of any sequence of packets. While a call waits, others are served.
    ///
    /// ```
    /// use gpurpc::server::Handlers;
    ///
    /// # fn main() -> Result<(), gpurpc::Error> {
    /// let mut handlers = Handlers::new();
    /// handlers.on_session(0x6700_0001, |mut port| async move {
    ///     let texts = port.recv_n().await?;
    ///     port.send(|packets| {
    ///         for lane in packets.lanes() {
    ///             let size = texts.get(lane).map_or(0, <[u8]>::len);
    ///             packets.set_word(lane, 0, size as u64);
    ///         }
    ///     })
    ///     .await;
    ///     Ok(port)
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateOpcode`] if the opcode has a handler.
    pub fn on_session<F>(
        &mut self,
        opcode: u32,
        handler: impl Fn(Port) -> F + Send + Sync + 'static,
    ) -> Result<&mut Self, Error>
    where
        F: Future<Output = Result<Port, Fault>> + Send + 'static,
    {
        let handler = move |port| -> HandlerFuture { Box::pin(handler(port)) };
        self.insert(opcode, Handler::Session(Box::new(handler)))
    }

    /// Sets the function that is called for each dropped call.
    pub fn on_fault(
        &mut self,
        handler: impl Fn(&DroppedCall) + Send + Sync + 'static,
    ) -> &mut Self {
        self.on_fault = Some(Box::new(handler));
        self
    }

    /// Sets the function that is called for each call that [`Port::refuse`] reports. A device can cause any number of
    /// them.
    pub fn on_refusal(
        &mut self,
        handler: impl Fn(&RefusedCall) + Send + Sync + 'static,
    ) -> &mut Self {
        self.refusals = Refusals::new(handler);
        self
    }

    pub(crate) fn get(&self, opcode: u32) -> Option<&Handler> {
        self.by_opcode.get(&opcode)
    }

    pub(crate) fn report(&self, dropped: &DroppedCall) {
        if let Some(handler) = &self.on_fault {
            handler(dropped);
        }
    }

    fn insert(&mut self, opcode: u32, handler: Handler) -> Result<&mut Self, Error> {
        if self.by_opcode.contains_key(&opcode) {
            return Err(Error::DuplicateOpcode(opcode));
        }
        self.by_opcode.insert(opcode, handler);
        Ok(self)
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_opcode.keys()).finish()
    }
}
