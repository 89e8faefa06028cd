//! Reads of a part of a file that leave its position alone, so that threads share the file.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;

/// Step of reads and of inflation: deflate refers back 32 KiB, and an inflater keeps that much of each step.
const STEP: usize = 256 << 10;

/// Reader of a part of a file: pages of a map would be resident.
pub(super) struct Section<'a> {
    file: &'a File,
    range: Range<u64>,
}

impl<'a> Section<'a> {
    pub(super) fn new(file: &'a File, range: Range<u64>) -> Self {
        Self { file, range }
    }
}

impl Read for Section<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(self.range.end.saturating_sub(self.range.start));
        let length = out.len().min(rest.unwrap_or(usize::MAX));
        let count = read_at(self.file, &mut out[..length], self.range.start)?;
        self.range.start += count as u64;
        Ok(count)
    }
}

#[cfg(not(windows))]
fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, offset)
}

#[cfg(windows)]
fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, offset)
}

/// Copies in large steps.
pub(super) fn copy(mut from: impl Read, to: &mut dyn Write) -> io::Result<u64> {
    let mut to = BufWriter::with_capacity(STEP, to);
    let count = io::copy(&mut from, &mut to)?;
    to.flush()?;
    Ok(count)
}

/// Writes a range of a file.
///
/// # Errors
///
/// If the file is shorter, or cannot be read or written.
pub fn copy_range(file: &File, range: &Range<u64>, out: &mut dyn Write) -> io::Result<()> {
    if copy(Section::new(file, range.clone()), out)? != range.end - range.start {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}
