//! The edited image: ranges of the original, and new bytes.

use std::io::{self, Write};
use std::ops::Range;

use super::problem::EditProblem;
use crate::elf::Pieces;

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

    /// The bytes.
    fn bytes<'s>(&'s self, source: &'s [u8]) -> Option<&'s [u8]> {
        match self {
            Self::Copy(range) => {
                let (start, end) = (range.start.try_into().ok()?, range.end.try_into().ok()?);
                source.get::<Range<usize>>(start..end)
            }
            Self::New(bytes) => Some(bytes),
        }
    }
}

impl Patch {
    /// Replaces ranges of an original of `length` bytes, and inserts `inserted` at an offset.
    pub(crate) fn new(
        length: u64,
        replaced: Vec<(u64, Vec<u8>)>,
        (insert_at, inserted): (u64, Vec<Piece>),
    ) -> Result<Self, EditProblem> {
        let mut changes = Vec::new();
        for (start, bytes) in replaced {
            let end = start + bytes.len() as u64;
            changes.push((start, end, vec![Piece::New(bytes)]));
        }
        changes.push((insert_at, insert_at, inserted));
        // Inserted bytes precede the original ones.
        changes.sort_by_key(|&(start, end, _)| (start, end));
        let mut pieces = Vec::new();
        let mut copied_from = 0;
        for (start, end, new_pieces) in changes {
            if start < copied_from || end > length {
                return Err(EditProblem::Malformed("tables overlap"));
            }
            pieces.push(Piece::Copy(copied_from..start));
            pieces.extend(new_pieces);
            copied_from = end;
        }
        pieces.push(Piece::Copy(copied_from..length));
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

    /// The parts with their offsets.
    pub(super) fn placed_pieces(&self) -> impl Iterator<Item = (u64, &Piece)> {
        self.pieces.iter().scan(0, |end, piece| {
            let start = *end;
            *end += piece.len();
            Some((start, piece))
        })
    }

    /// The edited image, which is not written.
    pub(crate) fn apply<'s>(&'s self, source: &'s [u8]) -> Option<Pieces<'s>> {
        let pieces: Option<Vec<_>> = (self.pieces.iter())
            .map(|piece| piece.bytes(source))
            .collect();
        pieces.map(Pieces::new)
    }

    /// The bytes of each part.
    pub(crate) fn parts<'s>(&'s self, source: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        self.pieces.iter().filter_map(|piece| piece.bytes(source))
    }

    /// Writes the edited image. `source` is the original that the patch was planned for.
    pub fn write(&self, source: &[u8], out: &mut impl Write) -> io::Result<()> {
        for piece in &self.pieces {
            let bytes = piece.bytes(source).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.write_all(bytes)?;
        }
        Ok(())
    }
}
