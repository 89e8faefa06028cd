//! Calls that the host refuses, and answers.

use alloc::sync::Arc;
use core::fmt;

use super::fault::Fault;
use crate::layout::PortIndex;

/// A call that is answered with an error, because the host refuses the request: `printf` with `%n` or too much
/// text. Its port is served on.
///
/// ```
/// let mut handlers = gpurpc::server::Handlers::new();
/// handlers.on_refusal(|call| eprintln!("port {}, opcode {:#x}: {}", call.port, call.opcode, call.reason));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedCall {
    /// The port.
    pub port: PortIndex,
    /// Opcode of the call.
    pub opcode: u32,
    /// Reason for the refusal.
    pub reason: Fault,
}

type RefusalHandler = Arc<dyn Fn(&RefusedCall) + Send + Sync>;

/// Function of the program for refused calls, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Refusals(Option<RefusalHandler>);

impl Refusals {
    pub fn new(handler: impl Fn(&RefusedCall) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(handler)))
    }

    pub fn report(&self, refused: &RefusedCall) {
        if let Some(handler) = &self.0 {
            handler(refused);
        }
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Refusals").field(&self.0.is_some()).finish()
    }
}
