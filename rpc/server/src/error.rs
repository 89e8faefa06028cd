//! Errors of calls of this library.

use core::fmt;

/// Reason why a call of this library was refused.
///
/// ```
/// use gpurpc::{Error, Layout};
///
/// assert_eq!(Layout::new(0, 32), Err(Error::InvalidPortCount(0)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// Number of ports outside 1 to [`Generation::max_ports`](crate::Generation::max_ports).
    InvalidPortCount(u32),
    /// Number of lanes other than 1, 32 or 64.
    InvalidLaneSize(u32),
    /// Memory of this many bytes that is smaller than its layout, or not aligned to 8 (LLVM 23: to 64).
    InvalidMemory(usize),
    /// The device was removed.
    NoDevice,
    /// The opcode already has a handler.
    DuplicateOpcode(u32),
    /// The generation of the protocol has no doorbell.
    NoDoorbell,
    /// All announced kernels of the device have ended.
    NoKernel,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidPortCount(ports) => {
                write!(
                    f,
                    "invalid port count {ports}: a client has 1 to 4096 ports, of LLVM 23 1 to 16384"
                )
            }
            Self::InvalidLaneSize(lanes) => {
                write!(
                    f,
                    "invalid lane count {lanes}: a warp has 1, 32 or 64 lanes"
                )
            }
            Self::InvalidMemory(size) => write!(
                f,
                "memory of {size} bytes is smaller than the layout or not aligned to 8 (LLVM 23: to 64)"
            ),
            Self::NoDevice => f.write_str("the device was removed"),
            Self::DuplicateOpcode(opcode) => {
                write!(f, "opcode {opcode:#x} already has a handler")
            }
            Self::NoDoorbell => f.write_str("clients before LLVM 23 have no doorbell"),
            Self::NoKernel => f.write_str("all announced kernels of the device have ended"),
        }
    }
}

impl core::error::Error for Error {}
