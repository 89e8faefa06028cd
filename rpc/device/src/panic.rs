//! Reports of panics.
//!
//! With the feature `panic-handler` this crate is the panic handler of a device: it reports each panic on the host's
//! standard error and aborts the program. A package with a panic handler of its own calls [`report`].

use core::fmt;
use core::panic::Location;

use crate::print::Output;
use crate::thread;

/// Writes a panic of each lane to the host's standard error: its thread, its location and its message.
///
/// A call that is open meanwhile keeps its port, so a report needs a second one.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use core::panic::Location;
///
/// # let reported = example::stderr(|| {
/// gpurpc_device::panic::report(Location::caller(), &"index out of bounds");
/// # });
/// # let line = reported.strip_prefix("thread [0, 0, 0] of block [0, 0, 0] panicked at ").unwrap();
/// # assert!(line.ends_with(":\nindex out of bounds\n"), "{reported}");
/// ```
pub fn report(location: &Location<'_>, message: &dyn fmt::Display) {
    // `{:?}` of arrays would add 20 KiB of code.
    let ([x, y, z], [i, j, k]) = (thread::index(), thread::block());
    Output::Stderr.print(
        format_args!(
            "thread [{x}, {y}, {z}] of block [{i}, {j}, {k}] panicked at {location}:\n{message}"
        ),
        "\n",
    );
}

#[cfg(all(
    feature = "panic-handler",
    any(target_arch = "nvptx64", target_arch = "amdgpu")
))]
#[panic_handler]
fn handle(panic: &core::panic::PanicInfo<'_>) -> ! {
    match panic.location() {
        Some(location) => report(location, &panic.message()),
        // Always known in today's Rust.
        None => Output::Stderr.print(format_args!("panicked: {}", panic.message()), "\n"),
    }
    crate::process::abort()
}
