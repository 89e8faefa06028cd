//! Standard streams of C, which the program uses too.

use gpurpc::libc::Services;

/// Services with these streams, and files below the current directory.
pub fn services() -> Services {
    // A current directory that cannot be opened has no files.
    with_streams(Services::new().files(".").unwrap_or_default())
}

#[cfg(all(unix, not(target_vendor = "apple")))]
fn with_streams(services: Services) -> Services {
    services
        .stdin(c::Stream::Input)
        .stdout(c::Stream::Output)
        .stderr(c::Stream::Error)
}

#[cfg(not(all(unix, not(target_vendor = "apple"))))]
fn with_streams(services: Services) -> Services {
    services
}

#[cfg(all(unix, not(target_vendor = "apple")))]
mod c {
    use std::ffi::{c_int, c_void};
    use std::io::{self, Read, Write};

    unsafe extern "C" {
        static mut stdin: *mut c_void;
        static mut stdout: *mut c_void;
        static mut stderr: *mut c_void;
        fn getc(stream: *mut c_void) -> c_int;
        fn fwrite(from: *const c_void, size: usize, count: usize, stream: *mut c_void) -> usize;
        fn fflush(stream: *mut c_void) -> c_int;
    }

    /// A stream, whose buffer the program shares.
    pub enum Stream {
        Input,
        Output,
        Error,
    }

    impl Stream {
        fn file(&self) -> *mut c_void {
            // SAFETY: the program sets them only before it serves.
            unsafe {
                match self {
                    Self::Input => stdin,
                    Self::Output => stdout,
                    Self::Error => stderr,
                }
            }
        }
    }

    impl Read for Stream {
        /// Reads up to the end of a line: the program reads the next one.
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            for (index, target) in buffer.iter_mut().enumerate() {
                // SAFETY: the stream is open.
                let Ok(byte) = u8::try_from(unsafe { getc(self.file()) }) else {
                    return Ok(index);
                };
                *target = byte;
                if byte == b'\n' {
                    return Ok(index + 1);
                }
            }
            Ok(buffer.len())
        }
    }

    impl Write for Stream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // SAFETY: the stream is open, and there are as many bytes.
            match unsafe { fwrite(bytes.as_ptr().cast(), 1, bytes.len(), self.file()) } {
                0 if !bytes.is_empty() => Err(io::ErrorKind::Other.into()),
                written => Ok(written),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            // SAFETY: the stream is open.
            match unsafe { fflush(self.file()) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }
}
