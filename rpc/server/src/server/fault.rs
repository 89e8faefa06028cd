//! Why a call is not served any further.

use core::fmt;

/// What a client did that it must not do, or what kept a call from being served. The port of such a call
/// is not served again: nobody knows where in its conversation the client is.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// There is no handler for the opcode.
    UnknownOpcode,
    /// A message of a lane has more bytes than are allowed.
    MessageSize {
        /// What the client says that it has.
        size: u64,
        /// What is allowed: [`Limits::message`](super::Limits::message).
        limit: usize,
    },
    /// All calls of the device together hold as much memory as they may.
    Memory {
        /// What was wanted.
        size: u64,
        /// What is allowed: [`Limits::memory`](super::Limits::memory).
        limit: usize,
    },
    /// The handler panicked, or did not give its port back.
    Handler,
    /// What else a handler says.
    Other(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOpcode => f.write_str("there is no handler for the opcode"),
            Self::MessageSize { size, limit } => {
                write!(f, "a message of {size} bytes; {limit} are allowed")
            }
            Self::Memory { size, limit } => write!(
                f,
                "{size} bytes more for messages; all calls together may have {limit}"
            ),
            Self::Handler => f.write_str("the handler panicked or did not give its port back"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl core::error::Error for Fault {}
