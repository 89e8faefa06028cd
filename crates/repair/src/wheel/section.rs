//! Reads of a part of a file that leave its position alone, so that threads share the file.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

/// Reader of a part of a file: pages of a map would be resident.
pub(super) struct Section<'a> {
    pub(super) file: &'a File,
    pub(super) range: Range<u64>,
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
