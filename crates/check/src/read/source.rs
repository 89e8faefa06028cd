//! Sources of a file's bytes, and bounds on reading them.

use std::fs::File;
use std::io::{self, BufWriter, IntoInnerError, Read, Seek, SeekFrom};
use std::ops::Deref;

use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;

use super::limits::Limits;
use super::scratch::Scratch;

/// Number of bytes that contain every magic number; that of a tar archive is at 257.
const HEAD_SIZE: usize = 512;

/// Maximum size that is inflated in memory. More is inflated into an unnamed file, which is mapped.
const MAX_IN_MEMORY: u64 = 4 << 20;

/// Step of inflation: deflate refers back 32 KiB, and an inflater keeps that much of each step.
const STEP: usize = 256 << 10;

/// A file to read.
pub(super) struct Source<'a> {
    input: Input<'a>,
    size: u64,
    head: Option<Vec<u8>>,
}

enum Input<'a> {
    File(File),
    Bytes(&'a [u8]),
    Stream(&'a mut dyn Read),
}

/// All bytes of a file.
pub enum FileBytes<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
    Mapped(Mmap),
}

impl Deref for FileBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
            Self::Mapped(map) => map,
        }
    }
}

impl AsRef<[u8]> for FileBytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl FileBytes<'_> {
    /// Releases the memory of a part, which can be read from the file again. Without this, a scanned
    /// file would be resident as a whole.
    pub(super) fn release(&self, part: &[u8]) {
        if let Self::Mapped(map) = self {
            release(map, part);
        }
    }
}

/// Releases the memory of a part of a file, which can be read again. Does nothing if the part is not of this map.
pub fn release(map: &Mmap, part: &[u8]) {
    #[cfg(unix)]
    {
        let offset = (part.as_ptr() as usize).checked_sub(map.as_ptr() as usize);
        if let Some(offset) = offset.filter(|offset| offset + part.len() <= map.len()) {
            let start = offset.saturating_sub(gpustub_image::FAULT_AROUND);
            let length = offset + part.len() - start;
            // SAFETY: the map is of a file and never written, so later accesses read the bytes of the file, like the
            // first access. A failure only costs memory.
            let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, length) };
        }
    }
    #[cfg(not(unix))]
    let _ = (map, part);
}

impl<'a> Source<'a> {
    fn new(input: Input<'a>, size: u64) -> Self {
        Self {
            input,
            size,
            head: None,
        }
    }

    /// A file of this size.
    pub(super) fn file(file: File, size: u64) -> Self {
        Self::new(Input::File(file), size)
    }

    /// Bytes in memory.
    pub(super) fn bytes(bytes: &'a [u8]) -> Self {
        Self::new(Input::Bytes(bytes), bytes.len() as u64)
    }

    /// Bytes from an archive, which declares their number.
    pub(super) fn stream(stream: &'a mut dyn Read, size: u64) -> Self {
        Self::new(Input::Stream(stream), size)
    }

    /// Declared size.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// First bytes of the file.
    pub(super) fn head(&mut self) -> io::Result<&[u8]> {
        if self.head.is_none() {
            let mut head = Vec::new();
            match &mut self.input {
                Input::Bytes(bytes) => head.extend(&bytes[..bytes.len().min(HEAD_SIZE)]),
                Input::File(file) => {
                    file.take(HEAD_SIZE as u64).read_to_end(&mut head)?;
                    file.seek(SeekFrom::Start(0))?;
                }
                Input::Stream(stream) => {
                    let head_size = self.size.min(HEAD_SIZE as u64);
                    stream.take(head_size).read_to_end(&mut head)?;
                }
            }
            self.head = Some(head);
        }
        Ok(self.head.as_deref().unwrap_or_default())
    }

    /// Reader of all bytes.
    fn reader(&mut self) -> Box<dyn Read + '_> {
        match &mut self.input {
            Input::Bytes(bytes) => Box::new(*bytes),
            Input::File(file) => Box::new(file),
            Input::Stream(stream) => {
                let head = self.head.as_deref().unwrap_or_default();
                // One byte more than declared reveals a stream that is longer.
                let rest = (self.size - head.len() as u64).saturating_add(1);
                Box::new(head.chain(stream.take(rest)))
            }
        }
    }

    /// Reader of all bytes, if the limits allow it.
    pub(super) fn read(&mut self, limits: &mut Limits) -> io::Result<Box<dyn Read + '_>> {
        if let Input::Stream(_) = self.input {
            if self.size > limits.member || self.size > limits.inflated {
                let message = format!("inflated size exceeds the limit: {} bytes", self.size);
                return Err(io::Error::other(message));
            }
            limits.inflated -= self.size;
        }
        Ok(self.reader())
    }

    /// All bytes, if the limits allow it.
    pub(super) fn read_all(&mut self, limits: &mut Limits) -> io::Result<FileBytes<'a>> {
        match &self.input {
            Input::Bytes(bytes) => return Ok(FileBytes::Borrowed(bytes)),
            Input::File(_) if self.size == 0 => return Ok(FileBytes::Borrowed(&[])),
            Input::File(file) => {
                // SAFETY: the map is private and read-only. If another process truncates the file
                // while it is read, this one receives SIGBUS, like every linker that maps its inputs;
                // other changes only yield other bytes, and no code trusts the bytes.
                return unsafe { Mmap::map(file) }.map(FileBytes::Mapped);
            }
            Input::Stream(_) => {}
        }
        let size = self.size;
        let mut stream = self.read(limits)?;
        if size <= MAX_IN_MEMORY {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes)?;
            check_size(bytes.len() as u64, size)?;
            return Ok(FileBytes::Owned(bytes));
        }
        let mut writer = BufWriter::with_capacity(STEP, Scratch::new()?);
        let count = io::copy(&mut stream, &mut writer)?;
        let scratch = writer.into_inner().map_err(IntoInnerError::into_error)?;
        check_size(count, size)?;
        scratch.map().map(FileBytes::Mapped)
    }
}

fn check_size(size: u64, declared: u64) -> io::Result<()> {
    if size == declared {
        Ok(())
    } else {
        Err(io::Error::other(
            "size differs from the size in the archive's header",
        ))
    }
}
