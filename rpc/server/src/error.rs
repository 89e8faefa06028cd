//! What can be wrong with a call of this library.

use core::fmt;

/// Why a call of this library was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A client has 1 to 4096 ports, not this many.
    Ports(u32),
    /// A warp has 1, 32 or 64 lanes, not this many.
    Lanes(u32),
    /// This much memory is less than a layout takes, or lies at no multiple of 8.
    Memory(usize),
    /// The device was removed.
    NoDevice,
    /// There is a handler for this opcode.
    Handled(u32),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ports(ports) => write!(f, "{ports} ports: a client has 1 to 4096"),
            Self::Lanes(lanes) => write!(f, "{lanes} lanes: a warp has 1, 32 or 64"),
            Self::Memory(size) => write!(
                f,
                "{size} bytes: the memory is too small, or lies at no multiple of 8"
            ),
            Self::NoDevice => f.write_str("the device was removed"),
            Self::Handled(opcode) => write!(f, "opcode {opcode:#x} has a handler"),
        }
    }
}

impl core::error::Error for Error {}
