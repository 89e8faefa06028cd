//! The edited image: ranges of the original, and new bytes.

use std::io::{self, Write};
use std::ops::Range;

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
}

impl Patch {
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
            match piece {
                Piece::Copy(range) => {
                    let range = usize::try_from(range.start)
                        .ok()
                        .zip(usize::try_from(range.end).ok());
                    let bytes = range.and_then(|(start, end)| source.get(start..end));
                    out.write_all(bytes.ok_or(io::ErrorKind::UnexpectedEof)?)?;
                }
                Piece::New(bytes) => out.write_all(bytes)?,
            }
        }
        Ok(())
    }
}
