//! Writer of a member, which counts and hashes what passes through it.

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use super::blocks::Blocks;
use super::deflate::{Encoder, WINDOW_SIZE};
use super::section::copy_range;
use crate::record::{self, Hasher};

/// Writer of a changed or new member.
pub struct MemberWriter<'a> {
    /// The wheel that is rewritten.
    archive: &'a File,
    sink: Sink<'a>,
    digest: Digest,
}

enum Sink<'a> {
    Stored(&'a mut dyn Write),
    Deflated(Encoder<'a>),
}

/// Checksums of the bytes so far.
#[derive(Default)]
struct Digest {
    crc: flate2::Crc,
    hasher: Hasher,
}

impl<'a> MemberWriter<'a> {
    pub(super) fn stored(archive: &'a File, out: &'a mut dyn Write) -> Self {
        Self {
            archive,
            sink: Sink::Stored(out),
            digest: Digest::default(),
        }
    }

    pub(super) fn deflated(archive: &'a File, out: &'a mut dyn Write, jobs: NonZeroUsize) -> Self {
        Self {
            archive,
            sink: Sink::Deflated(Encoder::new(out, jobs)),
            digest: Digest::default(),
        }
    }

    /// Writes a range of an unpacked member of the wheel. Its `blocks` are copied where they can be.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or written.
    pub fn copy(&mut self, image: &File, blocks: &Blocks, range: &Range<u64>) -> io::Result<()> {
        let reused = match self.sink {
            Sink::Stored(_) => None,
            Sink::Deflated(_) => blocks.reused(self.archive, image, range)?,
        };
        let Some(reused) = reused else {
            return copy_range(image, range, self);
        };
        let (start, end) = (reused.range.start, reused.range.end);
        copy_range(image, &(range.start..start), self)?;
        if let Sink::Deflated(encoder) = &mut self.sink {
            let mut window = Vec::new();
            copy_range(image, &(end - WINDOW_SIZE as u64..end), &mut window)?;
            let is_alone = encoder.jobs.get() == 1;
            let out = encoder.interrupt(window)?;
            let (archive, digest) = (self.archive, &mut self.digest);
            let mut hash = || copy_range(image, &reused.range, digest);
            if is_alone {
                reused.write(archive, out)?;
                hash()?;
            } else {
                thread::scope(|scope| {
                    let hashing = thread::Builder::new().spawn_scoped(scope, hash)?;
                    reused.write(archive, out)?;
                    hashing.join().unwrap_or_else(|panic| resume_unwind(panic))
                })?;
            }
        }
        copy_range(image, &(end..range.end), self)
    }

    /// Ends the member. Returns its checksum, and its entry in `RECORD`.
    pub(super) fn finish(self) -> io::Result<(u32, record::Entry)> {
        if let Sink::Deflated(encoder) = self.sink {
            encoder.finish()?;
        }
        Ok((self.digest.crc.sum(), self.digest.hasher.finish()))
    }
}

impl Write for MemberWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = match &mut self.sink {
            Sink::Stored(out) => out.write(bytes)?,
            Sink::Deflated(encoder) => encoder.write(bytes)?,
        };
        self.digest.write(&bytes[..count])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.crc.update(bytes);
        self.hasher.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
