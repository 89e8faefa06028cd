//! Files of the host.
//!
//! The host allows files below one directory, or none. A path is relative to that directory.
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
//! use gpurpc_device::fs::{self, File};
//! use gpurpc_device::io::{self, Read, Write};
//!
//! # example::files(|| {
//! let mut file = File::create("results.txt")?;
//! file.write_all(b"2.718")?;
//! file.flush()?;
//! let mut text = [0; 16];
//! let size = File::open("results.txt")?.read(&mut text)?;
//! assert_eq!(&text[..size], b"2.718");
//! fs::remove_file("results.txt")?;
//! # Ok::<(), io::Error>(()) }).unwrap();
//! ```

use crate::io::{Error, ErrorType, Read, Result, Seek, SeekFrom, Write};
use crate::stream::{self, Stream};

/// An open file, which is closed when it is dropped. Each lane that opens one has its own.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::fs::File;
/// use gpurpc_device::io::{self, Write};
///
/// # example::files(|| {
/// File::create("numbers.txt")?.write_all(b"1\n2\n")?;
/// let mut numbers = File::open("numbers.txt")?;
/// let mut line = [0; 8];
/// while let size @ 1.. = numbers.read_line(&mut line)? {
///     assert_eq!(size, 2);
/// }
/// # Ok::<(), io::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct File(Stream);

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// [`Error::Host`] if the host cannot open it, [`Error::InvalidInput`] if `path` contains a NUL.
    pub fn open(path: &str) -> Result<Self> {
        OpenOptions::new().read(true).open(path)
    }

    /// Opens a file for writing. Creates it, or discards its contents.
    ///
    /// # Errors
    ///
    /// Those of [`File::open`].
    pub fn create(path: &str) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).open(path)
    }

    /// Options for opening a file in another way.
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Reads a line with its line feed and returns its size, 0 at the end of the file. Of a line that is longer than
    /// `line.len() - 1` bytes, the rest is the next line.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if `line` has less than 2 bytes, [`Error::Host`] if the host cannot read.
    pub fn read_line(&mut self, line: &mut [u8]) -> Result<usize> {
        self.0.read_line(line)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // No caller could handle the error; `flush` reports those of writing.
        let _ = self.0.close();
    }
}

impl ErrorType for File {
    type Error = Error;
}

impl Read for File {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.0.seek(to)
    }

    fn stream_position(&mut self) -> Result<u64> {
        self.0.position()
    }
}

/// Options for opening a file: those combinations of `std::fs::OpenOptions` that are modes of C's `fopen`.
///
/// | options | mode |
/// |---|---|
/// | `read` | `r` |
/// | `read`, `write` | `r+` |
/// | `write`, `create`, `truncate` | `w` |
/// | `read`, `write`, `create`, `truncate` | `w+` |
/// | `write`, `create_new` | `wx` |
/// | `read`, `write`, `create_new` | `w+x` |
/// | `append`, `create` | `a` |
/// | `read`, `append`, `create` | `a+` |
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::fs::OpenOptions;
/// use gpurpc_device::io::{self, Write};
///
/// # example::files(|| {
/// let mut log = OpenOptions::new().append(true).create(true).open("log.txt")?;
/// log.write_all(b"started\n")?;
/// # Ok::<(), io::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct OpenOptions {
    read: bool,
    write: bool,
    append: bool,
    truncate: bool,
    create: bool,
    create_new: bool,
}

impl OpenOptions {
    /// Options that are all false.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the file is read.
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.read = read;
        self
    }

    /// Sets whether the file is written.
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.write = write;
        self
    }

    /// Sets whether the file is written at its end only.
    pub fn append(&mut self, append: bool) -> &mut Self {
        self.append = append;
        self
    }

    /// Sets whether the contents of the file are discarded.
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.truncate = truncate;
        self
    }

    /// Sets whether the file is created if it does not exist.
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.create = create;
        self
    }

    /// Sets whether the file is created and may not exist before. `create` and `truncate` are ignored then.
    pub fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.create_new = create_new;
        self
    }

    /// Opens a file.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if the options are no mode of `fopen`, and those of [`File::open`].
    pub fn open(&self, path: &str) -> Result<File> {
        let mode = self.mode().ok_or(Error::InvalidInput)?;
        let mut bytes = [0; 8];
        bytes[..mode.len()].copy_from_slice(mode);
        Stream::open(path, bytes).map(File)
    }

    fn mode(&self) -> Option<&'static [u8]> {
        let Self {
            read,
            write,
            append,
            create_new,
            ..
        } = *self;
        let (create, truncate) = (self.create && !create_new, self.truncate && !create_new);
        Some(match (append, create_new, create, truncate, read, write) {
            (false, false, false, false, true, false) => b"r",
            (false, false, false, false, true, true) => b"r+",
            (false, false, true, true, false, true) => b"w",
            (false, false, true, true, true, true) => b"w+",
            (false, true, false, false, false, true) => b"wx",
            (false, true, false, false, true, true) => b"w+x",
            (true, false, true, false, false, _) => b"a",
            (true, false, true, false, true, _) => b"a+",
            _ => return None,
        })
    }
}

/// Removes a file.
///
/// # Errors
///
/// [`Error::Host`] if the host cannot remove it, [`Error::InvalidInput`] if `path` contains a NUL.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::{fs, io};
///
/// # example::files(|| {
/// assert_eq!(fs::remove_file("missing.txt"), Err(io::Error::Host));
/// # Ok::<(), io::Error>(()) }).unwrap();
/// ```
pub fn remove_file(path: &str) -> Result<()> {
    stream::remove(path)
}

/// Renames a file or a directory.
///
/// # Errors
///
/// [`Error::Host`] if the host cannot rename it, [`Error::InvalidInput`] if a path contains a NUL.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/serve.rs")); }
/// use gpurpc_device::fs::{self, File};
/// use gpurpc_device::io;
///
/// # example::files(|| {
/// drop(File::create("part.bin")?);
/// fs::rename("part.bin", "whole.bin")?;
/// # Ok::<(), io::Error>(()) }).unwrap();
/// ```
pub fn rename(from: &str, to: &str) -> Result<()> {
    stream::rename(from, to)
}
