//! `enum gpurpc_status`, and the conversion of all results to it.

use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use gpurpc::Error;
use gpurpc::server::Fault;

/// A value of `enum gpurpc_status`.
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
const DUPLICATE_OPCODE: c_int = 0x1007;
const ALREADY_STARTED: c_int = 0x1008;
const NO_DEVICE: c_int = 0x1009;
const BUSY: c_int = 0x100a;
const MESSAGE_TOO_LARGE: c_int = 0x100b;
const HANDLER_FAILED: c_int = 0x100c;
const INVALID_ROOT: c_int = 0x100d;
const INVALID_STRUCT_SIZE: c_int = 0x100e;
const REFUSED: c_int = 0x100f;
const INVALID_GENERATION: c_int = 0x1010;
const ABANDONED: c_int = 0x1011;

impl Status {
    pub const INVALID_ARGUMENT: Self = Self(INVALID_ARGUMENT);
    pub const INVALID_MEMORY: Self = Self(INVALID_MEMORY);
    pub const OUT_OF_MEMORY: Self = Self(OUT_OF_MEMORY);
    pub const DUPLICATE_OPCODE: Self = Self(DUPLICATE_OPCODE);
    pub const ALREADY_STARTED: Self = Self(ALREADY_STARTED);
    pub const NO_DEVICE: Self = Self(NO_DEVICE);
    pub const BUSY: Self = Self(BUSY);
    pub const INVALID_ROOT: Self = Self(INVALID_ROOT);
    pub const INVALID_STRUCT_SIZE: Self = Self(INVALID_STRUCT_SIZE);
    pub const REFUSED: Self = Self(REFUSED);
    pub const INVALID_GENERATION: Self = Self(INVALID_GENERATION);

    /// Status for the fault that dropped a call.
    pub fn from_fault(fault: &Fault) -> Self {
        Self(match fault {
            Fault::UnknownOpcode => UNHANDLED_OPCODE,
            Fault::MessageTooLarge { .. } => MESSAGE_TOO_LARGE,
            Fault::OutOfMemory { .. } => OUT_OF_MEMORY,
            Fault::HandlerFailed | Fault::Other(_) => HANDLER_FAILED,
            Fault::Abandoned => ABANDONED,
            _ => ERROR,
        })
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self(match error {
            Error::InvalidPortCount(_) => INVALID_PORT_COUNT,
            Error::InvalidLaneSize(_) => INVALID_LANE_SIZE,
            Error::InvalidMemory(_) => INVALID_MEMORY,
            Error::NoDevice => NO_DEVICE,
            Error::DuplicateOpcode(_) => DUPLICATE_OPCODE,
            Error::NoKernel => INVALID_ARGUMENT,
            _ => ERROR,
        })
    }
}

/// Runs the body of a C function and returns its status. All functions use it, so that no panic reaches C.
#[inline]
pub fn catch_status(body: impl FnOnce() -> Result<(), Status>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(Status(status))) => status,
        Err(_) => ERROR,
    }
}

/// Message for a status.
pub fn message(status: c_int) -> &'static CStr {
    match status {
        SUCCESS => c"success",
        UNHANDLED_OPCODE => c"no callback is registered for the opcode",
        INVALID_LANE_SIZE => c"invalid lane count: a warp has 1, 32 or 64 lanes",
        INVALID_ARGUMENT => c"invalid argument: a null or misaligned pointer, or an unknown number",
        INVALID_PORT_COUNT => {
            c"invalid port count: a client has 1 to 4096 ports, of LLVM 23 1 to 16384"
        }
        INVALID_MEMORY => c"the memory is too small or not aligned to 8 (LLVM 23: to 64)",
        OUT_OF_MEMORY => c"out of memory, or the memory limit of the device is reached",
        DUPLICATE_OPCODE => c"the opcode already has a callback",
        ALREADY_STARTED => c"callbacks must be registered before the first device is added",
        NO_DEVICE => c"the device was removed or belongs to another server",
        BUSY => c"a thread polls or serves: stop it first with gpurpc_drain or gpurpc_stop",
        MESSAGE_TOO_LARGE => c"a message of a lane exceeds the limit",
        HANDLER_FAILED => c"the handler of the call failed",
        INVALID_ROOT => c"the root for files is not a directory or cannot be opened",
        INVALID_STRUCT_SIZE => c"struct_size of the options is not the sizeof of their struct",
        REFUSED => c"the request was refused: its client has an error as the answer",
        INVALID_GENERATION => {
            c"unknown client: those of LLVM 19 to 22 have 552 bytes, those of LLVM 23 have 2096 bytes"
        }
        ABANDONED => {
            c"the call was abandoned: its device was removed, its port was reset, or its serving thread has ended"
        }
        _ => c"unknown error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text names all known releases and sizes.
    #[test]
    fn known_generations_are_named() {
        let text = message(INVALID_GENERATION).to_string_lossy();
        let generations = gpurpc::Generation::ALL;
        for generation in generations {
            assert!(
                text.contains(&format!(" {} ", generation.client_size)),
                "{text}"
            );
        }
        for release in [
            generations[0].first_release,
            generations[1].last_release,
            generations[2].last_release,
        ] {
            assert!(text.contains(&release.to_string()), "{text}");
        }
    }

    /// `ERROR` remains for bugs.
    #[test]
    fn each_fault_has_a_status() {
        let (size, limit) = (2, 1);
        for (fault, status) in [
            (Fault::UnknownOpcode, UNHANDLED_OPCODE),
            (Fault::MessageTooLarge { size, limit }, MESSAGE_TOO_LARGE),
            (Fault::OutOfMemory { size, limit }, OUT_OF_MEMORY),
            (Fault::HandlerFailed, HANDLER_FAILED),
            (Fault::Abandoned, ABANDONED),
            (Fault::Other("printf: missing arguments"), HANDLER_FAILED),
        ] {
            assert_eq!(Status::from_fault(&fault), Status(status), "{fault}");
        }
    }
}
