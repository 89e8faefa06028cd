//! The end of the program.

use gpurpc::opcode;

use crate::arch;
use crate::call::Call;

/// Ends the program with a status, which the host receives after all earlier calls of this warp.
///
/// The host decides what happens: `gpurpc-loader` exits with the status. The calling thread ends here, or its warp on
/// AMD's GPUs; other warps run until the host stops them.
///
/// ```no_run
/// use gpurpc_device::{eprintln, process};
///
/// eprintln!("the grid has no points");
/// process::exit(2);
/// ```
pub fn exit(status: i32) -> ! {
    let mut call = Call::open(opcode::EXIT);
    call.send([]);
    // The host has served all earlier calls.
    let [] = call.recv();
    call.send([status as u64]);
    drop(call);
    arch::end()
}

/// Ends the program as one that failed, otherwise as [`exit`]. The exit code of `gpurpc-loader` is 134.
///
/// ```no_run
/// gpurpc_device::process::abort();
/// ```
pub fn abort() -> ! {
    let mut call = Call::open(opcode::ABORT);
    call.send([]);
    let [] = call.recv();
    call.send([]);
    drop(call);
    arch::end()
}
