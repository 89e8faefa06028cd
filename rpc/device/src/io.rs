//! Standard streams, and the traits of streams.
//!
//! The traits are those of [`embedded_io`], the counterparts of `std::io` without the standard library.
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
//! use gpurpc_device::io::{self, Write};
//!
//! # let printed = example::stdout(|| {
//! io::stdout().write_all(b"raw bytes\n")?;
//! # Ok::<(), io::Error>(()) });
//! # assert_eq!(printed, "raw bytes\n");
//! ```

pub use embedded_io::{ErrorKind, ErrorType, Read, Seek, SeekFrom, Write};

pub use crate::error::{Error, Result};
use crate::print::Output;
#[doc(hidden)]
pub use crate::print::{_eprint, _print};
use crate::stream::Stream;

/// The host's standard input.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::io;
///
/// # let printed = example::stdout(|| {
/// let mut line = [0; 80];
/// let size = io::stdin().read_line(&mut line)?;
/// # assert_eq!(&line[..size], b"a line\n");
/// # Ok::<(), io::Error>(()) });
/// ```
#[derive(Debug)]
pub struct Stdin(Stream);

/// The host's standard output. Text is formatted by [`println!`](crate::println).
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::io::{self, Write};
///
/// # let printed = example::stdout(|| {
/// io::stdout().write_all(&[b'P', b'6'])?;
/// # Ok::<(), io::Error>(()) });
/// # assert_eq!(printed, "P6");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stdout(());

/// The host's standard error. Text is formatted by [`eprintln!`](crate::eprintln).
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::io::{self, Write};
///
/// # let printed = example::stderr(|| {
/// io::stderr().write_all(b"!")?;
/// # Ok::<(), io::Error>(()) });
/// # assert_eq!(printed, "!");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stderr(());

/// The host's standard input, which all threads share.
///
/// ```
/// use gpurpc_device::io;
///
/// let input = io::stdin();
/// ```
pub fn stdin() -> Stdin {
    Stdin(Stream::STDIN)
}

/// The host's standard output.
///
/// ```
/// use gpurpc_device::io;
///
/// let output = io::stdout();
/// ```
pub fn stdout() -> Stdout {
    Stdout(())
}

/// The host's standard error.
///
/// ```
/// use gpurpc_device::io;
///
/// let errors = io::stderr();
/// ```
pub fn stderr() -> Stderr {
    Stderr(())
}

impl Stdin {
    /// Reads a line with its line feed and returns its size, 0 at the end of the input. Of a line that is longer than
    /// `line.len() - 1` bytes, the rest is the next line.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if `line` has less than 2 bytes, [`Error::Host`] if the host cannot read.
    pub fn read_line(&mut self, line: &mut [u8]) -> Result<usize> {
        self.0.read_line(line)
    }
}

impl ErrorType for Stdin {
    type Error = Error;
}

impl Read for Stdin {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        self.0.read(bytes)
    }
}

macro_rules! output {
    ($type:ty, $output:expr) => {
        impl ErrorType for $type {
            type Error = Error;
        }

        impl Write for $type {
            fn write(&mut self, bytes: &[u8]) -> Result<usize> {
                match $output.write(bytes) {
                    0 if !bytes.is_empty() => Err(Error::Host),
                    count => Ok(count),
                }
            }

            /// Does nothing: the host writes at once.
            fn flush(&mut self) -> Result<()> {
                Ok(())
            }
        }
    };
}

output!(Stdout, Output::Stdout);
output!(Stderr, Output::Stderr);
