//! The edited image: ranges of the original, and new bytes.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use super::problem::Problem;
use super::source::Source;

/// Part of an edited image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A range of the original.
    Copy(Range<u64>),
    /// New bytes.
    New(Vec<u8>),
}

/// An edited image. Its pieces follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pieces: Vec<Piece>,
}

impl Piece {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Copy(range) => range.end - range.start,
            Self::New(bytes) => bytes.len() as u64,
        }
    }

    /// Whether the piece has no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of a range of the piece.
    fn bytes<'s>(&'s self, source: &'s [u8], at: u64, size: u64) -> Option<Cow<'s, [u8]>> {
        match self {
            Self::Copy(range) => source_bytes(source, range.start + at, size),
            Self::New(bytes) => source_bytes(bytes, at, size),
        }
    }
}

fn source_bytes(bytes: &[u8], at: u64, size: u64) -> Option<Cow<'_, [u8]>> {
    let start = usize::try_from(at).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    bytes.get(start..end).map(Cow::Borrowed)
}

impl Patch {
    /// Replaces ranges of an original of `length` bytes, and inserts `inserted` at an offset.
    pub(super) fn new(
        length: u64,
        replaced: Vec<(u64, Vec<u8>)>,
        (at, inserted): (u64, Vec<Piece>),
    ) -> Result<Self, Problem> {
        let replaced = replaced.into_iter().map(|(start, bytes)| {
            let end = start + bytes.len() as u64;
            (start, end, vec![Piece::New(bytes)])
        });
        let mut changes: Vec<_> = replaced.chain([(at, at, inserted)]).collect();
        // Inserted bytes precede the original ones.
        changes.sort_by_key(|&(start, end, _)| (start, end));
        let mut pieces = Vec::new();
        let mut done = 0;
        for (start, end, new) in changes {
            if start < done || end > length {
                return Err(Problem::Malformed("tables overlap"));
            }
            pieces.push(Piece::Copy(done..start));
            pieces.extend(new);
            done = end;
        }
        pieces.push(Piece::Copy(done..length));
        pieces.retain(|piece| !piece.is_empty());
        Ok(Self { pieces })
    }

    /// The parts, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Size of the edited image.
    pub fn len(&self) -> u64 {
        self.pieces.iter().map(Piece::len).sum()
    }

    /// Whether the edited image has no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the edited image. `source` is the original that the patch was planned for.
    pub fn write(&self, source: &[u8], out: &mut impl Write) -> io::Result<()> {
        for piece in &self.pieces {
            let bytes = piece.bytes(source, 0, piece.len());
            out.write_all(&bytes.ok_or(io::ErrorKind::UnexpectedEof)?)?;
        }
        Ok(())
    }
}

/// An edited image that is not written yet.
pub(super) struct Edited<'p> {
    source: &'p [u8],
    patch: &'p Patch,
    /// Offset of each piece, and the size of the file.
    starts: Vec<u64>,
}

impl<'p> Edited<'p> {
    pub(super) fn new(source: &'p [u8], patch: &'p Patch) -> Self {
        let mut starts = vec![0];
        for piece in &patch.pieces {
            starts.push(starts.last().copied().unwrap_or(0) + piece.len());
        }
        Self {
            source,
            patch,
            starts,
        }
    }

    /// Pieces with their offsets.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (u64, &Piece)> {
        self.starts.iter().copied().zip(&self.patch.pieces)
    }
}

impl Source for Edited<'_> {
    fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    fn bytes(&self, offset: u64, size: u64) -> Option<Cow<'_, [u8]>> {
        let end = offset.checked_add(size).filter(|&end| end <= self.len())?;
        let first = self.starts.partition_point(|&start| start <= offset) - 1;
        let Some(piece) = self.patch.pieces.get(first) else {
            return Some(Cow::Borrowed(&[]));
        };
        let at = offset - self.starts[first];
        if size <= piece.len() - at {
            return piece.bytes(self.source, at, size);
        }
        let mut bytes = Vec::new();
        for (start, piece) in self.pieces().skip(first) {
            let from = offset.max(start);
            let to = end.min(start + piece.len());
            if from >= to {
                break;
            }
            bytes.extend_from_slice(&piece.bytes(self.source, from - start, to - from)?);
        }
        Some(Cow::Owned(bytes))
    }
}
