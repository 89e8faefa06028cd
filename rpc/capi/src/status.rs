//! `enum gpurpc_status`, and the one way to it.

use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use gpurpc::Error;
use gpurpc::server::Fault;

/// Of `enum gpurpc_status`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(pub c_int);

const SUCCESS: c_int = 0;
const ERROR: c_int = 0x1000;
const UNHANDLED_OPCODE: c_int = 0x1001;
const INVALID_LANE_SIZE: c_int = 0x1002;
const INVALID_ARGUMENT: c_int = 0x1003;
const INVALID_PORT_COUNT: c_int = 0x1004;
const INVALID_MEMORY: c_int = 0x1005;
const OUT_OF_MEMORY: c_int = 0x1006;
const HANDLED_OPCODE: c_int = 0x1007;
const TOO_LATE: c_int = 0x1008;
const NO_DEVICE: c_int = 0x1009;
const BUSY: c_int = 0x100a;
const MESSAGE_SIZE: c_int = 0x100b;
const FAILED: c_int = 0x100c;
const INVALID_ROOT: c_int = 0x100d;
const STRUCT_SIZE: c_int = 0x100e;

impl Status {
    pub const INVALID_ARGUMENT: Self = Self(INVALID_ARGUMENT);
    pub const INVALID_MEMORY: Self = Self(INVALID_MEMORY);
    pub const OUT_OF_MEMORY: Self = Self(OUT_OF_MEMORY);
    pub const HANDLED_OPCODE: Self = Self(HANDLED_OPCODE);
    pub const TOO_LATE: Self = Self(TOO_LATE);
    pub const NO_DEVICE: Self = Self(NO_DEVICE);
    pub const BUSY: Self = Self(BUSY);
    pub const INVALID_ROOT: Self = Self(INVALID_ROOT);
    pub const STRUCT_SIZE: Self = Self(STRUCT_SIZE);

    /// Why a call was dropped.
    pub fn of_fault(fault: &Fault) -> Self {
        Self(match fault {
            Fault::UnknownOpcode => UNHANDLED_OPCODE,
            Fault::MessageSize { .. } => MESSAGE_SIZE,
            Fault::Memory { .. } => OUT_OF_MEMORY,
            Fault::Other(_) => FAILED,
            _ => ERROR,
        })
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self(match error {
            Error::Ports(_) => INVALID_PORT_COUNT,
            Error::Lanes(_) => INVALID_LANE_SIZE,
            Error::Memory(_) => INVALID_MEMORY,
            Error::NoDevice => NO_DEVICE,
            Error::Handled(_) => HANDLED_OPCODE,
            _ => ERROR,
        })
    }
}

/// What a function of the interface gives back: all of them end here, and no panic goes beyond.
pub fn run(body: impl FnOnce() -> Result<(), Status>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(Status(status))) => status,
        Err(_) => ERROR,
    }
}

/// A sentence for a status.
pub fn text(status: c_int) -> &'static CStr {
    match status {
        SUCCESS => c"all is well",
        UNHANDLED_OPCODE => c"no callback is registered for the opcode",
        INVALID_LANE_SIZE => c"a warp has 1, 32 or 64 lanes",
        INVALID_ARGUMENT => c"a pointer is null, or a number means nothing",
        INVALID_PORT_COUNT => c"a client has 1 to 4096 ports",
        INVALID_MEMORY => c"the memory is too small, or lies at no multiple of 8",
        OUT_OF_MEMORY => c"there is no more memory, or the device's calls hold as much as they may",
        HANDLED_OPCODE => c"the opcode has a callback already",
        TOO_LATE => c"callbacks are registered before the first device is added",
        NO_DEVICE => c"the device was removed, or is one of another server",
        BUSY => c"a thread polls or serves: let it return first, by gpurpc_end or gpurpc_stop",
        MESSAGE_SIZE => c"a message of a lane has more bytes than are allowed",
        FAILED => c"a callback let the call fail",
        INVALID_ROOT => c"the root for files is no folder, or cannot be opened",
        STRUCT_SIZE => c"struct_size of the options is not the sizeof of their struct",
        _ => c"an error that has no number",
    }
}
