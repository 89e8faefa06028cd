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
const HEAD: usize = 512;

/// Maximum size that is inflated in memory. More is inflated into an unnamed file, which is mapped.
const IN_MEMORY: u64 = 4 << 20;

/// Step of inflation: deflate refers back 32 KiB, and an inflater keeps that much of each step.
const STEP: usize = 256 << 10;

/// A file to read.
pub(super) struct Source<'a> {
    contents: Contents<'a>,
    size: u64,
    head: Option<Vec<u8>>,
}

enum Contents<'a> {
    File(File),
    Bytes(&'a [u8]),
    Stream(&'a mut dyn Read),
}

/// All bytes of a file.
pub enum Whole<'a> {
    Bytes(&'a [u8]),
    Owned(Vec<u8>),
    Mapped(Mmap),
}

impl Deref for Whole<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Owned(bytes) => bytes,
            Self::Mapped(map) => map,
        }
    }
}

impl AsRef<[u8]> for Whole<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Whole<'_> {
    /// Releases the memory of a part, which can be read from the file again. Without this, a scanned
    /// file would be resident as a whole.
    pub(super) fn release(&self, part: &[u8]) {
        #[cfg(unix)]
        if let Self::Mapped(map) = self {
            let start = (part.as_ptr() as usize).checked_sub(map.as_ptr() as usize);
            let inside = start.filter(|start| start + part.len() <= map.len());
            if let Some(start) = inside {
                let (end, start) = (
                    start + part.len(),
                    start.saturating_sub(gpustub_image::FAULT_AROUND),
                );
                // SAFETY: the map is shared with its file and never written, so later accesses read the
                // bytes of the file, like the first access. A failure only costs memory.
                let _ = unsafe {
                    map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start)
                };
            }
        }
        #[cfg(not(unix))]
        let _ = part;
    }
}

impl<'a> Source<'a> {
    fn new(contents: Contents<'a>, size: u64) -> Self {
        Self {
            contents,
            size,
            head: None,
        }
    }

    /// A file of this size.
    pub(super) fn file(file: File, size: u64) -> Self {
        Self::new(Contents::File(file), size)
    }

    /// Bytes in memory.
    pub(super) fn bytes(bytes: &'a [u8]) -> Self {
        Self::new(Contents::Bytes(bytes), bytes.len() as u64)
    }

    /// Bytes from an archive, which declares their number.
    pub(super) fn stream(stream: &'a mut dyn Read, size: u64) -> Self {
        Self::new(Contents::Stream(stream), size)
    }

    /// Declared size.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// First bytes of the file.
    pub(super) fn head(&mut self) -> io::Result<&[u8]> {
        if self.head.is_none() {
            let mut head = Vec::new();
            let most = HEAD as u64;
            match &mut self.contents {
                Contents::Bytes(bytes) => head.extend(&bytes[..bytes.len().min(HEAD)]),
                Contents::File(file) => {
                    file.take(most).read_to_end(&mut head)?;
                    file.seek(SeekFrom::Start(0))?;
                }
                Contents::Stream(stream) => {
                    stream.take(most.min(self.size)).read_to_end(&mut head)?;
                }
            }
            self.head = Some(head);
        }
        Ok(self.head.as_deref().unwrap_or_default())
    }

    /// Reader of all bytes.
    fn reader(&mut self) -> Box<dyn Read + '_> {
        match &mut self.contents {
            Contents::Bytes(bytes) => Box::new(*bytes),
            Contents::File(file) => Box::new(file),
            Contents::Stream(stream) => {
                let head = self.head.as_deref().unwrap_or_default();
                // One byte more than declared reveals a stream that is longer.
                let rest = (self.size - head.len() as u64).saturating_add(1);
                Box::new(head.chain(stream.take(rest)))
            }
        }
    }

    /// Reader of all bytes, if the limits allow it.
    pub(super) fn read(&mut self, left: &mut Limits) -> io::Result<Box<dyn Read + '_>> {
        if let Contents::Stream(_) = self.contents {
            if self.size > left.member || self.size > left.inflated {
                let message = format!("inflated size exceeds the limit: {} bytes", self.size);
                return Err(io::Error::other(message));
            }
            left.inflated -= self.size;
        }
        Ok(self.reader())
    }

    /// All bytes, if the limits allow it.
    pub(super) fn read_all(&mut self, left: &mut Limits) -> io::Result<Whole<'a>> {
        match &self.contents {
            Contents::Bytes(bytes) => return Ok(Whole::Bytes(bytes)),
            Contents::File(_) if self.size == 0 => return Ok(Whole::Bytes(&[])),
            Contents::File(file) => {
                // SAFETY: the map is private and read-only. If another process truncates the file
                // while it is read, this one receives SIGBUS, like every linker that maps its inputs;
                // other changes only yield other bytes, and no code trusts the bytes.
                return unsafe { Mmap::map(file) }.map(Whole::Mapped);
            }
            Contents::Stream(_) => {}
        }
        let size = self.size;
        let mut stream = self.read(left)?;
        if size <= IN_MEMORY {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes)?;
            return exact(bytes.len() as u64, size).map(|()| Whole::Owned(bytes));
        }
        let mut file = BufWriter::with_capacity(STEP, Scratch::new()?);
        let count = io::copy(&mut stream, &mut file)?;
        let file = file.into_inner().map_err(IntoInnerError::into_error)?;
        exact(count, size)?;
        file.map().map(Whole::Mapped)
    }
}

fn exact(found: u64, reported: u64) -> io::Result<()> {
    if found == reported {
        Ok(())
    } else {
        Err(io::Error::other(
            "size differs from the size in the archive's header",
        ))
    }
}
