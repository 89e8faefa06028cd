//! Errors of streams and files.

use core::fmt;

use embedded_io::ErrorKind;

/// Result of an operation on a stream or a file.
///
/// ```
/// use gpurpc_device::fs::File;
/// use gpurpc_device::io;
///
/// fn size_of_line(file: &mut File) -> io::Result<usize> {
///     file.read_line(&mut [0; 80])
/// }
/// ```
pub type Result<T> = core::result::Result<T, Error>;

/// Reason why an operation failed. The host reports failures without a reason.
///
/// ```
/// use gpurpc_device::io::Error;
///
/// assert_eq!(Error::Host.to_string(), "the operation failed on the host");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operation failed on the host, or the host does not allow it.
    Host,
    /// A path with a NUL, options of a file that contradict each other, or a buffer without room.
    InvalidInput,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "the operation failed on the host",
            Self::InvalidInput => "invalid path, options or buffer",
        })
    }
}

impl core::error::Error for Error {}

impl embedded_io::Error for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Host => ErrorKind::Other,
            Self::InvalidInput => ErrorKind::InvalidInput,
        }
    }
}
