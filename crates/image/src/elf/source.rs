//! Bytes to read from: a file, or an edited image that is not written yet.

use std::ops::Range;
use std::sync::OnceLock;

use object::ReadRef;

/// The bytes of an image.
#[derive(Clone, Copy)]
pub(crate) enum Source<'d> {
    /// A file in memory.
    File(&'d [u8]),
    /// Parts that follow each other.
    Pieces(&'d Pieces<'d>),
}

impl<'d> Source<'d> {
    /// Number of bytes.
    pub(crate) fn len(self) -> u64 {
        match self {
            Self::File(bytes) => bytes.len() as u64,
            Self::Pieces(pieces) => pieces.len(),
        }
    }

    /// The bytes of a range; `None` if it reaches beyond the end.
    pub(crate) fn bytes(self, offset: u64, size: u64) -> Option<&'d [u8]> {
        match self {
            Self::File(bytes) => slice(bytes, offset, size),
            Self::Pieces(pieces) => pieces.bytes(offset, size),
        }
    }
}

/// A range without bytes may be anywhere, as in `object`'s other sources.
impl<'d> ReadRef<'d> for Source<'d> {
    fn len(self) -> Result<u64, ()> {
        Ok(Source::len(self))
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'d [u8], ()> {
        match size {
            0 => Ok(&[]),
            _ => self.bytes(offset, size).ok_or(()),
        }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'d [u8], ()> {
        let size = range.end.checked_sub(range.start).ok_or(())?;
        let bytes = self.bytes(range.start, size).ok_or(())?;
        let end = memchr::memchr(delimiter, bytes).ok_or(())?;
        Ok(&bytes[..end])
    }
}

/// Parts of memory, as one file.
pub(crate) struct Pieces<'d> {
    /// Each part and its offset.
    parts: Vec<(u64, &'d [u8])>,
    size: u64,
    joined: Joined,
}

impl<'d> Pieces<'d> {
    pub(crate) fn new(pieces: impl IntoIterator<Item = &'d [u8]>) -> Self {
        let mut size = 0;
        let mut parts = Vec::new();
        for bytes in pieces {
            parts.push((size, bytes));
            size += bytes.len() as u64;
        }
        Self {
            parts,
            size,
            joined: Joined::default(),
        }
    }

    fn len(&self) -> u64 {
        self.size
    }

    fn bytes(&self, offset: u64, size: u64) -> Option<&[u8]> {
        let end = offset.checked_add(size).filter(|&end| end <= self.size)?;
        let first = self.parts.partition_point(|(start, _)| *start <= offset);
        let parts = &self.parts[first.saturating_sub(1)..];
        let whole = parts
            .first()
            .and_then(|(start, bytes)| slice(bytes, offset - start, size));
        whole.or_else(|| Some(self.joined.get(offset..end, |range| join(parts, range))))
    }
}

/// Copies a range that begins in the first of these parts, and ends in one of them.
fn join(parts: &[(u64, &[u8])], range: &Range<u64>) -> Vec<u8> {
    let mut joined = Vec::with_capacity((range.end - range.start) as usize);
    for (start, bytes) in parts {
        if *start >= range.end {
            break;
        }
        let first = range.start.saturating_sub(*start) as usize;
        let end = (range.end - start).min(bytes.len() as u64) as usize;
        joined.extend(&bytes[first..end]);
    }
    joined
}

/// Copies of ranges that lie in several parts: few, since an image has few parts, and each range once.
#[derive(Default)]
struct Joined(OnceLock<Box<Copied>>);

struct Copied {
    range: Range<u64>,
    bytes: Vec<u8>,
    next: Joined,
}

impl Joined {
    fn get(&self, range: Range<u64>, join: impl FnOnce(&Range<u64>) -> Vec<u8>) -> &[u8] {
        let mut joined = self;
        while let Some(copied) = joined.0.get() {
            if copied.range == range {
                return &copied.bytes;
            }
            joined = &copied.next;
        }
        let copied = joined.0.get_or_init(|| {
            Box::new(Copied {
                bytes: join(&range),
                range,
                next: Self::default(),
            })
        });
        &copied.bytes
    }
}

fn slice(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    bytes.get(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_read_as_one_file() {
        let file: Vec<u8> = (0..40).collect();
        let pieces = Pieces::new([&file[..7], &[], &file[7..8], &file[8..31], &file[31..]]);
        for start in 0..=41 {
            for size in 0..=42 {
                assert_eq!(
                    Source::Pieces(&pieces).bytes(start, size),
                    Source::File(&file).bytes(start, size),
                    "{start} {size}"
                );
            }
        }
        assert_eq!(Source::Pieces(&Pieces::new([])).bytes(0, 0), Some(&[][..]));
        assert_eq!(Source::Pieces(&pieces).bytes(u64::MAX, 2), None);
    }
}
