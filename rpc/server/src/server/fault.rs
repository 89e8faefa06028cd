//! Faults that end a call.

use core::fmt;

/// Reason why a call was dropped: a protocol violation of the client, or a failure on the host. The port of
/// such a call is not served again, because the state of its client is unknown.
///
/// ```
/// use gpurpc::server::Fault;
///
/// let fault = Fault::MessageTooLarge { size: 1 << 40, limit: 16 << 20 };
/// assert!(fault.to_string().contains("1099511627776"), "{fault}");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// No handler is registered for the opcode.
    UnknownOpcode,
    /// A message of a lane exceeds the limit.
    MessageTooLarge {
        /// Size that the client sent.
        size: u64,
        /// [`Limits::message`](super::Limits::message).
        limit: usize,
    },
    /// The calls of the device together would hold more memory than the limit.
    OutOfMemory {
        /// Number of bytes requested.
        size: u64,
        /// [`Limits::memory`](super::Limits::memory).
        limit: usize,
    },
    /// The handler panicked or did not return its port, or its thread could not be started.
    HandlerFailed,
    /// The handler of the call cannot wait any longer: the device was removed, the port was reset, or the thread that
    /// has started the handler has ended.
    Abandoned,
    /// A fault that the handler returned. In C, this and [`Fault::HandlerFailed`] are
    /// `GPURPC_STATUS_HANDLER_FAILED`.
    Other(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOpcode => f.write_str("no handler is registered for the opcode"),
            Self::MessageTooLarge { size, limit } => {
                write!(f, "message of {size} bytes exceeds the limit of {limit}")
            }
            Self::OutOfMemory { size, limit } => write!(
                f,
                "allocation of {size} bytes exceeds the limit of {limit} for all calls of the device"
            ),
            Self::HandlerFailed => f.write_str(
                "the handler panicked or did not return its port, or its thread could not be started",
            ),
            Self::Abandoned => f.write_str(
                "the call was abandoned: its device was removed, its port was reset, or its serving thread has ended",
            ),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

impl core::error::Error for Fault {}
