//! What serves opcodes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::fmt;
use core::future::Future;
use core::pin::Pin;

use super::{Fault, Port};
use crate::Error;
use crate::memory::Shared;
use crate::packets::Packets;

/// A call that is being served. It gives the port back when the call has ended as it should.
pub type Serving = Pin<Box<dyn Future<Output = Result<Port, Fault>> + Send>>;

type Reply = Box<dyn Fn(&mut Packets<'_, Shared>) + Send + Sync>;
type Talk = Box<dyn Fn(Port) -> Serving + Send + Sync>;
type Report = Box<dyn Fn(&Dropped) + Send + Sync>;

/// A call whose port is not served any more.
#[derive(Clone, Debug)]
pub struct Dropped {
    /// The port.
    pub port: u32,
    /// What the client asked for.
    pub opcode: u32,
    /// Why it is not served.
    pub fault: Fault,
}

pub(crate) enum Handler {
    Reply(Reply),
    Talk(Talk),
}

/// What serves each opcode.
#[derive(Default)]
pub struct Handlers {
    by_opcode: BTreeMap<u32, Handler>,
    report: Option<Report>,
}

impl Handlers {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves an opcode whose calls are one packet of each lane, changed in place by the answer. The
    /// function must not wait for anything: all other calls would.
    ///
    /// # Errors
    ///
    /// If the opcode has a handler.
    pub fn reply(
        &mut self,
        opcode: u32,
        work: impl Fn(&mut Packets<'_, Shared>) + Send + Sync + 'static,
    ) -> Result<&mut Self, Error> {
        self.insert(opcode, Handler::Reply(Box::new(work)))
    }

    /// Serves an opcode whose calls are any row of packets. While a call waits, others are served.
    ///
    /// ```
    /// use gpurpc::server::Handlers;
    ///
    /// # fn main() -> Result<(), gpurpc::Error> {
    /// let mut handlers = Handlers::new();
    /// handlers.talk(0x6700_0001, |mut port| async move {
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
    /// If the opcode has a handler.
    pub fn talk<F>(
        &mut self,
        opcode: u32,
        serve: impl Fn(Port) -> F + Send + Sync + 'static,
    ) -> Result<&mut Self, Error>
    where
        F: Future<Output = Result<Port, Fault>> + Send + 'static,
    {
        let serve = move |port| -> Serving { Box::pin(serve(port)) };
        self.insert(opcode, Handler::Talk(Box::new(serve)))
    }

    /// What is called when a port is not served any more.
    pub fn on_fault(&mut self, report: impl Fn(&Dropped) + Send + Sync + 'static) -> &mut Self {
        self.report = Some(Box::new(report));
        self
    }

    pub(crate) fn of(&self, opcode: u32) -> Option<&Handler> {
        self.by_opcode.get(&opcode)
    }

    pub(crate) fn report(&self, dropped: &Dropped) {
        if let Some(report) = &self.report {
            report(dropped);
        }
    }

    fn insert(&mut self, opcode: u32, handler: Handler) -> Result<&mut Self, Error> {
        if self.by_opcode.contains_key(&opcode) {
            return Err(Error::Handled(opcode));
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
