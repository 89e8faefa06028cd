//! Output of formatted text.

use core::fmt::{self, Write};

use gpurpc::opcode;

use crate::arch;
use crate::call::Call;

/// Number of bytes of a text that one call sends. A larger buffer would need more stack, of which CUDA gives each thread 1 KiB
/// by default.
const BUFFER_SIZE: usize = 256;

/// A standard stream for output.
#[derive(Clone, Copy)]
pub(crate) enum Output {
    Stdout,
    Stderr,
}

impl Output {
    fn opcode(self) -> u32 {
        match self {
            Self::Stdout => opcode::WRITE_TO_STDOUT,
            Self::Stderr => opcode::WRITE_TO_STDERR,
        }
    }

    /// Writes bytes of each lane, and returns the number of those that were written.
    pub fn write(self, bytes: &[u8]) -> usize {
        let opcode = self.opcode();
        write(arch::active_mask(opcode), opcode, bytes)
    }

    /// Writes formatted text of each lane, as one message if it fits the buffer.
    ///
    /// Lanes of different branches may be here together: GPUs let them meet in a function.
    pub fn print(self, text: fmt::Arguments<'_>, end: &str) {
        let line = match (text.as_str(), self, end) {
            // No formatting and no buffer: the host adds the line feed.
            (Some(line), Self::Stdout, "\n") => Some(line.as_bytes()),
            _ => None,
        };
        let opcode = match line {
            Some(_) => opcode::WRITE_TO_STDOUT_NEWLINE,
            None => self.opcode(),
        };
        let mask = arch::active_mask(opcode);
        if let Some(line) = line {
            write(mask, opcode, line);
            return;
        }
        let mut buffer = Buffer {
            output: self,
            bytes: [0; BUFFER_SIZE],
            size: 0,
        };
        // An error of an implementation of `Display` cuts its text off.
        let _ = buffer.write_fmt(text);
        let _ = buffer.write_str(end);
        // Lanes whose formatting diverged print together.
        arch::sync(mask);
        let text = buffer.bytes.get(..buffer.size);
        write(mask, opcode, text.unwrap_or_default());
    }
}

/// Waits for the answer: without it, a later call on another port could be served first. Not inlined, because formatting
/// calls this in many places.
#[inline(never)]
fn write(mask: u64, opcode: u32, bytes: &[u8]) -> usize {
    let mut call = Call::open_for(mask, opcode);
    call.send_n(bytes);
    let [count] = call.recv();
    count as usize
}

/// Text of one lane.
struct Buffer {
    output: Output,
    bytes: [u8; BUFFER_SIZE],
    size: usize,
}

impl Write for Buffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Without a check that could fail: panics are printed by this function.
        let mut text = text.as_bytes().iter();
        loop {
            let room = self.bytes.get_mut(self.size..).unwrap_or_default();
            for (to, byte) in room.iter_mut().zip(&mut text) {
                *to = *byte;
                self.size += 1;
            }
            if text.len() == 0 {
                return Ok(());
            }
            // Other lanes may have less text.
            self.output.write(&self.bytes);
            self.size = 0;
        }
    }
}

/// Implementation of the macros.
#[doc(hidden)]
pub fn _print(text: fmt::Arguments<'_>, end: &str) {
    Output::Stdout.print(text, end);
}

/// Implementation of the macros.
#[doc(hidden)]
pub fn _eprint(text: fmt::Arguments<'_>, end: &str) {
    Output::Stderr.print(text, end);
}

/// Prints formatted text of each lane to the host's standard output.
///
/// Text of up to 256 bytes arrives as a whole; longer text is sent in pieces, between which the text of other
/// warps may appear. Returns after the host has written the text; errors of the host are ignored, as they are by C's
/// `printf`.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::print;
///
/// # let printed = example::stdout(|| {
/// print!("{} of {}, ", 3, 4);
/// print!("done");
/// # });
/// # assert_eq!(printed, "3 of 4, done");
/// ```
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => {
        $crate::io::_print(::core::format_args!($($text)*), "")
    };
}

/// Prints a line of each lane to the host's standard output, as [`print!`] does.
///
/// Text without arguments needs no buffer, and arrives as a whole whatever its size.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::{println, thread};
///
/// # let printed = example::stdout(|| {
/// println!("hello from lane {}", thread::lane());
/// # });
/// # assert_eq!(printed, "hello from lane 0\n");
/// ```
#[macro_export]
macro_rules! println {
    () => {
        $crate::print!("\n")
    };
    ($($text:tt)*) => {
        $crate::io::_print(::core::format_args!($($text)*), "\n")
    };
}

/// Prints formatted text of each lane to the host's standard error, as [`print!`] does.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::eprint;
///
/// # let printed = example::stderr(|| {
/// eprint!("{:#x}", 255);
/// # });
/// # assert_eq!(printed, "0xff");
/// ```
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => {
        $crate::io::_eprint(::core::format_args!($($text)*), "")
    };
}

/// Prints a line of each lane to the host's standard error, as [`print!`] does.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::eprintln;
///
/// # let printed = example::stderr(|| {
/// eprintln!("no convergence after {} steps", 1000);
/// # });
/// # assert_eq!(printed, "no convergence after 1000 steps\n");
/// ```
#[macro_export]
macro_rules! eprintln {
    () => {
        $crate::eprint!("\n")
    };
    ($($text:tt)*) => {
        $crate::io::_eprint(::core::format_args!($($text)*), "\n")
    };
}
